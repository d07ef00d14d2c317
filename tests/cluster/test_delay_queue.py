"""Keys that are due at some time."""

import asyncio

from berth.cluster.delay_queue import DelayQueue
from berth.runtime.clock import FakeClock


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_keys_come_when_they_are_due_in_order() -> None:
    clock = FakeClock(100.0)
    queue: DelayQueue[str] = DelayQueue(clock)
    queue.add("late", delay=2.0)
    queue.add("soon", delay=1.0)
    taking = asyncio.create_task(queue.take())
    await settle()
    clock.advance(0.5)
    await settle()
    assert not taking.done()
    clock.advance(1.5)
    assert await taking == ["soon", "late"]


async def test_an_earlier_key_ends_the_wait() -> None:
    clock = FakeClock(100.0)
    queue: DelayQueue[str] = DelayQueue(clock)
    queue.add("late", delay=60.0)
    taking = asyncio.create_task(queue.take())
    await settle()
    queue.add("now")
    assert await taking == ["now"]
    assert len(queue) == 1


async def test_the_earliest_time_that_was_asked_for_counts() -> None:
    clock = FakeClock(100.0)
    queue: DelayQueue[str] = DelayQueue(clock)
    queue.add("a", delay=1.0)
    queue.add("a", delay=5.0)
    queue.add("b", delay=5.0)
    queue.add("b", delay=1.0)
    clock.advance(1.0)
    assert queue.take_due() == ["a", "b"]
    clock.advance(9.0)
    assert queue.take_due() == []


async def test_keys_with_slack_become_due_together_and_never_early() -> None:
    clock = FakeClock(100.0)
    queue: DelayQueue[float] = DelayQueue(clock)
    delays = [1.0625, 1.125, 1.1875, 1.25]
    for delay in delays:
        queue.add(delay, delay=delay, slack=0.25)
    clock.advance(1.25 - 0.03125)
    assert queue.take_due() == []
    clock.advance(0.03125)
    assert queue.take_due() == delays


async def test_who_waits_sleeps_until_something_is_due() -> None:
    clock = FakeClock(100.0)
    queue: DelayQueue[str] = DelayQueue(clock)
    queue.add("a", delay=1.0)
    taking = asyncio.create_task(queue.take())
    await settle()
    queue.add("b", delay=0.5)  # the sleep of before is cancelled, and must not wake this one
    await settle()
    assert clock.next_wakeup() == 100.5
    clock.advance(0.5)
    assert await taking == ["b"]
