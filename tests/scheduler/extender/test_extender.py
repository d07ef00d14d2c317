"""What one extender is asked, and what its answers mean (spec §9.1, §9.3-9.6)."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from berth.kube.objects.pod import Container, Pod, ResourceRequirements
from berth.scheduler.cache.cache import Cache
from berth.scheduler.config.types import ExtenderManagedResource
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.extender.extender import Extender
from berth.scheduler.extender.whole_objects import (
    decode_node,
    decode_waiting_pod,
    node_as_written,
    pod_as_written,
)
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.framework.status import Status
from tests.builders import container, node, pod
from tests.scheduler.extender.fakes import PREFIX, FakeNetwork, config, extenders

A, B, C = nodes = [node("a"), node("b"), node("c")]


def answering(verb: str, answer: Any, **fields: Any) -> Extender:
    (extender,) = extenders(FakeNetwork({f"/scheduler/{verb}": answer}), config(**fields))
    return extender


# Whom it is interested in.

LIMITED = Container(resources=ResourceRequirements(limits={"e.com/gpu": 1}))


@pytest.mark.parametrize(
    ("managed", "asked", "want"),
    [
        pytest.param([], pod("p"), True, id="it manages everything"),
        pytest.param(["e.com/gpu"], pod("p", cpu=1), False, id="nothing of its own is asked for"),
        pytest.param(
            ["e.com/gpu"],
            pod("p", containers=[container(requests={"e.com/gpu": 1})]),
            True,
            id="a container requests it",
        ),
        pytest.param(
            ["x.com/y", "e.com/gpu"],
            pod("p", containers=[LIMITED]),
            True,
            id="a container is limited in it",
        ),
        pytest.param(
            ["e.com/gpu"],
            pod("p", init_containers=[container(requests={"e.com/gpu": 1})]),
            True,
            id="an init container requests it",
        ),
    ],
)
def test_is_interested(managed: list[str], asked: Pod, want: bool) -> None:
    resources = tuple(ExtenderManagedResource(name=name) for name in managed)
    assert answering("filter", {}, managed_resources=resources).is_interested(asked) is want


# Filter.

NO = Status.unschedulable("no").of("Extender")
NEVER = Status.unresolvable("never").of("Extender")


@pytest.mark.parametrize(
    ("answer", "left", "statuses"),
    [
        pytest.param({"NodeNames": ["c", "a"]}, ["c", "a"], {}, id="in the order of the answer"),
        pytest.param({"NodeNames": []}, [], {}, id="none, without a word"),
        pytest.param({}, [], {}, id="nothing said: none"),
        pytest.param(
            {"NodeNames": ["a"], "FailedNodes": {"b": "no", "x": "no"}},
            ["a"],
            {"b": NO},
            id="another try may help; nodes that nobody asked about are not recorded",
        ),
        pytest.param(
            {"NodeNames": ["a"], "FailedAndUnresolvableNodes": {"b": "never"}},
            ["a"],
            {"b": NEVER},
            id="nothing helps",
        ),
        pytest.param(
            {
                "NodeNames": [],
                "FailedNodes": {"a": "no", "b": "no"},
                "FailedAndUnresolvableNodes": {"b": "never"},
            },
            [],
            {"a": NO, "b": NEVER},
            id="the final word counts",
        ),
        pytest.param(
            {"Nodes": {"items": [{"metadata": {"name": "b"}}]}}, ["b"], {}, id="whole nodes"
        ),
    ],
)
async def test_filter(answer: Any, left: list[str], statuses: Mapping[str, Status]) -> None:
    found = await answering("filter", answer).filter(PodInfo(pod("p")), nodes)
    assert found == (left, statuses)


async def test_filter_without_a_cache_of_nodes_goes_by_the_nodes_in_the_answer() -> None:
    both = {"Nodes": {"items": [{"metadata": {"name": "b"}}]}, "NodeNames": ["a"]}
    extender = answering("filter", both, node_cache_capable=False)
    assert await extender.filter(PodInfo(pod("p")), nodes) == (["b"], {})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param({"Error": "boom"}, "boom", id="it says that it failed"),
        pytest.param(
            {"NodeNames": ["a", "x"]},
            f'extender "{PREFIX}" claims a filtered node "x" which is not found in the input node'
            " list",
            id="a node that nobody asked about",
        ),
    ],
)
async def test_filter_fails(answer: Any, message: str) -> None:
    with pytest.raises(ExtenderError) as caught:
        await answering("filter", answer).filter(PodInfo(pod("p")), nodes)
    assert str(caught.value) == message


# Preempt.


def world() -> tuple[Cache, list[Candidate]]:
    """Nodes n and m, with pods low and mid, and other; low would be evicted from n."""
    cache = Cache()
    for name in ("n", "m"):
        cache.add_node(node(name))
    low, mid = PodInfo(pod("low", node="n")), PodInfo(pod("mid", node="n"))
    for info in (low, mid, PodInfo(pod("other", node="m"))):
        cache.add_pod(info)
    return cache, [Candidate(cache.table.row_of["n"], "n", (low,), 1)]


def victims(*names: str, violations: int = 0) -> dict[str, Any]:
    return {
        "Pods": [{"UID": f"pod-default-{name}"} for name in names],
        "NumPDBViolations": violations,
    }


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param({"n": victims("low", violations=1)}, [("n", ["low"], 1)], id="it agrees"),
        pytest.param({}, [], id="it agrees to nothing"),
        pytest.param(
            {"n": victims("mid", "low")}, [("n", ["mid", "low"], 0)], id="it wants more evicted"
        ),
        pytest.param({"m": victims("other")}, [("m", ["other"], 0)], id="it knows another node"),
    ],
)
async def test_preempt(said: Any, want: list[tuple[str, list[str], int]]) -> None:
    cache, candidates = world()
    extender = answering("preempt", {"NodeNameToMetaVictims": said})
    left = await extender.preempt(PodInfo(pod("p")), candidates, cache.table)
    assert [(c.node, [v.name for v in c.victims], c.pdb_violations) for c in left] == want
    assert [cache.table.name(c.row) for c in left] == [node for node, _, _ in want]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        pytest.param(
            {"n": victims("other")},
            f'extender "{PREFIX}" claims to preempt pod (UID: pod-default-other) on node "n", but'
            " the pod is not found there",
            id="a pod of another node",
        ),
        pytest.param(
            {"x": victims("low")},
            f'extender "{PREFIX}" claims to preempt on node "x", which is not known',
            id="no such node",
        ),
        pytest.param(
            {"n": victims()}, 'expected at least one victim pod on node "n"', id="no victims"
        ),
    ],
)
async def test_preempt_fails(said: Any, message: str) -> None:
    cache, candidates = world()
    extender = answering("preempt", {"NodeNameToMetaVictims": said})
    with pytest.raises(ExtenderError) as caught:
        await extender.preempt(PodInfo(pod("p")), candidates, cache.table)
    assert str(caught.value) == message


async def test_a_node_without_victims_is_dropped_if_the_extender_may_be_ignored() -> None:
    cache, candidates = world()
    answer = {"NodeNameToMetaVictims": {"n": victims(), "m": victims("other")}}
    extender = answering("preempt", answer, ignorable=True)
    left = await extender.preempt(PodInfo(pod("p")), candidates, cache.table)
    assert [c.node for c in left] == ["m"]


async def test_a_victim_that_has_gone_meanwhile_is_known_all_the_same() -> None:
    cache, candidates = world()

    def answer(_: Any) -> Any:
        cache.remove_pod(candidates[0].victims[0].pod)
        return {"NodeNameToMetaVictims": {"n": victims("low")}}

    left = await answering("preempt", answer).preempt(PodInfo(pod("p")), candidates, cache.table)
    assert [c.victims for c in left] == [candidates[0].victims]


# Bind.


async def test_bind_fails() -> None:
    with pytest.raises(ExtenderError) as caught:
        await answering("bind", {"Error": "taken"}).bind(PodInfo(pod("p")), "a")
    assert (str(caught.value), caught.value.may_have_acted) == ("taken", True)


async def test_who_does_not_lead_any_more_has_nothing_bound() -> None:
    network = FakeNetwork({})
    (extender,) = extenders(network, config(), may_write=lambda: False)
    with pytest.raises(ExtenderError) as caught:
        await extender.bind(PodInfo(pod("p")), "a")
    assert not caught.value.may_have_acted
    assert network.requests == []


# What it is shown.

WRITTEN = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "p", "managedFields": [{"manager": "m"}], "finalizers": ["f"]},
    "spec": {"containers": [{"name": "c", "env": [{"name": "X"}]}]},
}


def test_a_pod_is_shown_with_all_its_fields_on_the_node_where_it_is_assumed() -> None:
    waiting = decode_waiting_pod(msgspec.json.encode(WRITTEN))
    shown = {
        "metadata": {"name": "p", "finalizers": ["f"]},
        "spec": {"containers": [{"name": "c", "env": [{"name": "X"}]}]},
        "status": {},
    }
    assert msgspec.json.decode(pod_as_written(PodInfo(waiting))) == shown

    assumed = PodInfo(waiting).on_node("n")
    shown["spec"]["nodeName"] = "n"  # type: ignore[index]  # an object, as is written above
    assert msgspec.json.decode(pod_as_written(assumed)) == shown


def test_of_bound_pods_only_what_is_read_is_kept_where_nobody_is_shown_victims() -> None:
    bound = {**WRITTEN, "spec": {"nodeName": "n"}}
    assert type(decode_waiting_pod(msgspec.json.encode(bound))) is Pod


def test_a_node_is_shown_as_it_was_written() -> None:
    written = b'{"metadata":{"name":"n","finalizers":["f"]},"status":{"nodeInfo":{"x":1}}}'
    assert bytes(node_as_written(decode_node(written))) == written
    assert msgspec.json.decode(node_as_written(A))["metadata"]["name"] == "a"
