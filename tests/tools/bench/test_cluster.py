"""The cluster benchmark on a small one: everything is measured; how fast is not asserted."""

import pytest

from berth.runtime.clock import RealClock
from berth.tools.bench.cluster import Settings, measure


@pytest.mark.wall
@pytest.mark.slow
async def test_every_measurement_is_made() -> None:
    settings = Settings(
        nodes=5, pods=60, watchers=3, changes=70, gets=10, idle_seconds=0.5, is_kept=True
    )

    figures = [each async for each in measure(settings, clock=RealClock())]

    assert [figure.label for figure in figures if "idle, per renewal" not in figure.name] == [
        "nodes registered",
        "CPU of that and of the start",
        "idle, pods=0",
        "memory, pods=0",
        "pods created",
        "pods created and reported as running",
        "CPU of a pod until then, without heartbeats",
        "idle, pods=60",
        "memory, pods=60",
        *(f"get a pod, {which}" for which in ("p50", "p90", "p99", "max")),
        *(
            f"{what}{which}"
            for what in ("list all pods", "list all pods as a Table", "the same in pages of 500")
            for which in ("", ", CPU", ", a get meanwhile, p50", ", a get meanwhile, max")
        ),
        *(f"change told to 3 watchers, {which}" for which in ("p50", "p90", "p99", "max")),
        "watch events delivered",
        "CPU of a watch event",
        "peak memory",
        "started again",
        "peak memory after that",
    ]
    assert all(figure.values[0] >= 0 for figure in figures)
