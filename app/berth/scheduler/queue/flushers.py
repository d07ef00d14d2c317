"""Flushers: they move waiting pods when time passes (spec §3.7)."""

from math import floor
from typing import Final, Protocol

from berth.runtime.clock import Clock

BACKOFF_PERIOD: Final = 1.0
"""Seconds between two flushes of pods whose backoff is over."""
LEFTOVERS_PERIOD: Final = 30.0
"""Seconds between two flushes of pods that waited too long."""


class Flushes(Protocol):
    """A queue, or who stands before it."""

    def flush_backoff_completed(self) -> None: ...

    def flush_unschedulable_pods_leftover(self) -> None: ...


async def run_flushers(queue: Flushes, clock: Clock, *, aligned: bool = True) -> None:
    """Flush forever: backoff every second, leftovers every 30 seconds.

    *aligned*: at every whole second, because that is when backoffs end.
    """
    leftovers_due = clock.monotonic() + LEFTOVERS_PERIOD
    while True:
        now = clock.now()
        await clock.sleep(floor(now) + 1 - now if aligned else BACKOFF_PERIOD)
        queue.flush_backoff_completed()
        if clock.monotonic() >= leftovers_due:
            leftovers_due += LEFTOVERS_PERIOD
            queue.flush_unschedulable_pods_leftover()
