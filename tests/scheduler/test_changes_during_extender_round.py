"""The cluster moves on while extenders are asked: nothing is decided on what was true before."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.with_extenders import MAX_ROUNDS, OUT_OF_DATE
from tests.builders import node, pod, taint, toleration
from tests.harness import Harness
from tests.scheduler.asking import entry, everybody, harness, message
from tests.scheduler.extender.fakes import FakeNetwork


class Meanwhile:
    """A filter that leaves all nodes, and while it does, things happen to the cluster."""

    def __init__(self, *happenings: Any) -> None:
        self.happenings = list(happenings)
        self.harness, self.network = harness({"/filter": self._answer}, entry(filterVerb="filter"))

    def _answer(self, asked: Any) -> Any:
        if self.happenings:
            self.happenings.pop(0)(self.harness)
        return everybody(asked)

    @property
    def asked(self) -> list[list[str]]:
        return [request["NodeNames"] for _, request in self.network.requests]


def check_room(made: Harness) -> None:
    table = made.cache.table
    assert (table.requested <= table.allocatable).all()


def fills(*names: str) -> Any:
    """Have nodes filled by pods of another scheduler."""

    def happens(made: Harness) -> None:
        for name in names:
            made.put(pod(f"on-{name}", cpu=4, node=name))

    return happens


async def test_a_node_that_was_filled_meanwhile_is_not_taken() -> None:
    world = Meanwhile(fills("a"))
    world.harness.put(node("a", cpu=4), node("b", cpu=4), pod("p", cpu=2))
    await world.harness.until_idle()

    assert world.harness.placements()["p"] == "b"
    assert world.asked == [["a", "b"]]
    check_room(world.harness)


async def test_a_node_that_was_filled_meanwhile_is_charged_to_what_ails_it_now() -> None:
    happenings = [fills("a")]

    def answer(_: Any) -> Any:
        if happenings:
            happenings.pop()(made)
        return {"FailedNodes": {"a": "busy", "b": "busy"}}

    made, _ = harness({"/filter": answer}, entry(filterVerb="filter"))
    made.put(node("a", cpu=4), node("b", cpu=4), pod("p", cpu=2))
    await made.until_idle()

    first, *_ = made.scheduler.decisions.of("default/p")
    assert first.reasons == {"Insufficient cpu": 1, "busy": 1}


async def test_a_node_that_has_come_meanwhile_was_not_asked_about() -> None:
    world = Meanwhile(lambda made: made.put(node("b", cpu=64)))
    world.harness.put(node("a", cpu=4), pod("p", cpu=2))
    await world.harness.until_idle()
    assert world.harness.placements() == {"p": "a"}


async def test_a_node_in_the_place_of_another_is_another_one() -> None:
    def replace(made: Harness) -> None:
        made.delete(node("a"))
        made.put(node("c"))

    world = Meanwhile(replace)
    world.harness.put(node("a"), node("b"), pod("p"))
    await world.harness.until_idle()
    assert world.harness.placements() == {"p": "b"}


async def test_when_all_that_was_left_is_taken_extenders_are_asked_again() -> None:
    def swap(made: Harness) -> None:
        fills("a")(made)
        made.put(node("b", cpu=4))

    world = Meanwhile(swap)
    world.harness.put(node("a", cpu=4), pod("p", cpu=2))
    await world.harness.until_idle()

    assert world.harness.placements()["p"] == "b"
    assert world.asked == [["a"], ["b"]]
    check_room(world.harness)


async def test_an_attempt_that_is_overtaken_each_time_is_given_up_for_now() -> None:
    names = ["a", "b", "c", "d", "e"]
    happenings = [
        lambda made, full=full, new=new: (fills(full)(made), made.put(node(new, cpu=4)))
        for full, new in pairwise(names)
    ]
    world = Meanwhile(*happenings)
    world.harness.put(node("a", cpu=4), pod("p", cpu=2))
    await world.harness.until_idle()

    assert "p" not in world.harness.placements()
    assert world.asked == [[name] for name in names[:MAX_ROUNDS]]
    condition = world.harness.cluster.conditions["default/p"]
    assert (condition.reason, condition.message) == ("SchedulerError", OUT_OF_DATE.message)
    check_room(world.harness)


def gone(made: Harness) -> None:
    made.delete(pod("p"))


def recreated(made: Harness) -> None:
    made.delete(pod("p"))
    made.put(pod("p", uid="another"))


def bound_elsewhere(made: Harness) -> None:
    made.put(pod("p", node="b"))


def check_left_in_peace(made: Harness) -> None:
    assert not made.queue.in_flight_counts()
    assert made.cluster.conditions == {}
    assert [event.reason for event in made.cluster.events if event.type == "Warning"] == []


@pytest.mark.parametrize(
    ("happens", "placements"),
    [
        pytest.param(gone, {}, id="deleted"),
        pytest.param(recreated, {"p": "a"}, id="deleted, and another one of its name created"),
        pytest.param(bound_elsewhere, {"p": "b"}, id="bound by another"),
    ],
)
async def test_a_pod_that_does_not_wait_any_more_is_left_in_peace(
    happens: Any, placements: dict[str, str]
) -> None:
    world = Meanwhile(happens)
    world.harness.put(node("a"), node("b", unschedulable=True), pod("p"))
    await world.harness.until_idle()

    assert world.harness.placements() == placements
    check_left_in_peace(world.harness)


@pytest.mark.parametrize(
    ("happens", "placements"),
    [
        pytest.param(gone, {"low": "a"}, id="deleted"),
        pytest.param(bound_elsewhere, {"low": "a", "p": "b"}, id="bound by another"),
    ],
)
async def test_nobody_is_evicted_for_a_pod_that_does_not_wait_any_more(
    happens: Any, placements: dict[str, str]
) -> None:
    made, _ = preempting(happens)
    await made.until_idle()

    assert made.placements() == placements
    check_left_in_peace(made)


def preempting(happens: Any) -> tuple[Harness, FakeNetwork]:
    """A pod that fits only where low would be evicted; *happens* while that is decided."""

    def answer(asked: Any) -> Any:
        happens(made)
        return {"NodeNameToMetaVictims": asked["NodeNameToMetaVictims"]}

    made, network = harness({"/preempt": answer}, entry(preemptVerb="preempt"))
    made.put(node("a", cpu=2), node("b", cpu=0), pod("low", cpu=2, node="a"))
    made.put(pod("p", cpu=2, priority=10))
    return made, network


def changed(old: Pod, **spec: Any) -> Pod:
    return msgspec.structs.replace(old, spec=msgspec.structs.replace(old.spec, **spec))


async def test_a_pod_that_was_changed_is_scheduled_as_it_is_now() -> None:
    waiting = pod("p", cpu=1)
    tolerating = changed(waiting, tolerations=(toleration("k", operator="Exists"),))

    def happens(made: Harness) -> None:
        made.put(tolerating)
        made.put(node("a", taints=[taint("k")]))

    world = Meanwhile(happens)
    world.harness.put(node("a"), waiting)
    await world.harness.until_idle()
    assert world.harness.placements() == {"p": "a"}


# Evictions.


async def test_victims_of_a_node_that_has_changed_are_not_evicted_before_the_next_attempt() -> None:
    happenings = [lambda made: made.delete(pod("low"))]

    def happens(made: Harness) -> None:
        if happenings:
            happenings.pop()(made)

    made, network = preempting(happens)
    await made.until_idle()

    assert made.placements() == {"p": "a"}
    assert len(network.requests) == 1
    assert [event.reason for event in made.cluster.events] == ["Scheduled"]


async def test_evictions_on_nodes_that_never_stay_the_same_are_given_up_for_now() -> None:
    def happens(made: Harness) -> None:
        made.put(pod(f"more-{len(made.cluster.pods)}", node="a"))

    made, network = preempting(happens)
    await made.until_idle()

    assert made.placements()["low"] == "a"
    assert len(network.requests) == MAX_ROUNDS
    assert message(made) == OUT_OF_DATE.message
