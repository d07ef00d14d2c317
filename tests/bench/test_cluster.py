"""The cluster benchmark on a small one: everything is measured; how fast is not asserted."""

import pytest

from berth.bench.cluster import Settings, measure
from berth.clock import RealClock


@pytest.mark.wall
@pytest.mark.slow
async def test_every_measurement_is_made() -> None:
    settings = Settings(
        nodes=5, pods=60, watchers=3, changes=4, gets=10, idle_seconds=0.5, is_kept=True
    )

    rows = [row async for row in measure(settings, clock=RealClock())]

    assert [row.what for row in rows] == [
        "nodes registered",
        "idle, 5 nodes, 0 pods",
        "pods created",
        "pods created and reported as running",
        "CPU of a pod until then, without heartbeats",
        "idle, 5 nodes, 60 pods",
        "get a pod",
        "list all pods",
        "list all pods as a Table",
        "the same in pages of 500",
        "change told to 3 watchers",
        "watch events delivered",
        "memory, at most",
        "started again",
        "memory, at most",
    ]
    assert all(any(digit in "123456789" for digit in row.value) for row in rows)
