"""The extender benchmark on a small cluster: everything is counted; how fast is not asserted."""

import pytest

from berth.bench.extender import measure
from berth.clock import RealClock


@pytest.mark.wall
@pytest.mark.slow
async def test_every_question_is_timed() -> None:
    figures = {
        each.name: each async for each in measure(nodes=30, repetitions=5, clock=RealClock())
    }

    assert list(figures) == [
        *(
            f"{what}, {which}"
            for what in ("filter", "prioritize", "filter and prioritize")
            for which in ("p50", "p90", "p99", "max")
        ),
        "CPU of the extender for filter and prioritize",
        "filter with whole nodes, nodes as known",
        "longest wait of others meanwhile, nodes as known",
        "filter with whole nodes, nodes all newer",
        "longest wait of others meanwhile, nodes all newer",
    ]
    assert all(each.median > 0 for each in figures.values())
    assert figures["filter with whole nodes, nodes as known"].outcome == "0.1 MB"
