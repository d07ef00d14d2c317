"""The benchmark of pod groups on a small cluster: all are placed; how fast is not asserted."""

from berth.runtime.clock import FakeClock
from berth.tools.bench.groups import Sizes, measure
from berth_plugins.registry import IN_TREE

SIZES = Sizes(trial=4, trials=2, gangs=3, gang=2, created=5, waiting=2, singles=3, seconds=5)


class Ticking(FakeClock):
    """Moves on whenever it is asked, so that everything takes some time."""

    def monotonic(self) -> float:
        self.advance(0.001)
        return super().monotonic()


async def test_gangs_that_fit_are_placed_and_those_that_wait_are_not() -> None:
    figures = [
        each
        async for each in measure(IN_TREE, clock=Ticking(), num_nodes=12, num_pods=5, sizes=SIZES)
    ]
    assert [figure.outcome for figure in figures] == [
        *["4/4 placed"] * 5,
        "6/6 pods bound",
        "5/5 ready",
        "3/3 bound",
        "0 bound",
    ]
