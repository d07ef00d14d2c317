"""How late the event loop comes back: what a long decision costs everybody else."""

from typing import Final

from berth.clock import Clock
from berth.metrics.scheduler_metrics import SchedulerMetrics

PERIOD: Final = 1.0
"""Seconds between two measurements."""


async def measure_lag(metrics: SchedulerMetrics, *, clock: Clock) -> None:
    """Measure for ever."""
    while True:
        due = clock.monotonic() + PERIOD
        await clock.sleep(PERIOD)
        metrics.loop_lagged(max(clock.monotonic() - due, 0.0))
