"""Groups of pods that extenders have a say in: they are asked before the trial."""

from typing import Any

import pytest

from tests.builders import container, node, pod
from tests.harness import Harness
from tests.scheduler.asking import entry, everybody, harness, message
from tests.scheduler.extender.fakes import FakeNetwork
from tests.scheduler.pod_group.building import GATES, condition_of, group, member, members


def groups(answers: Any, *extenders: dict[str, Any]) -> tuple[Harness, FakeNetwork]:
    return harness(
        answers,
        *extenders,
        featureGates=dict.fromkeys(GATES, True),
        emulatedVersion="1.36",
    )


async def test_a_gang_goes_where_an_extender_leaves_room() -> None:
    made, network = groups({"/filter": {"NodeNames": ["b", "c"]}}, entry(filterVerb="filter"))
    made.put(*(node(name, cpu=1) for name in "abc"), group(min_count=2), *members("p", "q", cpu=1))
    await made.until_idle()

    assert sorted(made.placements().values()) == ["b", "c"]
    asked = [(body["Pod"]["metadata"]["name"], body["NodeNames"]) for _, body in network.requests]
    assert sorted(asked) == [("p", ["a", "b", "c"]), ("q", ["a", "b", "c"])]


async def test_a_group_that_preempts_gets_nodes_that_extenders_allow() -> None:
    gates = dict.fromkeys((*GATES, "WorkloadAwarePreemption"), True)
    all_but_a = {"/filter": lambda body: {"NodeNames": [n for n in body["NodeNames"] if n != "a"]}}
    made, network = harness(
        all_but_a, entry(filterVerb="filter"), featureGates=gates, emulatedVersion="1.36"
    )
    for name in "abc":
        made.put(node(name, cpu=1), pod(f"low-{name}", cpu=1, node=name, priority=0))
    made.put(group(min_count=2, priority=100), *members("p", "q", cpu=1))
    await made.until_idle()

    assert {made.placements()[name] for name in "pq"} == {"b", "c"}
    assert "low-a" in made.placements()
    assert network.requests[0][1]["NodeNames"] == ["a", "b", "c"]


async def test_none_is_bound_when_an_extender_leaves_too_little() -> None:
    made, _ = groups({"/filter": {"NodeNames": ["b"]}}, entry(filterVerb="filter"))
    made.put(*(node(name, cpu=1) for name in "ab"), group(min_count=2), *members("p", "q", cpu=1))
    await made.until_idle()

    assert made.placements() == {}
    condition = condition_of(made)
    assert condition is not None
    assert condition.reason == "Unschedulable"
    assert not made.cache.table.requested.any()


async def test_scores_of_extenders_count() -> None:
    scores = [{"Host": name, "Score": score} for name, score in (("a", 0), ("b", 10), ("c", 5))]
    made, _ = groups(
        {"/filter": everybody, "/prioritize": scores},
        entry(filterVerb="filter", prioritizeVerb="prioritize", weight=100),
    )
    made.put(*(node(name, cpu=1) for name in "abc"), group(min_count=2), *members("p", "q", cpu=1))
    await made.until_idle()

    assert sorted(made.placements().values()) == ["b", "c"]


async def test_a_failing_extender_fails_the_group() -> None:
    made, _ = groups({"/filter": {"Error": "out of order"}}, entry(filterVerb="filter"))
    made.put(node("a"), group(min_count=2), *members("p", "q"))
    await made.until_idle()

    assert made.placements() == {}
    condition = condition_of(made)
    assert condition is not None
    assert condition.reason == "SchedulerError"
    assert "out of order" in condition.message


async def test_only_members_of_interest_are_asked_about() -> None:
    made, network = groups(
        {"/filter": everybody},
        entry(filterVerb="filter", managedResources=[{"name": "e.com/gpu"}]),
    )
    gpu = [container(requests={"e.com/gpu": 1})]
    made.put(
        node("a", allocatable={"e.com/gpu": 4}),
        group(min_count=2),
        member("driver"),
        member("worker", containers=gpu),
    )
    await made.until_idle()

    assert made.placements() == {"driver": "a", "worker": "a"}
    assert [body["Pod"]["metadata"]["name"] for _, body in network.requests] == ["worker"]


async def test_a_member_that_is_deleted_while_they_answer_is_left_out() -> None:
    def answer(asked: Any) -> Any:
        if asked["Pod"]["metadata"]["name"] == "p":
            made.delete(made.cluster.pods["default/q"])
        return everybody(asked)

    made, _ = groups({"/filter": answer}, entry(filterVerb="filter"))
    made.put(node("a"), group(min_count=1), *members("p", "q"))
    await made.until_idle()

    assert made.placements() == {"p": "a"}
    assert not made.queue.in_flight_counts()


async def test_a_node_that_is_filled_while_they_answer_is_not_taken() -> None:
    def answer(asked: Any) -> Any:
        made.put(pod("other", cpu=1, node="a"))
        return everybody(asked)

    made, _ = groups({"/filter": answer}, entry(filterVerb="filter"))
    made.put(node("a", cpu=1), node("b", cpu=1), group(min_count=1), member("p", cpu=1))
    await made.until_idle()
    assert made.placements()["p"] == "b"


@pytest.mark.parametrize(
    ("verbs", "evicted"),
    [
        pytest.param({}, True, id="it has no say in evictions"),
        pytest.param({"preemptVerb": "preempt"}, False, id="it would have to be asked"),
    ],
)
async def test_evictions_for_a_group(verbs: dict[str, str], evicted: bool) -> None:
    made, network = groups({"/filter": everybody}, entry(filterVerb="filter", **verbs))
    made.put(
        node("a", cpu=1),
        pod("low", cpu=1, node="a", priority=0),
        group(min_count=1),
        member("p", cpu=1, priority=10),
    )
    await made.until_idle()
    assert ("default/low" not in made.cluster.pods) is evicted
    assert all(path == "/filter" for path, _ in network.requests)


async def test_a_group_that_is_deleted_while_they_answer_fails_with_an_error() -> None:
    """Spec G19, 20. Without extenders nothing can happen between the pop and the trial."""

    doomed = [group(min_count=2)]

    def answer(asked: Any) -> Any:
        if doomed:
            made.delete(doomed.pop())
        return everybody(asked)

    made, _ = groups({"/filter": answer}, entry(filterVerb="filter"))
    made.put(node("a"), group(min_count=2), *members("p", "q"))
    await made.until_idle()

    why = (
        'running Permit plugin "GangScheduling": failed to get podGroup default/g:'
        ' podgroup.scheduling.k8s.io "g" not found'
    )
    others = f"failed to schedule other pod from a pod group: {why}"
    assert sorted(message(made, name) for name in "pq") == [others, why]
    assert made.placements() == {}
    assert not made.cache.table.requested.any()

    await made.pass_time(20)
    assert made.queue.sub_queues.pending_counts()["gated"] == 2, "the next attempt finds no group"
    made.put(group(min_count=2))
    await made.until_idle()
    assert made.placements() == {"p": "a", "q": "a"}


async def test_an_entity_that_is_deleted_while_they_answer_fails_as_if_it_had_been_before() -> None:
    doomed = [group(min_count=2)]

    def answer(asked: Any) -> Any:
        if doomed:
            made.delete(doomed.pop())
        return everybody(asked)

    gates = {"GenericWorkload": True}
    made, _ = harness({"/filter": answer}, entry(filterVerb="filter"), featureGates=gates)
    made.put(node("a"), group(min_count=2), *members("p", "q"))
    await made.until_idle()
    gone = 'podgroup.scheduling.k8s.io "g" not found'
    assert [message(made, name) for name in "pq"] == [gone, gone]
    assert made.queue.sub_queues.pending_counts()["incomplete"] == 2
    made.put(group(min_count=2))
    await made.until_idle()
    assert made.placements() == {"p": "a", "q": "a"}


async def test_an_entity_preempts_where_extenders_allow() -> None:
    gates = {"GenericWorkload": True}
    all_but_a = {"/filter": lambda body: {"NodeNames": [n for n in body["NodeNames"] if n != "a"]}}
    made, _ = harness(all_but_a, entry(filterVerb="filter"), featureGates=gates)
    for name in "abc":
        made.put(node(name, cpu=1), pod(f"low-{name}", cpu=1, node=name, priority=0))
    made.put(group(min_count=2, priority=100), *members("p", "q", cpu=1, priority=100))
    await made.until_idle()
    assert {made.placements()[name] for name in "pq"} == {"b", "c"}
    assert "low-a" in made.placements()
