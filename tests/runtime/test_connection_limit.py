"""Who may be connected, and who has to go: counted, with no socket."""

import logging

import pytest

from berth.runtime.clock import FakeClock
from berth.runtime.connection_limit import LOG_SECONDS, ConnectionLimit, Seat


class Room:
    """A limit of so many, and those who were hung up on, by the order in which they came."""

    def __init__(self, most: int, reserved: int) -> None:
        self.clock = FakeClock()
        self.limit = ConnectionLimit(most, reserved=reserved, monotonic=self.clock.monotonic)
        self.gone: list[str] = []

    def enter(self, name: str, *, works: bool = False) -> Seat | None:
        seat = self.limit.enter()
        if seat is not None:
            seat.hang_up = lambda: self.gone.append(name)
            if works:
                seat.works()
            else:
                seat.waits()
        return seat


def test_who_waits_longest_for_its_client_goes() -> None:
    room = Room(3, 2)
    first = room.enter("first")
    room.enter("second")
    room.enter("busy", works=True)
    assert first is not None
    first.works()
    first.waits()  # it has asked, and was answered
    room.enter("third")
    room.enter("fourth")
    room.enter("fifth")

    assert room.gone == ["second", "first", "third"]
    counts = room.limit.counts
    assert (counts.open, counts.displaced, counts.refused) == (3, 3, 0)


def test_when_all_have_work_some_more_come_in_for_health_checks() -> None:
    room = Room(2, 2)
    seats = [room.enter(f"{i}", works=True) for i in range(5)]

    assert [None if seat is None else seat.is_reserved for seat in seats] == [
        False, False, True, True, None,
    ]  # fmt: skip
    counts = room.limit.counts
    assert (counts.open, counts.displaced, counts.refused) == (4, 0, 1)

    assert seats[0] is not None
    assert seats[2] is not None
    seats[2].waits()
    assert room.enter("next") is not None
    assert room.gone == ["2"]  # a reserved one whose check was answered
    seats[0].leave()
    seats[0].leave()
    assert counts.open == 3


def test_when_all_have_work_the_oldest_long_answer_of_the_greediest_goes() -> None:
    room = Room(8, 2)
    seats = {f"{i}": room.enter(f"{i}", works=True) for i in range(8)}
    owners = {"0": "modest", "1": "greedy", "2": "greedy", "3": "greedy", "4": "other"}
    for name, owner in owners.items():
        seat = seats[name]
        assert seat is not None
        seat.lasts(owner)
    for name in ("a", "b"):
        seat = room.enter(name, works=True)
        assert seat is not None
        assert not seat.is_reserved
    assert room.gone == ["1", "2"]  # one is left, as of the others: nobody is greedy
    seat = room.enter("c", works=True)
    assert seat is not None
    assert seat.is_reserved
    assert room.limit.counts.displaced == 2


def test_a_long_answer_that_is_sent_is_none_any_more() -> None:
    room = Room(8, 0)
    for i in range(8):
        seat = room.enter(f"{i}", works=True)
        assert seat is not None
        seat.lasts("greedy")
        seat.answered(has_more=i % 2 == 0)
    assert room.limit._lasting == {}
    for i in range(8):
        room.enter(f"next {i}", works=True)
    assert room.gone == ["1", "3", "5", "7"]


def test_a_flood_of_silent_clients_costs_no_more_than_their_number() -> None:
    room = Room(100, 10)
    for i in range(10_000):
        room.enter(f"{i}")
    counts = room.limit.counts
    assert (counts.open, counts.displaced, counts.refused) == (100, 9_900, 0)
    assert room.gone == [f"{i}" for i in range(9_900)]
    assert len(room.limit._waiting) == len(room.limit._seats) == 100


def test_who_has_left_is_forgotten() -> None:
    room = Room(1, 0)
    seat = room.enter("only")
    assert seat is not None
    seat.leave()
    seat.waits()
    seat.works()
    assert room.limit.counts.open == 0
    assert not room.limit.displace()
    assert room.gone == []


def test_what_is_refused_is_logged_seldom_and_counted_always(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room(1, 0)
    room.enter("busy", works=True)
    with caplog.at_level(logging.WARNING, "berth.runtime.connection_limit"):
        for _ in range(100):
            room.enter("refused")
        assert len(caplog.records) == 1
        room.clock.advance(LOG_SECONDS)
        room.limit.not_accepted(OSError(24, "Too many open files"))
    last = vars(caplog.records[-1])
    assert len(caplog.records) == 2
    assert (last["message"], last["error"]) == (
        "HTTP connections cannot be accepted",
        "Too many open files",
    )
    assert (last["open"], last["most"], last["refused"], last["not_accepted"]) == (1, 1, 100, 1)
