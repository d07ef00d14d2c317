"""Hints with indexes are asked only about the pods that these find."""

from typing import Any

import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import (
    NODE_ADD,
    NODE_DELETE,
    ClusterEventWithHint,
    HintIndex,
    QueueingHint,
)
from berth.scheduler.framework.key_index import Choices
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.queue.hints import Registration
from berth.scheduler.queue.rejected_pods import RejectedPods
from tests.builders import pod
from tests.scheduler.queue.world import Gate, World, listens


def for_colour(waiting: Pod, _old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if waiting.metadata.labels.get("likes") == new else QueueingHint.SKIP


def likes(waiting: PodInfo) -> Choices:
    return [(waiting.labels["likes"],)]


def finds() -> Registration:
    """Register new nodes, which here are colours, for a plugin named Colour."""
    index = HintIndex(likes, lambda _old, new: (new,))
    return "Colour", ClusterEventWithHint(NODE_ADD, for_colour, (index,))


UNHASHABLE: Any = []
NOBODY = (HintIndex(lambda _waiting: [()], lambda _old, new: (new,)),)


def liking(colour: str, name: str = "", **more: Any) -> Pod:
    return pod(name or colour, labels={"likes": colour}, **more)


def paint(world: World, colour: str) -> None:
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new=colour)
    world.queue.check_invariants()


def test_only_pods_that_are_found_are_asked_about() -> None:
    world = World(finds())
    for colour in ("red", "blue", "green"):
        world.reject(liking(colour), "Colour")
    paint(world, "blue")

    assert world.hints_called == [("Colour", "NodeAdd", "Queue")]
    assert world.places() == {"red": "unschedulable", "blue": "backoff", "green": "unschedulable"}


def test_a_plugin_without_indexes_is_asked_about_all_that_it_rejected() -> None:
    world = World(finds(), listens("Other", NODE_ADD, for_colour))
    world.reject(liking("red"), "Colour")
    world.reject(liking("red", "both"), "Colour", "Other")
    paint(world, "blue")

    assert world.hints_called == [
        ("Colour", "NodeAdd", "QueueSkip"),
        ("Other", "NodeAdd", "QueueSkip"),
    ]


def test_a_registration_without_indexes_finds_what_others_of_the_plugin_do_not() -> None:
    world = World(finds(), listens("Colour", NODE_ADD))
    world.reject(liking("red"), "Colour")
    paint(world, "blue")

    assert world.places() == {"red": "backoff"}


def test_an_event_without_indexes_finds_all() -> None:
    world = World(finds(), listens("Colour", NODE_DELETE))
    world.reject(liking("red"), "Colour")
    world.queue.move_all_to_active_or_backoff_queue(NODE_DELETE)

    assert world.places() == {"red": "backoff"}


def test_a_changed_pod_is_found_by_what_it_is_now() -> None:
    world = World(finds())
    world.reject(liking("red", "p", claims=["data"]), "Colour")
    world.update(liking("blue", "p", claims=["data"]))
    paint(world, "red")
    assert world.places() == {"p": "unschedulable"}

    paint(world, "blue")
    assert world.places() == {"p": "backoff"}


def test_who_was_rejected_before_it_was_gated_is_found_by_all_events_of_its_gate() -> None:
    gate = Gate()
    world = World(
        finds(), ("Gate", ClusterEventWithHint(NODE_ADD, for_colour, NOBODY)), gates=[gate]
    )
    queued = world.reject(liking("red"), "Colour")
    gate.closed_for = {"red"}
    world.queue.activate([queued.pod])
    assert world.places() == {"red": "gated"}
    gate.closed_for = set()
    paint(world, "red")

    assert world.places() == {"red": "backoff"}


def test_who_only_waits_for_its_gate_is_found_by_the_indexes_of_the_gate() -> None:
    gate = Gate()
    world = World(("Gate", ClusterEventWithHint(NODE_ADD, for_colour, NOBODY)), gates=[gate])
    gate.closed_for = {"red"}
    world.add(liking("red"))
    paint(world, "red")

    assert world.hints_called == []


def broken(*_: Any) -> Any:
    raise ValueError("a bug in a plugin")


@pytest.mark.parametrize(
    "index",
    [
        pytest.param(HintIndex(likes, lambda _old, _new: None), id="an event of all pods"),
        pytest.param(HintIndex(lambda _waiting: (), lambda _old, new: (new,)), id="no choice"),
        pytest.param(HintIndex(broken, lambda _old, new: (new,)), id="no keys of the pod"),
        pytest.param(HintIndex(likes, broken), id="no keys of the event"),
        pytest.param(
            HintIndex(lambda _waiting: [(UNHASHABLE,)], lambda _old, new: (new,)),
            id="a wrong key of the pod",
        ),
        pytest.param(
            HintIndex(likes, lambda _old, _new: (UNHASHABLE,)), id="a wrong key of the event"
        ),
    ],
)
def test_in_doubt_the_hint_is_asked(index: HintIndex) -> None:
    world = World(("Colour", ClusterEventWithHint(NODE_ADD, for_colour, (index,))))
    world.reject(liking("red"), "Colour")
    paint(world, "blue")
    assert world.hints_called == [("Colour", "NodeAdd", "QueueSkip")]

    paint(world, "red")
    assert world.places() == {"red": "backoff"}


def test_pods_are_asked_about_in_the_order_in_which_they_began_to_wait() -> None:
    asked: list[str] = []

    def note(waiting: Pod, _old: Any, _new: Any) -> QueueingHint:
        asked.append(waiting.metadata.name)
        return QueueingHint.SKIP

    index = HintIndex(likes, lambda _old, _new: ("blue", "red"))
    world = World(("Colour", ClusterEventWithHint(NODE_ADD, note, (index,))))
    for n, colour in enumerate(["red", "blue", "red"]):
        world.reject(liking(colour, f"p{n}"), "Colour")
    paint(world, "any")

    assert asked == ["p0", "p1", "p2"]


def test_pods_that_wait_by_other_indexes_are_found_by_every_event() -> None:
    before, now = (HintIndex(likes, lambda _old, new: (new,)) for _ in range(2))
    rejected = RejectedPods[str](("profile", "Colour"), (before,))
    rejected.add("red", PodInfo(liking("red")))

    assert [*rejected.found_by((before,), None, "blue")] == []
    assert [*rejected.found_by((now,), None, "blue")] == ["red"]
