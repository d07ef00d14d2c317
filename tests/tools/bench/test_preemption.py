"""The preemption benchmark measures what it says."""

import pytest

from berth.runtime.clock import FakeClock, RealClock
from berth.tools.bench import preemption, preemptors
from berth.tools.bench.throughput import Settings
from berth_plugins.registry import IN_TREE


def test_every_attempt_but_the_hopeless_ones_finds_victims() -> None:
    results = list(preemption.run(IN_TREE, clock=FakeClock(), num_nodes=12, repetitions=2))
    assert [(result.workload, result.placed) for result in results] == [
        ("preemption", 2),
        ("preemption, nominees waiting", 2),
        ("preemption, replicas, nominees waiting", 2),
        ("preemption, of no help", 0),
        ("preemption, required zone spread", 2),
        ("preemption, required zone anti-affinity", 2),
    ]


@pytest.mark.wall
@pytest.mark.slow
async def test_every_preemptor_of_a_process_is_bound() -> None:
    settings = Settings(nodes=6, pods=2)
    figures = [each async for each in preemptors.measure(settings, clock=RealClock())]

    assert [figure.outcome.split(", ")[:2] for figure in figures] == [
        ["2/2 bound", "6 victims"]
    ] * 2
    assert all(figure.median > 0 for figure in figures)
