"""What changes with a feature gate off that is on by default (spec G17)."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from berth.kube.objects.devices import DeviceAttribute, ResourceClaim, ResourceSlice
from berth.kube.objects.node import Taint
from berth.scheduler.config.feature_gates import enabled_features
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.requests import AllocationError, UnknownRequestError
from tests.device_builders import (
    DRIVER,
    allocation,
    claim,
    device,
    exactly,
    first_available,
    got,
    resource_slice,
    same,
)
from tests.plugins.dynamic_resources.searching import AS_1_36, found

A = device("a")
TAINTED = device("a", taints=[Taint(key="broken", effect="NoSchedule")])
SLOW = device("slow", conditions=["Attached"], failures=["Failed"])
SHARED = device("s", shared=True, capacity={"memory": "8"})
PART = device("part", consumes={"slots": "1"})
COUNTERS = resource_slice("set", pool="p", node="n1", count=2, counters={"set": {"slots": "4"}})
PARTS = [resource_slice("s", PART, A, pool="p", node="n1", count=2), COUNTERS]
BY_DEVICE = resource_slice("s", device("a", node="n1"), per_device=True)


def on_n1(*devices: object) -> ResourceSlice:
    return resource_slice("s", *devices, node="n1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("off", "claims", "slices", "with_it", "without"),
    [
        pytest.param(
            "device_taints", claim(), on_n1(TAINTED), None, ["r0=a"], id="taints are passed over"
        ),
        pytest.param(
            "binding_conditions",
            claim(),
            on_n1(SLOW, A),
            ["r0=slow"],
            ["r0=a"],
            id="devices that must get ready are given to nobody",
        ),
        pytest.param(
            "binding_conditions",
            claim("c", exactly(None)),
            on_n1(SLOW, A),
            ["r0=slow", "r0=a"],
            ["r0=a"],
            id="nor are they among all devices",
        ),
        pytest.param(
            "partitionable_devices",
            claim(),
            PARTS,
            ["r0=part"],
            ["r0=a"],
            id="devices that take from counters are given to nobody",
        ),
        pytest.param(
            "partitionable_devices",
            claim("c", exactly(None)),
            PARTS,
            ["r0=part", "r0=a"],
            None,
            id="but they are among all devices, which cannot be had then",
        ),
        pytest.param(
            "partitionable_devices",
            claim(),
            BY_DEVICE,
            ["r0=a"],
            None,
            id="devices with a node each",
        ),
        pytest.param(
            "consumable_capacity",
            [claim("c"), claim("d")],
            on_n1(device("s", shared=True)),
            ["r0=s", "r0=s"],
            None,
            id="a shared device is had alone",
        ),
    ],
)
def test_search(
    off: str,
    claims: ResourceClaim | Sequence[ResourceClaim],
    slices: ResourceSlice | Sequence[ResourceSlice],
    with_it: list[str] | None,
    without: list[str] | None,
) -> None:
    assert found(claims, slices, features=DEFAULT) == with_it
    changes: dict[str, Any] = {off: False}
    assert found(claims, slices, features=replace(DEFAULT, **changes)) == without


def test_a_device_that_was_shared_is_in_use_without_consumable_capacity() -> None:
    share = got("s", share="11111111-1111-4111-8111-111111111111", consumed={"memory": "1"})
    other = claim("other", allocated=allocation(share))
    wanted = claim("c", exactly(capacity={"memory": "2"}))
    assert found(wanted, on_n1(SHARED), others=[other]) == ["r0=s"]
    off = Features(consumable_capacity=False)
    assert found(claim("c"), on_n1(SHARED), others=[other], features=off) is None
    assert found(claim("c"), on_n1(SHARED), features=off) == ["r0=s"]


@pytest.mark.parametrize(
    ("wanted", "want"),
    [
        pytest.param(
            exactly(capacity={"memory": "2"}),
            "claim default/c, request r0: has capacity requests, but the DRAConsumableCapacity"
            " feature is disabled",
            id="request",
        ),
        pytest.param(
            first_available("r0", small=exactly(capacity={"memory": "2"})),
            "claim default/c, subrequest small: has capacity requests, but the"
            " DRAConsumableCapacity feature is disabled",
            id="alternative",
        ),
    ],
)
def test_capacity_cannot_be_asked_for_without_consumable_capacity(
    wanted: object, want: str
) -> None:
    with pytest.raises(AllocationError) as failure:
        found(
            claim("c", wanted),  # type: ignore[arg-type]
            on_n1(SHARED),
            features=Features(consumable_capacity=False),
        )
    assert str(failure.value) == want


def test_alternatives_cannot_be_asked_for_without_prioritized_list() -> None:
    wanted = claim("c", first_available("r0", big=exactly(2), small=exactly()))
    assert found(wanted, on_n1(A)) == ["r0/small=a"]
    with pytest.raises(UnknownRequestError) as failure:
        found(wanted, on_n1(A), features=Features(prioritized_list=False))
    assert str(failure.value) == (
        "resource claim default/c, request r0: has subrequests, but the DRAPrioritizedList feature"
        " is disabled"
    )


def test_selectors_do_not_know_shared_devices_without_consumable_capacity() -> None:
    wanted = claim("c", exactly(where=["device.allowMultipleAllocations"]))
    assert found(wanted, on_n1(SHARED)) == ["r0=s"]
    with pytest.raises(AllocationError, match="no such key: allowMultipleAllocations"):
        found(wanted, on_n1(SHARED), features=Features.of({DRIVER}))


def test_gates() -> None:
    """Two gates have to be on for devices that get ready; others are on their own."""
    on = enabled_features({})
    assert Features.of(on) == DEFAULT
    for gate in ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"):
        assert not Features.of(on.gates - {gate}).binding_conditions


LINKS = device("l", attributes={"links": DeviceAttribute(strings=("nv0", "nv1"))})


def test_selectors_that_are_stored_may_ask_for_lists() -> None:
    """Whatever the gate DRAListTypeAttributes says, from 1.37 on (1.37 spec N4.4)."""
    links = f'device.attributes["{DRIVER}"].links'
    wanted = claim("c", exactly(where=[f'{links}.includes("nv1")']))
    assert found(wanted, on_n1(LINKS)) == ["r0=l"]
    with pytest.raises(AllocationError, match="selector #0: CEL compile error"):
        found(wanted, on_n1(LINKS), features=AS_1_36)
    with pytest.raises(AllocationError, match="attribute links: unsupported attribute value"):
        found(claim("c", exactly(where=["true"])), on_n1(LINKS), features=AS_1_36)


def test_lists_are_compared_with_the_gate_only() -> None:
    wanted = claim("c", exactly(), constraints=[same(f"{DRIVER}/links")])
    assert found(wanted, on_n1(LINKS)) is None
    assert found(wanted, on_n1(LINKS), features=Features(list_type_attributes=True)) == ["r0=l"]
