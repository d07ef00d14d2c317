"""The benchmark of the start on a small cluster: all is timed; how fast is not asserted."""

import pytest

from berth.bench.startup import measure
from berth.clock import RealClock


@pytest.mark.wall
@pytest.mark.slow
async def test_start_and_takeover_are_timed() -> None:
    figures = [each async for each in measure(nodes=3, command="", clock=RealClock())]

    assert [each.name for each in figures] == [
        "process start to first bind",
        "process start to first bind, CPU",
        "Lease acquired to first bind",
    ]
    start, cpu, _ = (each.median for each in figures)
    assert 0 < cpu < start * 4
