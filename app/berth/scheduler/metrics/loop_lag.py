"""The lag of the event loop: what a long decision costs everybody else."""

from collections.abc import AsyncIterator
from typing import Final

from berth.runtime.clock import Clock
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics

PERIOD: Final = 1.0
"""Seconds between two measurements."""


async def measure_lag(metrics: SchedulerMetrics, *, clock: Clock) -> None:
    """Measure for ever."""
    async for lag in each_period(clock):
        metrics.loop_lagged(lag)


async def each_period(clock: Clock) -> AsyncIterator[float]:
    """Yield every PERIOD, for ever, by how many seconds that is late."""
    while True:
        now = clock.monotonic()
        due = now + PERIOD - now % PERIOD  # with whole seconds, when others wake up, too
        await clock.sleep(due - now)
        yield max(clock.monotonic() - due, 0.0)
