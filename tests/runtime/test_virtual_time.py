"""A clock that moves by itself when the event loop has nothing to do."""

import asyncio
import math
import socket
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from berth.runtime.clock import FakeClock
from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop

T = TypeVar("T")

START = 1_000.0
DAY = 86_400.0


def run(
    work: Callable[[FakeClock], Coroutine[Any, Any, T]], *, speed: float = math.inf
) -> tuple[T, FakeClock]:
    clock = FakeClock(START)
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock, speed=speed)) as runner:
        return runner.run(work(clock)), clock


def test_a_day_passes_at_once() -> None:
    _, clock = run(lambda clock: clock.sleep(DAY))
    assert clock.monotonic() == START + DAY


def test_everybody_wakes_at_their_time_and_in_order() -> None:
    async def work(clock: FakeClock) -> list[tuple[str, float]]:
        woken: list[tuple[str, float]] = []

        async def sleep(name: str, *naps: float) -> None:
            for nap in naps:
                await clock.sleep(nap)
                woken.append((name, clock.monotonic() - START))

        await asyncio.gather(sleep("a", 3, 3), sleep("b", 1, 4), sleep("c", 5))
        return woken

    woken, _ = run(work)
    assert woken == [("b", 1), ("a", 3), ("c", 5), ("b", 5), ("a", 6)]


def test_time_does_not_pass_while_something_is_ready() -> None:
    async def work(clock: FakeClock) -> float:
        sleeping = asyncio.create_task(clock.sleep(1))
        for _ in range(100):
            await asyncio.sleep(0)
        now = clock.monotonic()
        await sleeping
        return now

    now, clock = run(work)
    assert now == START
    assert clock.monotonic() == START + 1


def test_time_stands_still_while_a_thread_works() -> None:
    async def work(clock: FakeClock) -> float:
        async def tick() -> None:
            while True:
                await clock.sleep(1)

        ticking = asyncio.create_task(tick())
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(max_workers=1) as executor:
            await loop.run_in_executor(executor, time.sleep, 0.01)
        now = clock.monotonic()
        ticking.cancel()
        return now

    now, _ = run(work)
    assert now == START


def test_a_thread_that_raises_lets_time_go_on() -> None:
    def fail() -> None:
        raise RuntimeError("no")

    async def work(clock: FakeClock) -> None:
        with pytest.raises(RuntimeError, match="no"):
            await asyncio.to_thread(fail)
        await clock.sleep(1)

    _, clock = run(work)
    assert clock.monotonic() == START + 1


def test_what_has_arrived_on_a_socket_comes_before_the_next_wake_up() -> None:
    async def work(clock: FakeClock) -> float:
        mine, theirs = socket.socketpair()
        with mine, theirs:
            reader, writer = await asyncio.open_connection(sock=mine)
            sleeping = asyncio.create_task(clock.sleep(1))
            theirs.send(b"x")
            await reader.readexactly(1)
            now = clock.monotonic()
            writer.close()
            await writer.wait_closed()
        await sleeping
        return now

    now, _ = run(work)
    assert now == START


def test_timers_of_the_loop_are_in_real_time() -> None:
    async def work(clock: FakeClock) -> bool:
        async def tick() -> None:
            while True:
                await clock.sleep(DAY)

        ticking = asyncio.create_task(tick())
        await asyncio.sleep(0.001)
        ticking.cancel()
        return clock.monotonic() > START + DAY

    ran, _ = run(work)
    assert ran


def test_a_loop_without_sleepers_waits_for_the_real_world() -> None:
    async def work(_: FakeClock) -> str:
        return await asyncio.to_thread(lambda: "done")

    assert run(work)[0] == "done"


@pytest.mark.wall
def test_time_is_at_most_as_fast_as_asked_for() -> None:
    before = time.monotonic()
    run(lambda clock: clock.sleep(100), speed=1_000)
    assert time.monotonic() - before >= 0.1


@pytest.mark.wall
def test_at_a_finite_speed_clients_see_time_pass_between_wake_ups() -> None:
    """A client comes in the middle of a long sleep; the clock has moved by then."""

    async def work(clock: FakeClock) -> float:
        mine, theirs = socket.socketpair()
        with mine, theirs:
            reader, writer = await asyncio.open_connection(sock=mine)
            sleeping = asyncio.create_task(clock.sleep(DAY))
            asyncio.get_running_loop().call_later(0.02, theirs.send, b"x")
            await reader.readexactly(1)
            now = clock.monotonic()
            sleeping.cancel()
            writer.close()
            await writer.wait_closed()
        return now

    now, _ = run(work, speed=1_000)
    assert START + 10 <= now < START + DAY


def test_no_two_readings_are_the_same() -> None:
    clock = VirtualClock(1_760_000_000.0)
    readings = [clock.now() for _ in range(1000)]
    clock.advance(0.0001)
    readings += [clock.now() for _ in range(1000)]
    clock.advance(60)
    readings.append(clock.now())
    assert readings == sorted(set(readings))
    assert len({int(reading * 1e6) for reading in readings}) == len(readings)
    assert readings[-1] == clock.monotonic() == 1_760_000_060.0001


def test_sleeps_that_end_within_a_millisecond_end_together() -> None:
    async def work(clock: FakeClock) -> set[float]:
        async def wake(seconds: float) -> float:
            await clock.sleep(seconds)
            return clock.monotonic()

        return set(await asyncio.gather(*(wake(5 + each * 1e-5) for each in range(1, 90))))

    clock = VirtualClock(START)
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        assert runner.run(work(clock)) == {START + 5.001}
