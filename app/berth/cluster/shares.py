"""Everybody's share of the event loop: a request is one step, and a large one is a long step.

The API server has threads, and queues for flows (priority and fairness). Here flows that take more
than a share of the loop wait in a queue, one step of one flow after the other; and after each step
they leave the loop to the others for as long as it took. So all of them together have half of it,
and others wait for one such step at most.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, Generic, TypeVar

from berth.cluster.access.flows import flow_of, is_exempt
from berth.cluster.access.users import User
from berth.cluster.fair_queue import FairQueue
from berth.runtime.clock import Clock

BURST: Final = 0.05
"""Seconds of the loop that a flow may take at once; an ordinary step takes less than a hundredth
of that."""

SHARE: Final = 0.5
"""The part of the loop that a flow may take for long."""

REMEMBERED: Final = 1_000
"""Flows whose use is remembered, before those that have not used more than they may are looked
for."""


T = TypeVar("T")


class Step(Generic[T]):
    """A coroutine to be awaited once. What it waits for (a webhook) is nobody's loss of time."""

    __slots__ = ("_clock", "_coroutine", "_took")

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], clock: Clock, took: Callable[[float], None]
    ) -> None:
        """*took* is told, whenever others get a turn, how long it had the event loop for itself."""
        self._coroutine = coroutine
        self._clock = clock
        self._took = took

    def __await__(self) -> Generator[Any, Any, T]:
        error: asyncio.CancelledError | None = None
        while True:
            started = self._clock.monotonic()
            try:
                if error is None:
                    waited_for = self._coroutine.send(None)
                else:
                    waited_for = self._coroutine.throw(error)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                self._took(self._clock.monotonic() - started)
            error = None
            try:
                yield waited_for
            except asyncio.CancelledError as exc:
                error = exc


class Shares:
    """Who has to wait for his next step. Exempt users never have to."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used: dict[str, tuple[float, float]] = {}
        """By flow: seconds beyond its share, and when that was so."""
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()
        self._rest = clock.monotonic()
        """Until when no step of a flow that has used up its share may begin."""
        self._letting: asyncio.Task[None] | None = None

    async def turn(self, user: User) -> None:
        """Return when *user* may have a step, which begins at once. Raises QueueFullError."""
        if is_exempt(user):
            return
        flow = flow_of(user)
        if not self._waiting.has(flow) and self._beyond(flow) <= BURST:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.push(flow, user.name, future)
        if self._letting is None or self._letting.done():
            self._letting = asyncio.create_task(self._let(), name="shares")
        await future

    def took(self, user: User, seconds: float) -> None:
        """Note how long a step of *user* was, or a part of it."""
        if is_exempt(user):
            return
        now, flow = self._clock.monotonic(), flow_of(user)
        if len(self._used) >= REMEMBERED and flow not in self._used:
            self._used = {each: used for each, used in self._used.items() if self._beyond(each)}
        beyond = self._beyond(flow) + seconds
        self._used[flow] = beyond, now
        if beyond > BURST:
            self._rest = max(self._rest, now) + seconds

    def _beyond(self, flow: str) -> float:
        """Return the seconds that *flow* had beyond its share."""
        seconds, then = self._used.get(flow, (0.0, 0.0))
        return max(seconds - SHARE * (self._clock.monotonic() - then), 0.0) if seconds else 0.0

    async def _let(self) -> None:
        """Let those who wait have their steps, one after the other."""
        while (future := self._waiting.pop()) is not None:
            while (left := self._rest - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)
            if not future.done():  # it may have been given up
                future.set_result(None)
                await asyncio.sleep(0)  # the step begins, and is noted
                await asyncio.sleep(0)
