"""Writes that begin when lanes want it, and end when the test wants it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from berth.kube.client.writes.lanes import Limits, WriteLanes
from berth.runtime.clock import FakeClock


@asynccontextmanager
async def running_lanes(limits: Limits) -> AsyncIterator[WriteLanes]:
    lanes = WriteLanes(clock=FakeClock(), limits=limits)
    task = asyncio.create_task(lanes.run(), name="lanes")
    try:
        yield lanes
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Server:
    """Makes writes that note when they begin, and end when they are let."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self._held: dict[str, asyncio.Event] = {}

    def quick(self, name: str) -> Callable[[], Awaitable[str]]:
        async def write() -> str:
            self.began.append(name)
            return f"{name} done"

        return write

    def held(self, name: str) -> Callable[[], Awaitable[str]]:
        self._held[name] = asyncio.Event()

        async def write() -> str:
            self.began.append(name)
            await self._held[name].wait()
            return f"{name} done"

        return write

    def release(self, name: str) -> None:
        self._held[name].set()


def submit_event(lanes: WriteLanes, write: Callable[[], Awaitable[object]]) -> bool:
    """Submit an event that no other is written together with."""
    return lanes.submit_event("event", lambda _events: write())


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
