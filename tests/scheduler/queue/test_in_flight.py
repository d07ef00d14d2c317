"""Events that happen while pods are tried (spec §3.5)."""

from typing import Any

from berth.runtime.clock import FakeClock
from berth.scheduler.framework.events import ALL_EVENTS, ASSIGNED_POD_ADD, FORCE_ACTIVATE, NODE_ADD
from berth.scheduler.queue.hints import HintMap
from berth.scheduler.queue.in_flight import InFlight
from tests.scheduler.queue.world import PROFILE, listens

HINTS = HintMap({PROFILE: [listens("Fit", NODE_ADD)]}, clock=FakeClock(), observe=lambda *_: None)
ADDED = HINTS.of(NODE_ADD)


def seen(in_flight: InFlight, uid: str) -> list[Any] | None:
    in_flight.check_invariants()
    events = in_flight.events_since_pop(uid)
    return None if events is None else [event.new for event in events]


def test_a_pod_sees_what_came_after_its_pop() -> None:
    in_flight = InFlight()
    in_flight.record(ADDED, old=None, new="too early")
    assert in_flight.start("a")
    in_flight.record(ADDED, old=None, new="n1")
    assert in_flight.start("b")
    in_flight.record(ADDED, old=None, new="n2")

    assert (seen(in_flight, "a"), seen(in_flight, "b")) == (["n1", "n2"], ["n2"])
    assert seen(in_flight, "c") is None


def test_a_pod_starts_once() -> None:
    in_flight = InFlight()
    in_flight.start("a")
    in_flight.record(ADDED, old=None, new="n1")

    assert not in_flight.start("a")
    assert seen(in_flight, "a") == ["n1"]
    assert len(in_flight) == 1


def test_events_are_kept_as_long_as_somebody_needs_them() -> None:
    in_flight = InFlight()
    for uid in ("a", "b", "c"):
        in_flight.start(uid)
        in_flight.record(ADDED, old=None, new=f"after {uid}")
    counts = []
    for uid in ("b", "a", "nobody", "c"):
        in_flight.done(uid)
        in_flight.check_invariants()
        counts.append(dict(in_flight.counts()))

    assert counts == [
        {"NodeAdd": 3, "PodPopped": 2},
        {"NodeAdd": 1, "PodPopped": 1},
        {"NodeAdd": 1, "PodPopped": 1},
        {},
    ]


def test_the_numbering_goes_on_after_events_were_dropped() -> None:
    in_flight = InFlight()
    in_flight.start("a")
    in_flight.record(ADDED, old=None, new="n1")
    in_flight.done("a")
    in_flight.start("b")
    in_flight.record(ADDED, old=None, new="n2")

    assert seen(in_flight, "b") == ["n2"]


def test_only_events_that_somebody_registered_are_kept() -> None:
    in_flight = InFlight()
    in_flight.start("a")
    for event in (ASSIGNED_POD_ADD, NODE_ADD, FORCE_ACTIVATE, ALL_EVENTS):
        in_flight.record(HINTS.of(event), old=None, new=event)

    assert seen(in_flight, "a") == [NODE_ADD, FORCE_ACTIVATE, ALL_EVENTS]
