"""Keys that are due at some time: the one place where controllers and kubelets wait."""

import asyncio
import heapq
import math
from collections.abc import Hashable
from typing import Generic, TypeVar

from berth.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)


class DelayQueue(Generic[K]):
    """Holds each key once, with the earliest time that it was asked for.

    One task takes; anyone on the loop adds. Thousands of keys cost one sleeper.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[K, float] = {}
        self._keys_at: dict[float, list[K]] = {}
        """By time; also keys that are due sooner by now, or were discarded."""
        self._times: list[float] = []
        """A heap of those times."""
        self._waiter: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: K, *, delay: float = 0.0, slack: float = 0.0) -> None:
        """Make *key* due in *delay* seconds, unless it is due sooner already.

        It may be up to *slack* seconds later: keys with the same slack become due together, so that
        many of them cost one wake-up.
        """
        due = self._clock.monotonic() + max(delay, 0.0)
        if slack:
            due = math.ceil(due / slack) * slack
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        keys = self._keys_at.get(due)
        if keys is not None:
            keys.append(key)
            return
        self._keys_at[due] = [key]
        heapq.heappush(self._times, due)
        if self._times[0] == due:
            _wake(self._waiter)

    def discard(self, key: K) -> None:
        """Forget *key*."""
        self._due.pop(key, None)

    def take_due(self) -> list[K]:
        """Return the keys that are due now, in order, and forget them."""
        now = self._clock.monotonic()
        keys = []
        while self._times and self._times[0] <= now:
            due = heapq.heappop(self._times)
            for key in self._keys_at.pop(due):
                if self._due.get(key) == due:
                    del self._due[key]
                    keys.append(key)
        return keys

    async def take(self) -> list[K]:
        """Wait until something is due and return all that is."""
        while not (keys := self.take_due()):
            await self._wait()
        return keys

    async def _wait(self) -> None:
        """Return when the first key may be due, or an earlier one has come."""
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        sleeper = None
        if self._times:
            seconds = self._times[0] - self._clock.monotonic()
            sleeper = asyncio.create_task(self._clock.sleep(seconds), name="delay queue: sleep")
            sleeper.add_done_callback(lambda _: _wake(waiter))
        try:
            await waiter
        finally:
            if sleeper is not None:
                sleeper.cancel()


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
