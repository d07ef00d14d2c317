"""A shadow of a scheduler that decides as it does, and of one that does not."""

import random
from collections import Counter

import pytest

from berth.insight.explain.comparison import Agreement
from berth.insight.shadow.comparisons import Order, agrees
from tests.builders import node, pod
from tests.insight.shadow.watching import World
from tests.insight.shadow.workload import nodes, pods


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


async def test_it_agrees_about_pods_that_others_are_evicted_for() -> None:
    """The room that is made is kept for them, here and there."""
    world = World()
    world.put(*(node(f"n{i}", cpu=4, zone=f"z{i % 2}") for i in range(6)))
    world.put(*(pod(f"low{i}", uid=f"low{i}", cpu=2, priority=1) for i in range(12)))
    await world.run(at_once=4)
    high = [pod(f"high{i}", uid=f"high{i}", cpu=3, priority=9) for i in range(4)]
    world.put(*high, *(pod(f"late{i}", uid=f"late{i}", cpu=1, priority=1) for i in range(4)))

    found = await world.run(at_once=4)

    assert [each.words for each in found if not agrees(each)] == []
    assert world.there.placements().keys() >= {each.metadata.name for each in high}
    by_pod = Counter(each.pod for each in found if not each.chosen)
    assert by_pod.keys() >= {each.key for each in high}
