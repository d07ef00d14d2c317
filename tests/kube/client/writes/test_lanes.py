"""Lanes: who goes first, what is merged, what is dropped, who hears of failures."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from berth.kube.client.errors import FencedError, NotFoundError
from berth.kube.client.writes.lanes import EVENTS_AT_ONCE, Lane, LaneStats, Limits, WriteLanes
from berth.runtime.clock import FakeClock
from tests.kube.client.slow_server import Server, settle, submit_event

ONE_AT_A_TIME = Limits(workers=1, status=0, event=0)


Start = Callable[[Limits], WriteLanes]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def start(clock: FakeClock) -> AsyncIterator[Start]:
    tasks: list[asyncio.Task[None]] = []

    def started(limits: Limits) -> WriteLanes:
        lanes = WriteLanes(clock=clock, limits=limits)
        tasks.append(asyncio.create_task(lanes.run(), name="lanes"))
        return lanes

    yield started
    for task in tasks:
        assert not task.done(), "lanes never end by themselves"
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def binding(lanes: WriteLanes, write: Callable[[], Awaitable[str]]) -> asyncio.Task[str]:
    return asyncio.create_task(lanes.bind(write), name="bind")


async def test_binds_go_before_status_patches_and_those_before_events(
    start: Start, server: Server
) -> None:
    lanes = start(Limits(workers=3, status=1, event=1))
    first = [binding(lanes, server.held(name)) for name in ("busy-1", "busy-2", "busy-3")]
    await settle()

    submit_event(lanes, server.quick("event"))
    lanes.submit_status("pod", server.quick("status"))
    evicting = asyncio.create_task(lanes.evict(server.quick("evict")), name="evict")
    last = binding(lanes, server.quick("bind"))
    await settle()
    assert server.began == ["busy-1", "busy-2", "busy-3"]
    server.release("busy-1")
    await settle()

    assert server.began[3:] == ["bind", "status", "evict", "event"]
    assert (await last, await evicting) == ("bind done", "evict done")
    assert lanes.stats[Lane.BIND].in_flight == 2
    server.release("busy-2")
    server.release("busy-3")
    await asyncio.gather(*first)
    assert lanes.idle


async def test_a_flood_of_lesser_writes_leaves_workers_to_binds(
    start: Start, server: Server
) -> None:
    lanes = start(Limits(workers=4, status=2, event=1))
    for number in range(10):
        submit_event(lanes, server.held(f"event-{number}"))
        lanes.submit_status(number, server.held(f"status-{number}"))
    await settle()
    assert sorted(server.began) == ["event-0", "status-0", "status-1"]

    assert await binding(lanes, server.quick("bind")) == "bind done"


async def test_a_newer_status_write_takes_the_place_of_one_that_waits(
    start: Start, server: Server
) -> None:
    lanes = start(Limits(workers=2, status=1, event=0))
    lanes.submit_status("other", server.held("busy"))
    await settle()

    lanes.submit_status("pod", server.quick("old"))
    lanes.submit_status("third", server.quick("third"))
    lanes.submit_status("pod", server.quick("new"))
    server.release("busy")
    await settle()

    assert server.began == ["busy", "new", "third"]
    assert lanes.stats[Lane.STATUS] == LaneStats(done=3, superseded=1)


async def test_status_writes_of_one_pod_follow_each_other(start: Start, server: Server) -> None:
    lanes = start(Limits(workers=4, status=3, event=0))
    lanes.submit_status("pod", server.held("first"))
    await settle()

    lanes.submit_status("pod", server.quick("second"))
    lanes.submit_status("pod", server.quick("third"))
    await settle()
    assert server.began == ["first"]
    assert lanes.stats[Lane.STATUS].depth == 1
    server.release("first")
    await settle()

    assert server.began == ["first", "third"]
    assert lanes.idle


async def test_events_beyond_the_limit_are_dropped_and_counted(
    start: Start, server: Server
) -> None:
    lanes = start(Limits(workers=3, status=0, event=1, pending_events=2))
    submit_event(lanes, server.held("busy"))
    await settle()

    accepted = [submit_event(lanes, server.quick(name)) for name in "abc"]
    server.release("busy")
    await settle()

    assert accepted == [True, True, False]
    assert server.began == ["busy", "a", "b"]
    assert lanes.stats[Lane.EVENT] == LaneStats(done=3, dropped=1)


async def test_status_writes_beyond_the_limit_push_out_the_oldest(
    start: Start, server: Server
) -> None:
    lanes = start(Limits(workers=2, status=1, event=0, pending_status=2))
    lanes.submit_status("busy", server.held("busy"))
    await settle()

    lanes.submit_status("busy", server.quick("held back"))
    lanes.submit_status("a", server.quick("a"))
    lanes.submit_status("b", server.quick("b"))
    lanes.submit_status("c", server.quick("c"))
    server.release("busy")
    await settle()

    assert server.began == ["busy", "b", "c"]
    assert lanes.stats[Lane.STATUS] == LaneStats(done=3, dropped=2)


async def test_the_default_limits_keep_an_event_for_each_of_ten_thousand_pods() -> None:
    lanes = WriteLanes(clock=FakeClock())

    accepted = [submit_event(lanes, Server().quick("e")) for _ in range(10_001)]

    assert accepted == [True] * 10_000 + [False]


async def test_events_that_wait_are_written_several_at_a_time_by_each_writer(start: Start) -> None:
    written: list[tuple[str, list[int]]] = []

    async def first(events: list[int]) -> None:
        written.append(("first", events))

    async def second(events: list[int]) -> None:
        written.append(("second", events))
        raise ValueError("no such namespace")

    lanes = start(Limits(workers=3, status=0, event=1))
    for number in range(EVENTS_AT_ONCE + 2):
        lanes.submit_event(number, first)
    lanes.submit_event(98, second)
    lanes.submit_event(99, second)
    await settle()

    assert written == [
        ("first", list(range(EVENTS_AT_ONCE))),
        ("first", [EVENTS_AT_ONCE, EVENTS_AT_ONCE + 1]),
        ("second", [98, 99]),
    ]
    assert lanes.stats[Lane.EVENT] == LaneStats(done=EVENTS_AT_ONCE + 2, failed=2)


async def test_events_that_fell_behind_binds_fall_behind_no_further(
    start: Start, server: Server
) -> None:
    """Each bind makes an event: with as many of both under way, no more of them come to wait."""
    limits = Limits(pending_events=20)
    lanes = start(limits)
    binds = [binding(lanes, server.held(f"bind-{n}")) for n in range(limits.event)]
    await settle()
    for number in range(20):
        submit_event(lanes, server.held(f"event-{number}"))
    await settle()

    assert lanes.stats[Lane.EVENT].depth <= 10
    for name in server.began:
        server.release(name)
    await asyncio.gather(*binds)


async def test_who_awaits_a_write_gets_its_error(start: Start) -> None:
    async def fails() -> str:
        raise ValueError("no such node")

    lanes = start(Limits())

    with pytest.raises(ValueError, match="no such node"):
        await lanes.bind(fails)
    with pytest.raises(ValueError, match="no such node"):
        await lanes.evict(fails)
    assert lanes.stats[Lane.BIND] == LaneStats(failed=1)


async def test_a_failed_write_that_nobody_awaits_is_logged_and_the_next_is_made(
    start: Start, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails() -> str:
        raise ValueError("no such pod")

    lanes = start(Limits(workers=3, status=1, event=1))
    with caplog.at_level(logging.WARNING):
        lanes.submit_status("a", fails)
        lanes.submit_status("b", server.quick("b"))
        submit_event(lanes, fails)
        submit_event(lanes, server.quick("e"))
        await settle()

    assert sorted(server.began) == ["b", "e"]
    assert [record.message for record in caplog.records] == ["API write failed"] * 2


async def test_writes_that_nobody_misses_fail_quietly(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    async def gone() -> str:
        raise NotFoundError(404, "NotFound", 'pods "a" not found')

    async def fenced() -> str:
        raise FencedError("not sent")

    lanes = start(Limits())
    with caplog.at_level(logging.INFO):
        lanes.submit_status("a", gone)
        lanes.submit_status("b", fenced)
        await settle()

    assert caplog.records == []
    assert lanes.stats[Lane.STATUS].failed == 2


async def test_a_write_that_was_given_up_before_its_turn_is_never_made(
    start: Start, server: Server
) -> None:
    lanes = start(ONE_AT_A_TIME)
    busy = binding(lanes, server.held("busy"))
    given_up = binding(lanes, server.quick("given up"))
    await settle()

    given_up.cancel()
    await settle()
    server.release("busy")

    assert await busy == "busy done"
    assert await binding(lanes, server.quick("next")) == "next done"
    assert server.began == ["busy", "next"]
    assert lanes.idle


async def test_a_write_that_was_given_up_after_it_began_ends_with_its_caller(
    start: Start, server: Server
) -> None:
    lanes = start(ONE_AT_A_TIME)
    given_up = binding(lanes, server.held("begun"))
    await settle()

    given_up.cancel()
    assert await binding(lanes, server.quick("next")) == "next done"

    assert given_up.cancelled()
    assert lanes.stats[Lane.BIND] == LaneStats(done=1, failed=1)


async def test_a_write_that_was_given_up_when_its_turn_came_leaves_it_to_the_next(
    start: Start, server: Server
) -> None:
    lanes = start(ONE_AT_A_TIME)
    held = server.held("busy")

    async def ends_as_the_next_is_given_up() -> str:
        done = await held()
        asyncio.get_running_loop().call_soon(given_up.cancel)
        return done

    busy = binding(lanes, ends_as_the_next_is_given_up)
    given_up = binding(lanes, server.quick("given up"))
    following = binding(lanes, server.quick("next"))
    await settle()
    server.release("busy")

    assert (await busy, await following) == ("busy done", "next done")
    assert given_up.cancelled()
    assert server.began == ["busy", "next"]
    assert lanes.idle


async def test_a_write_that_was_cancelled_from_within_does_not_end_its_worker(
    start: Start, server: Server
) -> None:
    async def cancelled() -> str:
        raise asyncio.CancelledError

    lanes = start(ONE_AT_A_TIME)

    with pytest.raises(asyncio.CancelledError):
        await binding(lanes, cancelled)

    assert await binding(lanes, server.quick("next")) == "next done"


async def test_when_the_lanes_end_nobody_waits_for_ever(server: Server, clock: FakeClock) -> None:
    lanes = WriteLanes(clock=clock, limits=ONE_AT_A_TIME)
    running = asyncio.create_task(lanes.run(), name="lanes")
    begun, queued = binding(lanes, server.held("begun")), binding(lanes, server.quick("queued"))
    await settle()

    running.cancel()
    await asyncio.gather(running, queued, return_exceptions=True)

    assert queued.cancelled()
    server.release("begun")
    assert await begun == "begun done"
    assert server.began == ["begun"]


async def test_waits_are_measured(start: Start, server: Server, clock: FakeClock) -> None:
    lanes = start(ONE_AT_A_TIME)
    tasks = [binding(lanes, server.held("busy")), binding(lanes, server.quick("next"))]
    await settle()

    clock.advance(3)
    server.release("busy")
    await asyncio.gather(*tasks)

    assert lanes.stats[Lane.BIND] == LaneStats(done=2, wait_total=3.0, wait_longest=3.0)


def test_limits_that_leave_no_worker_to_binds_are_refused() -> None:
    with pytest.raises(ValueError, match="workers=3 must exceed status=2 \\+ event=1"):
        Limits(workers=3, status=2, event=1)
