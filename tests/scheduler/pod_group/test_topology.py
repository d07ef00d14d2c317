"""Groups that go to one rack as a whole (spec G10, G19 14-18)."""

import pytest

from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.pod_group.building import condition_of, group, group_harness, member, members

TOPOLOGY = "TopologyAwareWorkloadScheduling"


def racks(**sizes: int) -> Harness:
    """Make a cluster of racks with so many nodes of 2 CPUs each."""
    harness = group_harness(TOPOLOGY)
    for rack, size in sizes.items():
        for number in range(size):
            harness.put(node(f"{rack}{number}", cpu="2", labels={"rack": rack}))
    return harness


def rack_of(harness: Harness) -> set[str]:
    """Return the racks of the pods of the group."""
    return {
        where[0] for name, where in harness.placements().items() if not name.startswith("other")
    }


async def test_the_rack_is_taken_that_will_be_fuller() -> None:
    harness = racks(a=2, b=3)
    harness.put(group(min_count=3, topology="rack"), *members("x", "y", "z", cpu="1"))
    await harness.until_idle()
    assert rack_of(harness) == {"a"}  # 3 of 4 CPUs, rather than 3 of 6
    assert len(harness.placements()) == 3


async def test_what_runs_there_already_counts() -> None:
    harness = racks(a=2, b=3)
    harness.put(pod("other1", cpu="1", node="b0"), pod("other2", cpu="1", node="b1"))
    harness.put(group(min_count=3, topology="rack"), *members("x", "y", "z", cpu="1"))
    await harness.until_idle()
    assert rack_of(harness) == {"b"}  # 5 of 6 CPUs


async def test_of_three_racks_the_fullest_of_those_that_fit() -> None:
    harness = racks(a=4, b=3, c=1)
    harness.put(group(min_count=4, topology="rack"))
    harness.put(*members("w", "x", "y", "z", cpu="1"))
    await harness.until_idle()
    assert rack_of(harness) == {"b"}


async def test_a_gang_that_no_rack_holds() -> None:
    harness = racks(a=1, b=1)
    harness.put(group(min_count=3, topology="rack"), *members("x", "y", "z", cpu="1"))
    await harness.pass_time(3)
    assert harness.placements() == {}
    condition = condition_of(harness)
    assert condition is not None
    assert condition.message == (
        "0/2 placements are available, first placement status: pod group is unschedulable"
    )
    [refused] = [
        found.message
        for found in harness.cluster.conditions.values()
        if found.message.startswith("0/1 nodes")
    ]
    assert "not eligible due to placement-based pod group scheduling limitation" in refused


async def test_a_gang_without_constraints_has_one_placement() -> None:
    harness = racks(a=1, b=1)
    harness.put(group(min_count=3), *members("x", "y", "z", cpu="2"))
    await harness.pass_time(3)
    assert harness.placements() == {}
    condition = condition_of(harness)
    assert condition is not None
    assert condition.message == (
        "0/1 placements are available, first placement status: pod group is unschedulable"
    )


async def test_a_label_that_no_node_has() -> None:
    harness = racks(a=2)
    harness.put(group(min_count=2, topology="zone"), *members("x", "y", cpu="1"))
    await harness.pass_time(3)
    condition = condition_of(harness)
    assert condition is not None
    told = {condition.message, *(each.message for each in harness.cluster.conditions.values())}
    assert told == {"no feasible placements found"}


async def test_a_late_pod_goes_where_the_others_are_or_nowhere() -> None:
    harness = racks(a=1, b=2)
    harness.put(group(min_count=2, topology="rack"))
    harness.put(*(member(name, cpu="1", node="a0") for name in "xy"))
    harness.put(member("z", cpu="1"))
    await harness.pass_time(3)
    assert "z" not in harness.placements()

    harness.put(node("a1", cpu="2", labels={"rack": "a"}))
    await harness.pass_time(15)
    assert harness.placements()["z"] == "a1"


@pytest.mark.parametrize("gates", [(), (TOPOLOGY,)], ids=["gate off", "gate on"])
async def test_without_a_constraint_all_is_as_ever(gates: tuple[str, ...]) -> None:
    harness = group_harness(*gates)
    harness.put(node("n", cpu="2"), group(min_count=2))
    harness.put(*(pod(f"low{number}", cpu="1", node="n", priority=0) for number in range(2)))
    harness.put(*members("x", "y", cpu="1", priority=10))
    await harness.pass_time(5)
    assert sorted(harness.placements()) == ["x", "y"]


async def test_pods_in_two_racks_have_no_domain() -> None:
    harness = racks(a=1, b=1)
    harness.put(group(min_count=1, topology="rack"))
    harness.put(member("x", cpu="1", node="a0"), member("y", cpu="1", node="b0"))
    harness.put(member("z", cpu="1"))
    await harness.until_idle()
    condition = condition_of(harness)
    assert condition is not None
    assert condition.reason == "SchedulerError"
    assert condition.message.startswith(
        "cannot determine domain for already scheduled pods: more than 1 domain found"
    )
