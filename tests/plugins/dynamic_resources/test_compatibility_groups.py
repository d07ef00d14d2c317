"""Devices that may take from the same counters together (1.37 spec N4.8)."""

import random
from collections.abc import Sequence

import pytest

from berth.kube.objects.devices import Device, DeviceRequestAllocationResult
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.requests import requests_of
from berth_plugins.dynamic_resources.results import allocation_of
from berth_plugins.shared.device_classes import DeviceClassResolver
from tests.device_builders import (
    allocation,
    claim,
    device,
    device_class,
    exactly,
    got,
    listers,
    resource_slice,
)
from tests.plugins.dynamic_resources.searching import AS_1_36, found, picks

ON = Features(compatibility_groups=True)
COUNTERS = resource_slice(
    "0", pool="n1", node="n1", count=2, counters={"set": {"m": 9}, "other": {"m": 9}}
)


def part(name: str, *groups: str, of: str = "set", shared: bool = False) -> Device:
    return device(name, consumes={"m": 1}, counter_set=of, groups=groups, shared=shared)


def got_of(name: str, *groups: str) -> DeviceRequestAllocationResult:
    return got(name, groups={"set": groups} if groups else {})


@pytest.mark.parametrize(
    ("count", "devices", "others", "want"),
    [
        pytest.param(2, [part("a"), part("b")], [], "ab", id="none declares any"),
        pytest.param(2, [part("a", "x"), part("b")], [], "", id="one declares none"),
        pytest.param(2, [part("a", "x"), part("b", "y"), part("c", "x")], [], "ac", id="shared"),
        pytest.param(
            2, [part("a", "x", "y"), part("b", "y", "z")], [], "ab", id="one of several is shared"
        ),
        pytest.param(
            3,
            [part("a", "x", "y"), part("b", "y", "z"), part("c", "x", "z")],
            [],
            "",
            id="each two share one, but not all three",
        ),
        pytest.param(
            2, [part("a", "x"), part("b", "y", of="other")], [], "ab", id="other counters"
        ),
        pytest.param(
            2, [part("a", "x"), device("b")], [], "ab", id="one that takes from no counters"
        ),
        pytest.param(
            1, [part("a", "x"), part("b", "y")], [got_of("a", "x")], "", id="in use by another"
        ),
        pytest.param(
            1,
            [part("a", "x"), part("b", "y")],
            [got_of("a", "y")],
            "b",
            id="what the allocation says counts, not the slice",
        ),
        pytest.param(
            1,
            [part("a", "x"), part("b", "x"), part("c")],
            [got_of("a")],
            "b",
            id="an allocation that says nothing: the slice counts",
        ),
        pytest.param(
            1,
            [part("a", "x"), part("b", "y"), part("c", "x")],
            [got_of("a", "x"), got_of("b", "y")],
            "",
            id="those in use are not compatible themselves",
        ),
    ],
)
def test_compatible_devices(
    count: int,
    devices: Sequence[Device],
    others: Sequence[DeviceRequestAllocationResult],
    want: str,
) -> None:
    slices = [COUNTERS, resource_slice("1", *devices, node="n1", count=2)]
    in_use = [claim(f"o{i}", allocated=allocation(one)) for i, one in enumerate(others)]
    names = found(claim("c", exactly(count)), slices, others=in_use, features=ON)
    assert names == ([f"r0={name}" for name in want] or None)


def test_a_device_is_compatible_with_itself() -> None:
    slices = [COUNTERS, resource_slice("1", part("a", "x", shared=True), node="n1", count=2)]
    assert found([claim("c"), claim("d")], slices, features=ON) == ["r0=a", "r0=a"]


@pytest.mark.parametrize(
    ("features", "want"),
    [
        pytest.param(AS_1_36, ["r0=a", "r0=b"], id="1.36: nobody knows of groups"),
        pytest.param(DEFAULT, None, id="1.37, off: devices with groups are given to nobody"),
        pytest.param(ON, None, id="on"),
    ],
)
def test_gate(features: Features, want: list[str] | None) -> None:
    slices = [COUNTERS, resource_slice("1", part("a", "x"), part("b"), node="n1", count=2)]
    assert found(claim("c", exactly(2)), slices, features=features) == want


@pytest.mark.parametrize(("features", "want"), [(ON, {"set": ("x",)}), (AS_1_36, {})])
def test_the_allocation_says_which_groups_the_device_had(
    features: Features, want: dict[str, tuple[str, ...]]
) -> None:
    slices = [COUNTERS, resource_slice("1", part("a", "x"), node="n1", count=2)]
    wanted = claim()
    ready = requests_of(wanted, DeviceClassResolver(listers(device_class())), features)
    (picked,) = picks([wanted], slices, features=features) or ()
    written = allocation_of(
        ready,
        picked,
        node_name="n1",
        rng=random.Random(1),
        timestamp=None,
        features=features,
    )
    assert written.devices.results[0].compatibility_groups == want
