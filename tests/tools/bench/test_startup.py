"""The benchmark of the start on a small cluster: all is timed; how fast is not asserted."""

import pytest

from berth.runtime.clock import RealClock
from berth.tools.bench.startup import measure


@pytest.mark.wall
@pytest.mark.slow
async def test_start_and_takeover_are_timed() -> None:
    figures = [each async for each in measure(nodes=3, command="", clock=RealClock())]

    assert [figure.name for figure in figures] == [
        "process start to first bind",
        "process start to first bind, CPU",
        "Lease acquired to first bind",
    ]
    start, cpu, _ = (figure.median for figure in figures)
    assert 0 < cpu < start * 4
