"""Time, handed in. Nobody else calls ``time.*``, so that tests can own it."""

import asyncio
import heapq
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Protocol


class Clock(Protocol):
    """What code that needs time is given."""

    def now(self) -> float:
        """Return the wall-clock time in seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Return a time in seconds that never goes back; only differences mean anything."""
        ...

    def cpu_time(self) -> float:
        """Return the CPU time that this thread has taken, in seconds.

        It never runs faster than :meth:`monotonic`, and stands still while the thread waits for a
        core.
        """
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after *seconds* of this clock."""
        ...


class RealClock:
    """The machine's clock, asked directly: it is fifty times per pod."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.perf_counter)
    cpu_time = staticmethod(time.thread_time)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class CpuClock(RealClock):
    """For benchmarks: :meth:`monotonic` is the CPU time that this process has taken."""

    monotonic = staticmethod(time.process_time)


class BootClock(RealClock):
    """The machine's clock; its :meth:`monotonic` goes on while the machine is suspended."""

    # Elsewhere than on Linux the plain one does already, or there is nothing better.
    monotonic = staticmethod(
        partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    )


def cpu_time_of_this_thread() -> Callable[[], float]:
    """Return what tells any thread how many seconds of CPU time the calling one has taken.

    Where the system does not tell (macOS), it is the time of the whole process.
    """
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    if clock_of is None:
        return time.process_time
    return partial(time.clock_gettime, clock_of(threading.get_ident()))


class FakeClock:
    """A clock that stands still until somebody moves it with :meth:`advance`.

    For tests, and for simulations, which do not wait for time to pass. On a
    :class:`berth.runtime.virtual_time.VirtualTimeLoop` it moves by itself.
    """

    def __init__(self, start: float = 1_000_000_000.0) -> None:
        self._now = start
        self._sequence = 0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def cpu_time(self) -> float:
        return self.monotonic()

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        await self._sleep_until(self._now + seconds)

    async def _sleep_until(self, moment: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sequence += 1
        heapq.heappush(self._sleepers, (moment, self._sequence, future))
        await future

    def next_wakeup(self) -> float | None:
        """Return when, by :meth:`monotonic`, the first sleep ends; None if nobody sleeps."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def advance(self, seconds: float) -> None:
        """Move time forward and wake everyone whose sleep ends by then, in order of wake-up."""
        self.advance_to(self._now + seconds)

    def advance_to(self, moment: float) -> None:
        """Move time forward to *moment*, by :meth:`monotonic`; nothing if that is past."""
        self._now = max(self._now, moment)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)


def rfc3339(seconds: float) -> str:
    """Format a wall-clock time as ``metav1.Time`` does: whole seconds, UTC, ``Z``."""
    return _in_whole_seconds(int(seconds))


@lru_cache(maxsize=16)  # a busy second is formatted thousands of times
def _in_whole_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """Format a wall-clock time as ``metav1.MicroTime`` does: six decimals, UTC, ``Z``."""
    whole, micro = divmod(round(seconds * 1e6), 1_000_000)
    return f"{_in_whole_seconds(whole)[:-1]}.{micro:06d}Z"
