"""Devices for which kubelets skip what drivers need not do (1.37 spec N4.10)."""

import random

import pytest

from berth.kube.objects.node import Node
from berth.scheduler.framework.status import Status
from berth_plugins.dynamic_resources.features import (
    DEFAULT,
    OPTIONAL_NODE_OPERATIONS,
    Features,
)
from berth_plugins.dynamic_resources.requests import requests_of
from berth_plugins.dynamic_resources.results import allocation_of
from berth_plugins.shared.device_classes import DeviceClassResolver
from tests.builders import node, pod
from tests.device_builders import (
    allocation,
    claim,
    device,
    device_class,
    exactly,
    got,
    listers,
    resource_slice,
    with_claims,
)
from tests.plugins.dynamic_resources.device_world import NO, World
from tests.plugins.dynamic_resources.searching import AS_1_36, found, picks

ON = Features(optional_node_operations=True)
CAN = node("n1", features=[OPTIONAL_NODE_OPERATIONS])
CANNOT = node("n1")
SLICES = [
    resource_slice("s", device("a"), pool="p", all_nodes=True, skips=["*"]),
    resource_slice("t", device("b"), pool="q", all_nodes=True),
]
GATES = {OPTIONAL_NODE_OPERATIONS: True}


@pytest.mark.parametrize(
    ("features", "on", "one", "every"),
    [
        pytest.param(AS_1_36, CANNOT, "a", "ab", id="1.36: nobody knows of it"),
        pytest.param(DEFAULT, CAN, "b", "", id="1.37, off: the device is given to nobody"),
        pytest.param(ON, CAN, "a", "ab", id="on"),
        pytest.param(ON, CANNOT, "b", "", id="on, and the node does not declare it"),
    ],
)
def test_who_may_have_the_device(features: Features, on: Node, one: str, every: str) -> None:
    for count, want in ((1, one), (None, every)):
        names = found(claim("c", exactly(count)), SLICES, on=on, features=features)
        assert names == ([f"r0={name}" for name in want] or None)


@pytest.mark.parametrize(("features", "want"), [(ON, ("*",)), (AS_1_36, ())])
def test_the_allocation_says_what_is_skipped(features: Features, want: tuple[str, ...]) -> None:
    wanted = claim()
    ready = requests_of(wanted, DeviceClassResolver(listers(device_class())), features)
    (picked,) = picks([wanted], SLICES, on=CAN, features=features) or ()
    written = allocation_of(
        ready, picked, node_name="n1", rng=random.Random(1), timestamp=None, features=features
    )
    assert written.devices.results[0].skip_node_operations == want


def test_nodes_are_told_apart() -> None:
    """They see the same pools, but may not use the same devices."""
    world = World(SLICES[0], claim("c"), gates=GATES)
    mine = with_claims(pod("p"), "c")
    assert world.filter(mine) == {"n1": NO, "n2": NO, "n3": NO}
    world.nodes.set_node(world.nodes.row_of["n2"], node("n2", features=[OPTIONAL_NODE_OPERATIONS]))
    assert world.filter(mine) == {"n1": NO, "n2": None, "n3": NO}
    world.nodes.set_node(world.nodes.row_of["n2"], node("n2"))
    assert world.filter(mine) == {"n1": NO, "n2": NO, "n3": NO}


def test_an_allocated_claim_needs_a_node_that_declares_it() -> None:
    taken = claim("c", allocated=allocation(got("a", pool="p", skips=["*"])))
    world = World(*SLICES, taken, gates=GATES)
    world.nodes.set_node(world.nodes.row_of["n2"], node("n2", features=[OPTIONAL_NODE_OPERATIONS]))
    refused = Status.unresolvable(f"node does not declare {OPTIONAL_NODE_OPERATIONS}")
    mine = with_claims(pod("p"), "c")
    assert world.filter(mine) == {"n1": refused, "n2": None, "n3": refused}
    assert World(*SLICES, taken).filter(mine) == {"n1": None, "n2": None, "n3": None}
