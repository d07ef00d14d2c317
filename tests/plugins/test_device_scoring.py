"""Scores by extended resources that devices stand for (spec G15.6)."""

from typing import Any

import pytest

from berth.kube.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.interface import ScorePlugin
from berth_plugins.dynamic_resources.plugin import DynamicResources
from berth_plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from berth_plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs, ScoringStrategy
from berth_plugins.shared.resource_allocation import ResourceSpec
from tests.builders import node, pod
from tests.device_builders import (
    DRIVER,
    allocation,
    claim,
    device,
    device_class,
    got,
    resource_slice,
)
from tests.harness import PluginCluster
from tests.plugins.evaluating import raw_scores, table

GPU = "example.com/gpu"
BIG = f'device.attributes["{DRIVER}"].size == "big"'
CLASS = device_class("gpu", extended_resource=GPU)
FOUR = resource_slice("four", *(device(f"d{i}") for i in range(4)), node="four")
MIXED = resource_slice(
    "mixed",
    *(device(f"d{i}", attributes={"size": "big" if i else "small"}) for i in range(3)),
    node="two",
)
SHARED = resource_slice("shared", device("s", shared=True, capacity={"memory": "8"}), node="one")

Objects = ResourceSlice | ResourceClaim | DeviceClass


def cluster(*objects: Objects, **has: int) -> PluginCluster:
    """Nodes four, two, one and plain; *has* is what they have of the resource by themselves."""
    names = ("four", "two", "one", "plain")
    nodes = table(
        *(node(name, allocatable={GPU: has[name]} if name in has else {}) for name in names)
    )
    made = PluginCluster(FakeClock(), nodes=nodes)
    DynamicResources(None, made.handle)
    put(made, *objects)
    return made


def put(made: PluginCluster, *objects: Objects) -> None:
    for obj in objects:
        if isinstance(obj, ResourceClaim):
            made.resource_claims.put(obj)
        elif isinstance(obj, ResourceSlice):
            made.listers.resource_slices.on_add(obj)
        else:
            made.listers.device_classes.on_add(obj)


def scores(made: PluginCluster, count: int, *, plugin: ScorePlugin | None = None) -> dict[str, int]:
    asks = pod("p", requests={GPU: count})
    return raw_scores(plugin or most_allocated(made), asks, made.handle.nodes)


def most_allocated(made: PluginCluster, *names: str) -> NodeResourcesFit:
    resources = tuple(ResourceSpec(name=name) for name in names or (GPU,))
    strategy = ScoringStrategy(type="MostAllocated", resources=resources)
    return NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy), made.handle)


@pytest.mark.parametrize(
    ("objects", "has", "want"),
    [
        pytest.param([CLASS, FOUR], {}, {"four": 25}, id="one of four"),
        pytest.param([FOUR], {}, {}, id="no class stands for it"),
        pytest.param(
            [CLASS, FOUR],
            {"four": 2, "plain": 10},
            {"four": 50, "plain": 10},
            id="nodes that have it",
        ),
        pytest.param(
            [CLASS, FOUR, claim("c", allocated=allocation("d0", "d1", pool="four"))],
            {},
            {"four": 75},
            id="two are allocated",
        ),
        pytest.param(
            [device_class("gpu", BIG, extended_resource=GPU), MIXED],
            {},
            {"two": 50},
            id="those of the class",
        ),
        pytest.param(
            [device_class("gpu", "device.unknown == 1", extended_resource=GPU), FOUR],
            {},
            {},
            id="a selector that fails",
        ),
        pytest.param(
            [CLASS, SHARED, claim("c", allocated=allocation(got("s", pool="one", share="x")))],
            {},
            {"one": 100},
            id="a device that is shared counts whole",
        ),
        pytest.param(
            [
                CLASS,
                FOUR,
                resource_slice("new", device("e"), node="four", pool="four", generation=2, count=2),
            ],
            {},
            {"four": 20},
            id="generations and missing slices do not matter",
        ),
    ],
)
def test_fit(objects: list[Any], has: dict[str, int], want: dict[str, int]) -> None:
    nothing = dict.fromkeys(("four", "two", "one", "plain"), 0)
    assert scores(cluster(*objects, **has), 1) == nothing | want


def test_an_implicit_name_of_the_class() -> None:
    made = cluster(CLASS, FOUR)
    name = "deviceclass.resource.kubernetes.io/gpu"
    asks = pod("p", requests={name: 1})
    assert raw_scores(most_allocated(made, name), asks, made.handle.nodes)["four"] == 25


def test_scores_follow_allocations_and_slices() -> None:
    """kube-scheduler remembers what a selector said of a device for ever."""
    made = cluster(device_class("gpu", BIG, extended_resource=GPU), MIXED)
    plugin = most_allocated(made)
    assert scores(made, 1, plugin=plugin)["two"] == 50

    held = claim("c", allocated=allocation("d1", pool="two"))
    put(made, held)
    assert scores(made, 1, plugin=plugin)["two"] == 100
    made.resource_claims.put(claim("c", version="2"))
    assert scores(made, 1, plugin=plugin)["two"] == 50

    small = (device(f"d{i}", attributes={"size": "small" if i else "big"}) for i in range(3))
    put(made, resource_slice("mixed", *small, node="two"))
    assert scores(made, 1, plugin=plugin)["two"] == 100


def test_what_the_pod_does_not_ask_for_does_not_count() -> None:
    made = cluster(CLASS, FOUR)
    plugin = most_allocated(made, "cpu", GPU)
    asks = pod("p", cpu="1")
    without = raw_scores(most_allocated(made, "cpu"), asks, made.handle.nodes)
    assert raw_scores(plugin, asks, made.handle.nodes) == without


def test_balanced_allocation() -> None:
    made = cluster(CLASS, FOUR)
    args = NodeResourcesBalancedAllocationArgs(
        resources=(ResourceSpec(name="cpu"), ResourceSpec(name=GPU))
    )
    plugin = NodeResourcesBalancedAllocation(args, made.handle)
    asks, nodes = pod("p", cpu="1", requests={GPU: 3}), made.handle.nodes
    # With the pod 1/4 and 3/4 are in use, half their distance is 25 percent.
    found = raw_scores(plugin, asks, nodes)
    assert (found["four"], found["plain"]) == (50 + (50 + 75 - 100) // 2, 75)
    put(made, claim("c", allocated=allocation("d0", "d1", pool="four")))
    # From 0 and 1/2, 25 percent, to 1/4 and all, 37.5 percent.
    assert raw_scores(plugin, asks, nodes)["four"] == 50 + (50 + 62 - 75) // 2
