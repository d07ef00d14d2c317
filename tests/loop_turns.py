"""How long one turn of the event loop takes, and how many there are: probes of tests."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class LoopTurns:
    """What was seen of the event loop's turns so far."""

    count: int = 0
    longest: float = 0.0
    """Seconds of this thread's CPU time between two turns, so that a busy machine adds nothing."""


@asynccontextmanager
async def watched_loop() -> AsyncIterator[LoopTurns]:
    """Yield the turns of the running asyncio loop while the block runs.

    Compare ``longest`` with that of an ordinary input in the same test, or ``count`` before and
    after; never with a number of seconds. What earlier tests have left is out of the garbage
    collector's view from then on, as a scheduler's own objects are.
    """
    turns = LoopTurns()
    gc.collect()
    gc.freeze()
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    select = selector.select
    began = time.thread_time()

    def timed_select(timeout: float | None = None) -> Any:
        nonlocal began
        turns.count += 1
        turns.longest = max(turns.longest, time.thread_time() - began)
        found = select(timeout)
        began = time.thread_time()
        return found

    selector.select = timed_select
    try:
        yield turns
        await asyncio.sleep(0)
    finally:
        del selector.select


async def turns_during(work: Callable[[], Any]) -> int:
    """Return how many turns others get while *work* is awaited."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count(), name="others")
    await asyncio.sleep(0)
    turns = 0
    await work()
    counting.cancel()
    return turns
