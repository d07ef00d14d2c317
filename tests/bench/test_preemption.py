"""The preemption benchmark measures what it says."""

from berth.bench import preemption
from berth.clock import FakeClock
from berth_plugins.registry import IN_TREE


def test_every_attempt_but_the_hopeless_ones_finds_victims() -> None:
    results = list(preemption.run(IN_TREE, clock=FakeClock(), num_nodes=12, repetitions=2))
    assert [(result.workload, result.placed) for result in results] == [
        ("preemption", 2),
        ("preemption, nominees waiting", 2),
        ("preemption, of no help", 0),
        ("preemption, required zone spread", 2),
        ("preemption, required zone anti-affinity", 2),
    ]
