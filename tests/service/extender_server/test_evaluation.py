"""Filter, prioritize and preempt by node names, on what the caches know."""

import pytest

from berth.kube.objects.pod import Pod
from tests.builders import (
    disruption_budget,
    node,
    node_affinity,
    pod,
    requirement,
    selector,
    taint,
    term,
)
from tests.builders import spread as spread_by
from tests.harness import Harness
from tests.service.extender_server.world import World

TAINT = "node(s) had untolerated taint(s)"


@pytest.fixture
def world() -> World:
    """Three nodes: one free, one full, one tainted; and an application spread over two zones."""
    made = World()
    made.harness.put(
        node("free", cpu=4, zone="a"),
        node("full", cpu=1, zone="b"),
        node("tainted", cpu=4, zone="b", taints=[taint("only", "others")]),
        pod("old", cpu=1, memory="1Gi", node="full", labels={"app": "old"}),
    )
    return made


def answer(*left: str, failed: dict[str, str] | None = None, **unresolvable: str) -> object:
    return {
        "Nodes": None,
        "NodeNames": list(left),
        "FailedNodes": failed or {},
        "FailedAndUnresolvableNodes": unresolvable,
        "Error": "",
    }


@pytest.mark.parametrize(
    ("asked", "names", "want"),
    [
        pytest.param(
            pod(cpu=1),
            ["tainted", "full", "free"],
            answer("free", failed={"full": "Insufficient cpu"}, tainted=TAINT),
            id="each node has its own answer",
        ),
        pytest.param(pod(cpu=1), ["full"], answer(failed={"full": "Insufficient cpu"}), id="one"),
        pytest.param(
            pod(cpu=1, memory="8Gi"),
            ["full"],
            answer(failed={"full": "Insufficient cpu, Insufficient memory"}),
            id="several reasons are joined",
        ),
        pytest.param(
            pod(cpu=5),
            ["full", "free"],
            answer(full="Insufficient cpu", free="Insufficient cpu"),
            id="no eviction would help",
        ),
        pytest.param(
            pod(cpu=1),
            ["new", "free"],
            answer("free", new="node(s) not known to the extender"),
            id="a node nobody told of",
        ),
        pytest.param(pod(cpu=1), [], answer(), id="no nodes"),
        pytest.param(pod(cpu=1), ["free", "free"], answer("free", "free"), id="named twice"),
        pytest.param(
            pod(
                affinity=node_affinity(
                    required=[term(fields=[requirement("metadata.name", "In", "full")])]
                )
            ),
            ["free", "full"],
            answer("full", free="node(s) didn't satisfy plugin(s) [NodeAffinity]"),
            id="PreFilter leaves one node in question",
        ),
        pytest.param(
            pod(volumes=[]),
            ["free"],
            answer("free"),
            id="a pod that asks for nothing",
        ),
    ],
)
async def test_filter(world: World, asked: Pod, names: list[str], want: object) -> None:
    assert await world.filter(asked, *names) == want


async def test_the_order_of_the_question_is_kept(world: World) -> None:
    world.harness.put(node("also"))

    assert (await world.filter(pod(), "free", "full", "also"))["NodeNames"] == [
        "free",
        "full",
        "also",
    ]
    assert (await world.filter(pod(), "also", "free"))["NodeNames"] == ["also", "free"]


async def test_a_rejection_of_the_pod_as_such_holds_for_every_node(world: World) -> None:
    claims = pod("p", claims=["missing"])
    said = await world.filter(claims, "free", "new")

    reason = 'persistentvolumeclaim "missing" not found'
    assert said == answer(free=reason, new="node(s) not known to the extender")


async def test_nodes_that_were_not_asked_about_count_where_pods_are_spread(world: World) -> None:
    """Zone b has a pod of the application; asked alone, zone a would look no emptier than b."""
    harness = world.harness
    harness.put(node("b2", zone="b"), pod("one", cpu=0, node="b2", labels={"app": "x"}))
    asked = pod(labels={"app": "x"}, spread=[spread_by(selector=selector({"app": "x"}))])

    said = await world.filter(asked, "b2")

    reason = "node(s) didn't match pod topology spread constraints"
    assert said == answer(failed={"b2": reason})


async def test_our_own_nominated_pods_keep_their_room(world: World) -> None:
    world.harness.put(pod("vip", cpu=4, priority=10, nominated="free"))

    said = await world.filter(pod(cpu=1, priority=1), "free")

    assert said == answer(failed={"free": "Insufficient cpu"})


async def test_what_was_found_for_a_list_of_names_ends_with_a_change_of_nodes(world: World) -> None:
    assert (await world.filter(pod(), "free", "later"))["NodeNames"] == ["free"]
    world.harness.put(node("later"))

    assert (await world.filter(pod(), "free", "later"))["NodeNames"] == ["free", "later"]


async def test_priorities_span_the_nodes_that_were_asked_about(world: World) -> None:
    """With the pod on them 10%, 60% and 100% are taken: LeastAllocated gives 90, 40 and 0."""
    harness = world.harness
    harness.put(*(node(f"n{i}", cpu=10, memory="10Gi") for i in range(3)))
    harness.put(
        pod("half", cpu=5, memory="5Gi", node="n1"), pod("most", cpu=9, memory="9Gi", node="n2")
    )

    said = await world.priorities(pod(cpu=1, memory="1Gi"), "n2", "n1", "n0")

    assert said == {"n2": 0, "n1": 4, "n0": 10}


async def test_equal_nodes_get_nothing(world: World) -> None:
    world.harness.put(node("n1"), node("n2"))

    assert await world.priorities(pod(), "n1", "n2", "new") == {"n1": 0, "n2": 0, "new": 0}


async def test_no_nodes_are_ranked_without_any(world: World) -> None:
    assert await world.priorities(pod(), "new") == {"new": 0}


HIGH = pod("high", uid="high", cpu=2, priority=100)


@pytest.fixture
def crowded() -> World:
    """Two nodes of 2 CPU, full of pods of low priority."""
    made = World()
    made.harness.put(
        node("n1", cpu=2),
        node("n2", cpu=2),
        pod("a", uid="a", cpu=1, node="n1", labels={"app": "a"}),
        pod("b", uid="b", cpu=1, node="n1", labels={"app": "b"}),
        pod("c", uid="c", cpu=2, node="n2", labels={"app": "a"}),
    )
    return made


def meta(*uids: str, violations: int = 0) -> object:
    return {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}


@pytest.mark.parametrize(
    ("victims", "want"),
    [
        pytest.param(
            {"n1": ["a", "b"], "n2": ["c"]}, {"n1": meta("a", "b"), "n2": meta("c")}, id="enough"
        ),
        pytest.param({"n1": ["a"], "n2": ["c"]}, {"n2": meta("c")}, id="too few on one node"),
        pytest.param({"n1": ["a", "b", "gone"]}, {"n1": meta("a", "b", "gone")}, id="one is gone"),
        pytest.param({"n1": []}, {}, id="nobody is to be evicted"),
        pytest.param({"new": ["x"]}, {}, id="a node nobody told of"),
        pytest.param({}, {}, id="no nodes"),
    ],
)
async def test_preempt(crowded: World, victims: dict[str, list[str]], want: object) -> None:
    assert await crowded.preempt(HIGH, victims) == want
    crowded.harness.cache.check_invariants()


async def test_nobody_is_spared_even_if_the_pod_would_fit_beside_him(crowded: World) -> None:
    small = pod("small", cpu=1, priority=100)

    assert await crowded.preempt(small, {"n1": ["a", "b"]}) == {"n1": meta("a", "b")}


async def test_broken_budgets_are_counted_anew(crowded: World) -> None:
    budgets = crowded.harness.cluster.listers.pod_disruption_budgets
    budgets.on_add(disruption_budget("kept", selects=selector({"app": "a"}), allows=0))

    said = await crowded.preempt(HIGH, {"n1": ["a", "b"], "n2": ["c"]})

    assert said == {"n1": meta("a", "b", violations=1), "n2": meta("c", violations=1)}


async def test_victims_as_whole_pods_are_told_by_their_uids(crowded: World) -> None:
    whole = {"Pods": [{"metadata": {"name": "c", "uid": "c"}}], "NumPDBViolations": 0}
    said = await crowded.ask(
        "preempt",
        {"Pod": {"metadata": {"name": "h"}}, "NodeNameToVictims": {"n2": whole}},
    )

    assert said == {"NodeNameToMetaVictims": {"n2": meta("c")}}


async def test_a_pod_that_follows_others_is_evaluated_node_by_node(crowded: World) -> None:
    spreading = [spread_by(selector=selector({"app": "a"}))]
    crowded.harness.put(node("n1", cpu=2, zone="x"), node("n2", cpu=2, zone="y"))
    asked = pod("h", cpu=2, priority=9, labels={"app": "a"}, spread=spreading)

    said = await crowded.preempt(asked, {"n1": ["a", "b"], "n2": ["c"]})

    assert said == {"n1": meta("a", "b"), "n2": meta("c")}


async def test_a_profile_without_plugins_lets_everything_pass() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {
                        "disabled": [{"name": "*"}],
                        "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}],
                    }
                }
            }
        ],
    }
    world = World(Harness(config=config))
    world.harness.put(node("n1", cpu=1))

    assert (await world.filter(pod(cpu=8), "n1"))["NodeNames"] == ["n1"]
    assert await world.priorities(pod(cpu=8), "n1") == {"n1": 0}
