"""What moves waiting pods when time passes (spec §3.7)."""

from math import floor
from typing import Final

from berth.clock import Clock
from berth.queue.scheduling_queue import SchedulingQueue

LEFTOVERS_PERIOD: Final = 30.0
"""Seconds between two flushes of pods that waited too long."""


async def run_flushers(queue: SchedulingQueue, clock: Clock) -> None:
    """Flush forever: backoff at every whole second, leftovers every 30 seconds."""
    leftovers_due = clock.monotonic() + LEFTOVERS_PERIOD
    while True:
        now = clock.now()
        await clock.sleep(floor(now) + 1 - now)
        queue.flush_backoff_completed()
        if clock.monotonic() >= leftovers_due:
            leftovers_due += LEFTOVERS_PERIOD
            queue.flush_unschedulable_pods_leftover()
