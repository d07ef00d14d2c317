"""Time that passes only while nothing else is to be done.

What runs on a :class:`VirtualTimeLoop` with its clock, such as a whole embedded cluster, lives
hours in seconds: when everybody sleeps, the clock jumps to the first who wakes. What does not sleep
by the clock takes real time, and none of the clock's:

- Sockets are served as ever. With a finite speed their clients see time pass meanwhile.
- While an executor's thread works, the clock stands still: nothing may time out or be renewed
  because a disk is slow.
- Timers of the event loop (``asyncio.sleep``, ``asyncio.timeout``) stay in real time. They are for
  what waits on the real world.
"""

import asyncio
import math
import selectors
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final, TypeVar, TypeVarTuple

from berth.runtime.clock import FakeClock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CATCH_UP: Final = 0.5
"""Seconds. A loop that was busy for longer lets go of the rest of its delay: it does not run as
fast as it can for minutes because a client kept it busy."""


READING: Final = 2e-6
"""Seconds between two readings of a clock that stands still; a double still tells them apart."""


TICKS: Final = 1000
"""In a second. Sleeps end with one of them, so that those that end at nearly the same time cost
one move of the clock."""


class VirtualClock(FakeClock):
    """A clock of which no two readings are the same, as with a real one.

    Events are named by the time, and sorted by it. Only :meth:`now` is about them: sleeps end by
    :meth:`monotonic`.
    """

    _last_reading = 0.0

    async def _sleep_until(self, moment: float) -> None:
        await super()._sleep_until(math.ceil(moment * TICKS) / TICKS)

    def now(self) -> float:
        self._last_reading = max(super().now(), self._last_reading + READING)
        return self._last_reading


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Moves *clock* to its next wake-up whenever there is nothing else to do.

    At most *speed* times as fast as real time. With the default it never waits.
    """

    def __init__(self, clock: FakeClock, *, speed: float = math.inf) -> None:
        self._idle = _Selector(clock, speed=speed)
        super().__init__(self._idle)

    def set_speed(self, speed: float) -> None:
        """From now on, be at most *speed* times as fast as real time."""
        self._idle.set_speed(speed)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = super().run_in_executor(executor, func, *args)
        self._idle.threads += 1
        future.add_done_callback(self._end_of_work)
        return future

    def _end_of_work(self, _future: asyncio.Future[Any]) -> None:
        self._idle.threads -= 1


class _Selector(selectors.DefaultSelector):
    """What the loop blocks in when it has nothing to do."""

    def __init__(self, clock: FakeClock, *, speed: float) -> None:
        super().__init__()
        self.threads = 0
        """How many calls an executor has under way."""
        self._clock = clock
        self._speed = speed
        self._virtual, self._real = clock.monotonic(), time.monotonic()
        """Two moments that are the same; what comes later is measured from them."""

    def set_speed(self, speed: float) -> None:
        self._speed = speed
        self._restart()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for sockets for *timeout* seconds, or until the clock has been moved."""
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            return events
        due = self._clock.next_wakeup()
        if due is None or self.threads:
            events = super().select(timeout)
            self._restart()
            return events
        wait = self._real + (due - self._virtual) / self._speed - time.monotonic()
        if wait > 0 and (timeout is None or wait < timeout):
            events = super().select(wait)
        elif wait > 0:
            events = super().select(timeout)
        self._move(due)
        return events

    def _move(self, due: float) -> None:
        """Move the clock to where it is to be by now, at most to *due*."""
        now = time.monotonic()
        earned = (now - self._real) * self._speed if self._speed < math.inf else math.inf
        if self._virtual + earned < due:
            self._clock.advance_to(self._virtual + earned)
            return
        self._clock.advance_to(due)
        passed = (due - self._virtual) / self._speed
        self._virtual, self._real = due, max(self._real + passed, now - CATCH_UP)

    def _restart(self) -> None:
        self._virtual, self._real = self._clock.monotonic(), time.monotonic()
