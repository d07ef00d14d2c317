"""The steady benchmark on a small cluster: every pod is timed; how fast is not asserted."""

import pytest

from berth.runtime.clock import RealClock
from berth.tools.bench.steady import Settings, measure

SMALL = Settings(nodes=5, rate=20, seconds=1, lifetime=5, is_poisson=True)


@pytest.mark.wall
@pytest.mark.slow
async def test_every_pod_is_timed() -> None:
    figures = {each.name: each async for each in measure(SMALL, clock=RealClock())}

    assert list(figures) == [
        *(f"create to bound, {which}" for which in ("p50", "p90", "p99", "max")),
        "scheduler CPU",
        "scheduler CPU per pod",
        "driver late, max",
    ]
    bound, created = figures["create to bound, p50"].outcome.removesuffix(" bound").split("/")
    assert bound == created
    assert 0 < figures["create to bound, p50"].median <= figures["create to bound, max"].median
