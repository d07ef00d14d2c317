"""The watch over the scheduling event loop, from the thread that renews the lease.

A thread of its own renews while the loop is late, and would also while a plugin keeps the loop for
ever. Then the lease is let expire, so that another replica takes over.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from berth.runtime.clock import Clock
from berth.runtime.loop_thread import call_soon
from berth.service.leaderelection.candidate import Timing

MOST_COMPUTED: Final = 1.0
MOST_BLOCKED: Final = 4.0
"""In lease durations: how much CPU time one turn of the loop may take, and how long it may last.

A process that gets a twentieth of a core is late, but its turns take no more CPU time than others.
"""


class LoopWatch:
    """Watches *loop*, whose thread has taken *cpu* seconds of CPU time so far."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        timing: Timing,
        clock: Clock,
        cpu: Callable[[], float],
    ) -> None:
        self._loop = loop
        self._timing = timing
        self._clock = clock
        self._cpu = cpu
        self._has_turned = True
        self._cpu_before = 0.0
        self._asked_at = 0.0
        self._waited = 0.0

    def why_stuck(self) -> str:
        """Return what is wrong with the loop, "" if nothing is; to be asked every retry period."""
        now = self._clock.monotonic()
        if self._has_turned:
            self._has_turned = False
            self._cpu_before, self._asked_at, self._waited = self._cpu(), now, 0.0
            call_soon(self._loop, self._turned)
            return ""
        # as in the watchdog, the time in which this process stood still does not count
        self._waited += min(now - self._asked_at, 2 * self._timing.retry_period)
        self._asked_at = now
        computed = self._cpu() - self._cpu_before
        if computed > MOST_COMPUTED * self._timing.lease_seconds:
            return f"the event loop has computed for {computed:.0f} s without a turn"
        if self._waited > MOST_BLOCKED * self._timing.lease_seconds:
            return f"the event loop has not turned for {self._waited:.0f} s"
        return ""

    def _turned(self) -> None:
        self._has_turned = True
