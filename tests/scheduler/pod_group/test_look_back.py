"""A group finds a place that greed misses; and where greed finds one, nothing changes."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import node
from tests.scheduler.pod_group.building import composite, group, group_harness, member
from tests.scheduler.pod_group.topologies import GATES, LOOK_BACK, Topology, placed, planted, small


def check(topology: Topology, on: dict[str, str]) -> None:
    """Raise AssertionError unless enough pods are in one rack, each where it has room."""
    if not on:
        return
    assert len(on) >= topology.min_count
    assert len({name.partition("-")[0] for name in on.values()}) == 1
    sizes = {f"m{number:03}": size for number, size in enumerate(topology.pods)}
    for number, rack in enumerate(topology.racks):
        for place, free in enumerate(rack):
            there = [sizes[pod] for pod, name in on.items() if name == f"r{number}-{place}"]
            for room, *taken in zip(free, *there, strict=True):
                assert sum(taken) <= room


@pytest.mark.parametrize(
    ("topology", "has_place"),
    [
        pytest.param(
            Topology((((5, 0), (4, 0)),), ((2, 0), (2, 0), (5, 0)), 3),
            True,
            id="the large pod goes first",
        ),
        pytest.param(
            Topology((((6, 0), (6, 0)),), ((2, 0), (2, 0), (2, 0), (3, 0), (3, 0)), 5),
            True,
            id="no order of greed does, another node of one pod does",
        ),
        pytest.param(
            Topology((((2, 0), (2, 0)), ((5, 0), (4, 0))), ((2, 0), (2, 0), (5, 0)), 3),
            True,
            id="in the second rack",
        ),
        pytest.param(
            Topology((((4, 0), (4, 0)),), ((3, 0), (3, 0), (1, 0), (2, 0)), 3),
            True,
            id="one pod is left out",
        ),
        pytest.param(
            Topology((((4, 0), (4, 0)),), ((3, 0), (3, 0), (2, 0)), 3),
            False,
            id="there is room in all, and no place",
        ),
        pytest.param(
            Topology((((1, 0), (1, 0)),), ((3, 0), (3, 0)), 2), False, id="there is no room at all"
        ),
    ],
)
async def test_a_place_is_found_if_there_is_one(topology: Topology, has_place: bool) -> None:
    assert topology.has_place() is has_place
    on = await placed(topology, LOOK_BACK)
    check(topology, on)
    assert bool(on) is has_place


@given(st.integers(0, 1 << 30))
@settings(max_examples=40, deadline=None)
async def test_it_finds_what_all_ways_find_and_changes_nothing_that_greed_finds(seed: int) -> None:
    topology = small(Random(seed))
    greedy = await placed(topology)
    on = await placed(topology, LOOK_BACK)
    check(topology, on)
    assert bool(on) is topology.has_place()
    if greedy:
        assert on == greedy


async def test_a_large_group_gives_up_in_the_end() -> None:
    topology = planted(Random(1), racks=2, nodes=8, pods=40, slack=0.0)
    check(topology, await placed(topology, LOOK_BACK))


@pytest.mark.parametrize("is_part", [False, True])
async def test_a_group_that_is_part_of_another_does_not_look_back(is_part: bool) -> None:
    harness = group_harness(*GATES, "CompositePodGroup", LOOK_BACK, release="1.37")
    harness.put(node("n1", cpu=5), node("n2", cpu=4))
    if is_part:
        harness.put(composite(min_count=1))
    harness.put(group(min_count=3, parent="root" if is_part else ""))
    harness.put(*(member(name, cpu=cpu) for name, cpu in (("a", 2), ("b", 2), ("c", 5))))
    await harness.pass_time(3)
    assert len(harness.placements()) == (0 if is_part else 3)
