"""Why a group waits, and which member is the obstacle."""

import pytest

from berth.insight.explain.explanation import Whereabouts
from berth.kube.objects.pod_group import GroupKey
from berth.runtime.tasks import at_once
from berth.scheduler.pod_group.trial import UNSCHEDULABLE
from tests.builders import node, pod
from tests.harness import Harness
from tests.insight.explain.asking import explain, explainer
from tests.insight.explain.groups.asking import TOPOLOGY, explain_group, lines
from tests.scheduler.pod_group.building import group, group_harness, member, members


@pytest.mark.parametrize("release", ["1.36", "1.37"])
async def test_a_group_that_nobody_has_created(release: str) -> None:
    harness = group_harness(release=release)
    harness.put(node("n"), *members("a", "b", cpu="1"))
    await harness.until_idle()

    found = explain_group(harness)
    assert (found.exists, found.num_pods, found.members) == (False, 2, {Whereabouts.GATED: 2})
    assert found.summary == (
        "podgroup default/g: there is no such PodGroup; 2 pods are gated until it is created"
    )
    assert "scheduling.k8s.io/PodGroup/Add" in found.woken_by["GangScheduling"]
    assert found.num_tried == 0


async def test_a_group_that_is_not_tried_as_its_pods_are() -> None:
    harness = group_harness(release="1.37")
    harness.put(node("n"), group(min_count=2), *members("a", "b", cpu="1", priority=5))
    await harness.until_idle()
    found = explain_group(harness)
    assert found.notes == (
        "all pods in a single pod group should have the same priority as the pod group's priority,"
        " got 5 and 0",
    )
    assert found.status is not None
    assert found.status.message == found.notes[0]


async def test_a_group_that_waits_for_events() -> None:
    harness = group_harness(release="1.37")
    harness.put(node("n", cpu="1"), group(min_count=2), *members("a", "b", cpu="1"))
    await harness.until_idle()
    found = explain_group(harness)
    assert (found.num_tried, found.num_fit, found.can_start) == (2, 1, False)
    assert {"GangScheduling", "NodeResourcesFit"} <= found.woken_by.keys()
    state = explain(harness, "default/b").state
    assert state is not None
    assert state.where is Whereabouts.UNSCHEDULABLE


async def test_pods_that_are_gated_with_another_of_their_group() -> None:
    harness = group_harness(release="1.37")
    harness.put(node("n"), group(min_count=2))
    harness.put(member("a", cpu="1"), member("b", cpu="1", gates=["example.com/wait"]))
    await harness.until_idle()
    for name in "ab":
        state = explain(harness, f"default/{name}").state
        assert state is not None
        assert (state.where, state.waits_for) == (Whereabouts.GATED, ("SchedulingGates",))


@pytest.mark.parametrize("release", ["1.36", "1.37"])
async def test_a_gang_with_too_few_pods_is_tried_as_if_it_had_enough(release: str) -> None:
    harness = group_harness(release=release)
    harness.put(node("n", cpu="1"), group(min_count=3), *members("a", "b", cpu="1"))
    await harness.pass_time(2)

    found = explain_group(harness)
    assert (found.num_uncreated, found.num_tried, found.num_fit) == (1, 2, 1)
    assert found.summary.startswith(
        "podgroup default/g: only 2 of at least 3 pods exist, so none is tried before 1 more is"
        " created; 1 of 2 waiting pods can get nodes now"
    )


async def test_the_first_member_without_a_node_is_the_obstacle() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), node("m", cpu="1"), group(min_count=5))
    harness.put(*members("a", "b", "c", "d", "e", cpu="1"))
    await harness.pass_time(2)

    found = explain_group(harness, limit=1)
    assert (found.num_tried, found.num_fit, found.can_start) == (5, 3, False)
    assert found.obstacle == "default/d"
    assert [(each.pods, each.plugins) for each in found.blocked] == [
        (("default/d", "default/e"), ("NodeResourcesFit",))
    ]
    assert found.status is not None
    assert (found.status.reason, found.status.message) == ("Unschedulable", UNSCHEDULABLE)
    evaluation = found.evaluation
    assert evaluation is not None
    assert evaluation.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert len(evaluation.nodes) == 1
    assert evaluation.nearest_miss is not None
    # Beside the others: alone it would fit.
    assert evaluation.nearest_miss.words == "m: free 1000m more cpu"
    alone = explain(harness, "default/d").evaluation
    assert alone is not None
    assert alone.num_feasible == 2


async def test_a_member_says_what_its_group_waits_for() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=3), *members("a", "b", "c", cpu="1"))
    await harness.pass_time(2)

    told = {name: explain(harness, f"default/{name}") for name in "abc"}
    for each in told.values():
        assert each.pod_group is not None
        assert each.pod_group.summary in each.summary
        assert "default/c has none" in each.summary
    assert [
        name for name, each in told.items() if each.pod_group and each.pod_group.is_obstacle
    ] == ["c"]


async def test_members_are_refused_for_different_reasons() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="1"), group(min_count=3))
    harness.put(member("a", cpu="1"), member("b", cpu="1"))
    harness.put(member("c", cpu="1", node_selector={"gpu": "yes"}))
    await harness.pass_time(2)

    found = explain_group(harness)
    assert {each.pods: each.plugins for each in found.blocked} == {
        ("default/b",): ("NodeResourcesFit",),
        ("default/c",): ("NodeAffinity",),
    }


async def test_when_a_group_is_tried_again() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="1"), group(min_count=2), *members("a", "b", cpu="1"))
    await harness.pass_time(2)

    found = explain_group(harness)
    queue = harness.queue.sub_queues
    assert found.next_try is not None
    assert found.attempts == 2
    assert not found.woken_by  # it rests, whatever happens
    queued = queue.get("default/a")
    assert queued is not None
    due = queue.next_try(queued)
    assert due is not None
    left = round(due - harness.clock.now())
    assert f"tried again in {left} s at the latest" in found.summary


async def test_a_group_with_room_will_start() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=2), *members("a", "b", cpu="1"))

    found = explain_group(harness)
    assert found.can_start
    assert found.summary == (
        "podgroup default/g: 2 of 2 waiting pods can get nodes now: the group will start"
    )
    await harness.until_idle()
    assert explain_group(harness).summary == "podgroup default/g: all 2 pods have nodes"


async def test_gates_of_their_own_hold_members_back() -> None:
    harness = group_harness()
    harness.put(node("n"), group(min_count=2), member("a", cpu="1"))
    harness.put(member("b", cpu="1", gates=["x"]))
    await harness.until_idle()

    found = explain_group(harness)
    assert found.num_tried == 1
    assert not found.can_start
    assert found.notes == ("1 not tried: scheduling gates of their own hold them back",)


async def test_no_preemption_is_tried_for_an_answer() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=2), pod("low", cpu="1", node="n", priority=0))
    harness.put(*members("a", "b", cpu="1", priority=10))

    assert not explain_group(harness).can_start
    assert sorted(harness.placements()) == ["low"]
    assert harness.core.preemptions.is_idle


@pytest.mark.parametrize("has_gate", [False, True], ids=["gate off", "gate on"])
async def test_a_group_that_is_not_known(has_gate: bool) -> None:
    harness = group_harness() if has_gate else Harness()
    assert explainer(harness).explain_pod_group(GroupKey("default", "g"), limit=1) is None


async def test_the_table_for_people() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=3), *members("a", "b", "c", cpu="1"))
    await harness.until_idle()

    told = lines(explain_group(harness))
    assert told[:3] == ["pod group default/g", "policy gang, minCount 3", "pods 3: 3 Backoff"]
    assert "obstacle default/c" in told
    assert (
        "would help it lacks room for 1 more pod (1000m cpu); 1 more node like n would do" in told
    )
    assert "default/c NodeResourcesFit 0/1 nodes are available: 1 Insufficient cpu." in told
    assert told[-1] == "n NodeResourcesFit needs cpu 1000m, free 0m of 2000m"


async def test_pods_beyond_a_gang_that_runs() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="3"), group(min_count=2), *members("a", "b", "c", "d", cpu="1"))
    await harness.until_idle()

    found = explain_group(harness)
    assert found.summary.startswith(
        "podgroup default/g: 3 of 4 pods have nodes; 0 of 1 waiting pod can get nodes now;"
        " default/d has none: 0/1 nodes are available: 1 Insufficient cpu; it lacks room for 1 more"
    )


async def test_nodes_that_come_and_go_between_the_steps_of_an_answer() -> None:
    harness = group_harness(TOPOLOGY)
    nodes = [node(f"n{number}", cpu="1", labels={"rack": "a"}) for number in range(3)]
    harness.put(*nodes, group(min_count=5, topology="rack"), *members(*"abcde", cpu="1"))
    await harness.pass_time(1)
    steps = explainer(harness)._groups.explaining(GroupKey("default", "g"), limit=None)
    next(steps)

    harness.delete(*nodes)
    harness.put(*(node(f"m{number}") for number in range(40)))
    found = at_once(steps)

    assert found is not None
    assert [(placement.nodes, placement.num_fit) for placement in found.placements] == [(3, 3)]
    assert found.shortage is not None
    assert found.shortage.nodes is None
