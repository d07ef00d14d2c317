"""The steady benchmark on a small cluster: every pod is timed; how fast is not asserted."""

from dataclasses import replace

import pytest

from berth.runtime.clock import RealClock
from berth.tools.bench.questions import PATHS
from berth.tools.bench.steady import NOTHING, START, WOKEN, Settings, measure

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


@pytest.mark.wall
@pytest.mark.slow
async def test_the_scheduler_is_asked_while_pods_wait_and_nodes_change() -> None:
    settings = replace(SMALL, seconds=10, waiting=20, node_changes=10, measures_turns=True)
    figures = [each async for each in measure(settings, clock=RealClock())]
    longest = {each.at["meanwhile"]: each for each in figures if each.name == "longest turn"}

    assert [*longest][:3] == [START, NOTHING, "/metrics"]
    assert longest.keys() <= {START, NOTHING, *PATHS, "/simulate", "SIGUSR2", WOKEN}
    assert longest[START].median > 0
