"""The extender benchmark on a small cluster: everything is counted; how fast is not asserted."""

import pytest

from berth.runtime.clock import RealClock
from berth.tools.bench.extender import measure


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
    assert all(figure.median > 0 for figure in figures.values())
    assert figures["filter with whole nodes, nodes as known"].outcome == "0.1 MB"
