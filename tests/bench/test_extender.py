"""The extender benchmark on a small cluster: everything is counted; how fast is not asserted."""

import pytest

from berth.bench.extender import measure
from berth.clock import RealClock


@pytest.mark.wall
@pytest.mark.slow
async def test_every_question_is_timed() -> None:
    result = await measure(nodes=30, repetitions=5, clock=RealClock())

    assert [(times.what, len(times.milliseconds)) for times in result.times] == [
        ("filter", 5),
        ("prioritize", 5),
        ("filter and prioritize", 5),
    ]
    assert all(0 < times.percentile(50) <= times.percentile(99) for times in result.times)
    assert result.cpu > 0
    assert [stall.size // 30 > 3_000 for stall in result.stalls] == [True, True]
    assert all(stall.longest_wait > 0 for stall in result.stalls)
