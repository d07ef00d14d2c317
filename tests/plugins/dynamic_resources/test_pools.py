"""Pools as nodes see them: who is reached, which generation counts, what is broken."""

from collections.abc import Sequence

import pytest

from berth.kube.objects.devices import ResourceSlice
from berth.kube.objects.node import Node
from berth.scheduler.framework.listers import Listers
from berth_plugins.dynamic_resources.pools import Pool, ResourcePools
from tests.builders import node, requirement, term
from tests.device_builders import device, listers, resource_slice

A = node("a", zone="z1")
B = node("b", zone="z2")
IN_Z1 = term(requirement("topology.kubernetes.io/zone", "In", "z1"))


def seen(pools: ResourcePools, by: Node) -> dict[str, list[str] | str]:
    return {str(pool.id).partition("/")[2]: _told(pool) for pool in pools.pools_of(by)}


def _told(pool: Pool) -> list[str] | str:
    if pool.is_broken:
        return "incomplete" if pool.is_incomplete else "invalid"
    return [found.id.device for found in pool.devices]


@pytest.mark.parametrize(
    ("slices", "by_a", "by_b"),
    [
        pytest.param(
            [resource_slice("s", device("d"), node="a")],
            {"a": ["d"]},
            {},
            id="a node's own slice",
        ),
        pytest.param(
            [resource_slice("s", device("d"), pool="p", all_nodes=True)],
            {"p": ["d"]},
            {"p": ["d"]},
            id="a slice for all nodes",
        ),
        pytest.param(
            [resource_slice("s", device("d"), pool="p", selects=IN_Z1)],
            {"p": ["d"]},
            {},
            id="a slice that selects nodes",
        ),
        pytest.param(
            [resource_slice("s", device("d"), pool="p")],
            {},
            {},
            id="a slice that chooses nodes in a way that we do not know",
        ),
        pytest.param(
            [
                resource_slice(
                    "s",
                    device("d", node="a"),
                    device("e", selects=IN_Z1),
                    pool="p",
                    per_device=True,
                )
            ],
            {"p": ["d", "e"]},
            {},
            id="a slice that leaves it to its devices, one of which is for the node",
        ),
        pytest.param(
            [
                resource_slice("s2", device("d2"), node="a", count=2),
                resource_slice("s1", device("d9"), device("d1"), node="a", count=2),
            ],
            {"a": ["d9", "d1", "d2"]},
            {},
            id="slices by name, their devices as listed",
        ),
        pytest.param(
            [resource_slice("s", device("d"), node="a", count=2)],
            {"a": "incomplete"},
            {},
            id="a slice is still missing",
        ),
        pytest.param(
            [
                resource_slice("s1", device("d1"), pool="p", node="a", count=2),
                resource_slice("s2", device("d2"), pool="p", node="b", count=2),
            ],
            {"p": ["d1"]},
            {"p": ["d2"]},
            id="the other slices of a pool may be for other nodes",
        ),
        pytest.param(
            [
                resource_slice("old", device("d"), node="a", generation=1),
                resource_slice("new", device("e"), node="a", generation=2),
            ],
            {"a": ["e"]},
            {},
            id="only the newest generation counts",
        ),
        pytest.param(
            [
                resource_slice("old", device("d"), pool="p", node="a", generation=1, count=2),
                resource_slice("new", device("e"), pool="p", node="b", generation=2),
            ],
            {},
            {"p": ["e"]},
            id="a generation that is being replaced elsewhere is not seen",
        ),
        pytest.param(
            [resource_slice("s", device("d"), device("d"), node="a")],
            {"a": "invalid"},
            {},
            id="a device is there twice",
        ),
        pytest.param(
            [
                resource_slice("c", pool="a", node="a", count=2, counters={"set": {"m": "4"}}),
                resource_slice("s", device("d", consumes={"m": "1"}), node="a", count=2),
            ],
            {"a": ["d"]},
            {},
            id="counters are in a slice of their own",
        ),
        pytest.param(
            [resource_slice("s", device("d", consumes={"m": "1"}), node="a")],
            {"a": "invalid"},
            {},
            id="a device takes from counters that are not there",
        ),
        pytest.param(
            [
                resource_slice("c1", pool="a", node="a", count=2, counters={"set": {"m": "4"}}),
                resource_slice("c2", pool="a", node="a", count=2, counters={"set": {"m": "4"}}),
            ],
            {"a": "invalid"},
            {},
            id="a counter set is there twice",
        ),
        pytest.param(
            [
                resource_slice("c", pool="a", node="b", count=2, counters={"set": {"m": "4"}}),
                resource_slice("s", device("d", consumes={"m": "1"}), node="a", count=2),
            ],
            {"a": ["d"]},
            {"a": []},
            id="counters are in a slice for another node",
        ),
    ],
)
def test_what_nodes_see(
    slices: Sequence[ResourceSlice],
    by_a: dict[str, list[str] | str],
    by_b: dict[str, list[str] | str],
) -> None:
    known = ResourcePools(listers(*slices))
    assert (seen(known, A), seen(known, B)) == (by_a, by_b)


@pytest.mark.parametrize(
    ("slices", "by_a", "by_b_in_1_36", "by_b"),
    [
        pytest.param(
            [
                resource_slice("c1", pool="a", node="a", count=2, counters={"set": {"m": "4"}}),
                resource_slice("c2", pool="a", node="a", count=2, counters={"set": {"m": "4"}}),
            ],
            {"a": "invalid"},
            {"a": "invalid"},
            {},
            id="a counter set is there twice",
        ),
        pytest.param(
            [resource_slice("c", pool="a", node="a", count=2, counters={"set": {"m": "4"}})],
            {"a": "incomplete"},
            {"a": "incomplete"},
            {},
            id="a pool with counters is being updated",
        ),
        pytest.param(
            [
                resource_slice("c", pool="p", node="b", count=2, counters={"set": {"m": "4"}}),
                resource_slice("s", device("d", consumes={"m": "1"}), pool="p", node="a", count=2),
            ],
            {"p": ["d"]},
            {"p": []},
            {"p": []},
            id="only the counters are for the node",
        ),
    ],
)
def test_in_1_36_slices_with_counters_matter_everywhere(
    slices: Sequence[ResourceSlice],
    by_a: dict[str, list[str] | str],
    by_b_in_1_36: dict[str, list[str] | str],
    by_b: dict[str, list[str] | str],
) -> None:
    known = ResourcePools(listers(*slices), counters_by_node=False)
    assert (seen(known, A), seen(known, B)) == (by_a, by_b_in_1_36)
    known = ResourcePools(listers(*slices))
    assert (seen(known, A), seen(known, B)) == (by_a, by_b)


def test_pools_are_tried_by_driver_and_name_and_those_to_wait_for_last() -> None:
    pools = ResourcePools(
        listers(
            resource_slice("1", device("d"), driver="b.com", pool="p1", all_nodes=True),
            resource_slice("2", device("d"), driver="a.com", pool="p2", all_nodes=True),
            resource_slice("3", device("d"), driver="a.com", pool="p10", all_nodes=True),
            resource_slice(
                "4", device("d", conditions=["Up"]), driver="a.com", pool="p0", all_nodes=True
            ),
        )
    )
    assert [str(pool.id) for pool in pools.pools_of(A)] == [
        "a.com/p10",
        "a.com/p2",
        "b.com/p1",
        "a.com/p0",
    ]


def test_all_consumers_of_counters_are_known_whomever_they_are_for() -> None:
    pools = ResourcePools(
        listers(
            resource_slice("c", pool="p", all_nodes=True, count=3, counters={"set": {"m": "4"}}),
            resource_slice("a", device("d", consumes={"m": "1"}), pool="p", node="a", count=3),
            resource_slice("b", device("e", consumes={"m": "1"}), pool="p", node="b", count=3),
        )
    )
    (pool,) = pools.pools_of(A)
    assert [found.id.device for found in pool.devices] == ["d"]
    assert [found.id.device for found in pool.consumers] == ["d", "e"]


def test_views_follow_changes() -> None:
    known = Listers()
    slices, pools = known.resource_slices, ResourcePools(known)
    assert seen(pools, A) == {}
    first = resource_slice("s", device("d"), node="a")
    slices.on_add(first)
    assert (seen(pools, A), seen(pools, B)) == ({"a": ["d"]}, {})
    moved = resource_slice("s", device("d"), node="b")
    slices.on_update(first, moved)
    assert (seen(pools, A), seen(pools, B)) == ({}, {"b": ["d"]})
    shared = resource_slice("t", device("e"), pool="p", all_nodes=True)
    slices.on_add(shared)
    assert (seen(pools, A), seen(pools, B)) == ({"p": ["e"]}, {"b": ["d"], "p": ["e"]})
    slices.on_delete(moved)
    slices.on_delete(shared)
    slices.on_delete(shared)
    assert (seen(pools, A), seen(pools, B)) == ({}, {})


def test_a_view_is_the_same_until_something_changes() -> None:
    known = listers(resource_slice("s", device("d"), node="a"))
    slices, pools = known.resource_slices, ResourcePools(known)
    view = pools.pools_of(A)
    slices.on_add(resource_slice("t", device("d"), node="b"))
    assert pools.pools_of(A) is view
    assert pools.pools_of(node("a", zone="z2")) is not view
