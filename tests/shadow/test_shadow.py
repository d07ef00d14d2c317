"""A shadow of a scheduler that decides as it does, and of one that does not."""

import random
from collections import Counter

import pytest

from berth.explain.comparison import Agreement
from berth.shadow.comparisons import Order
from tests.shadow.watching import World
from tests.shadow.workload import nodes, pods


@pytest.mark.parametrize("at_once", [1, 8])
async def test_it_agrees_with_a_scheduler_that_decides_as_it_does(at_once: int) -> None:
    rng = random.Random(1)
    world = World()
    world.put(*nodes(rng, 40), *pods(rng, 300))

    found = await world.run(at_once=at_once)

    results = Counter(each.result for each in found)
    assert set(results) <= {Agreement.AGREED, Agreement.TIE, Agreement.NOWHERE}, [
        each.words for each in found if not each.result.is_agreement
    ]
    assert all(each.same_reasons is not False for each in found)
    placed = world.there.placements()
    assert world.shadow.comparisons.made >= 300
    assert {each.pod: each.chosen for each in found if each.chosen} == {
        f"default/{name}": on for name, on in placed.items()
    }
    in_queue_order = Counter(each.order for each in found)[Order.QUEUE]
    assert bool(in_queue_order) == (at_once > 1)
