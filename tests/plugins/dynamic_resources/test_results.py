"""Allocations as they are written."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from berth.kube.objects.devices import (
    AllocationResult,
    DeviceClass,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from berth.kube.objects.node import Node
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.requests import requests_of
from berth_plugins.dynamic_resources.results import allocation_of
from berth_plugins.shared.device_classes import DeviceClassResolver
from tests.builders import node, requirement, term
from tests.device_builders import (
    claim,
    device,
    device_class,
    exactly,
    first_available,
    listers,
    resource_slice,
)
from tests.plugins.dynamic_resources.searching import AS_1_36, N1, picks

IN_Z1 = term(requirement("zone", "In", "z1"))
SSD = term(requirement("disk", "In", "ssd"))


def allocated(
    wanted: ResourceClaim,
    *slices: ResourceSlice,
    classes: Sequence[DeviceClass] = (device_class(),),
    on: Node = N1,
    features: Features = DEFAULT,
) -> AllocationResult:
    (found,) = picks([wanted], slices, classes=classes, on=on) or ()
    return allocation_of(
        requests_of(wanted, DeviceClassResolver(listers(*classes))),
        found,
        node_name=on.name,
        rng=random.Random(7),
        timestamp="2026-01-01T00:00:00Z",
        features=features,
    )


def as_json(thing: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(thing))


def test_the_whole_of_it() -> None:
    tolerations = [DeviceToleration(operator="Exists", toleration_seconds=5)]
    wanted = claim("c", exactly(1, tolerations=tolerations, admin=True))
    slices = resource_slice("s", device("a", conditions=["Up"], failures=["Bad"]), node="n1")
    assert as_json(allocated(wanted, slices)) == {
        "devices": {
            "results": [
                {
                    "request": "r0",
                    "driver": "gpu.example.com",
                    "pool": "n1",
                    "device": "a",
                    "adminAccess": True,
                    "tolerations": [{"operator": "Exists", "tolerationSeconds": 5}],
                    "bindingConditions": ["Up"],
                    "bindingFailureConditions": ["Bad"],
                }
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        },
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    }


def test_a_share() -> None:
    slices = resource_slice(
        "s", device("a", shared=True, capacity={"memory": "10240Mi"}), node="n1"
    )
    (result,) = allocated(claim(), slices).devices.results
    assert result.consumed_capacity == {"memory": "10Gi"}
    assert len(as_json(result)["shareID"]) == 36


@pytest.mark.parametrize(
    ("slices", "want"),
    [
        pytest.param(
            [resource_slice("s", device("a"), device("b"), pool="p", all_nodes=True)],
            None,
            id="usable everywhere",
        ),
        pytest.param(
            [
                resource_slice("s", device("a"), pool="p", selects=IN_Z1),
                resource_slice("t", device("b"), pool="q", selects=SSD),
            ],
            [
                {
                    "matchExpressions": [
                        {"key": "zone", "operator": "In", "values": ["z1"]},
                        {"key": "disk", "operator": "In", "values": ["ssd"]},
                    ]
                }
            ],
            id="where all of them are",
        ),
        pytest.param(
            [
                resource_slice("s", device("a", selects=IN_Z1), pool="p", per_device=True),
                resource_slice("t", device("b"), pool="q", selects=IN_Z1),
            ],
            [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}],
            id="each requirement once",
        ),
        pytest.param(
            [
                resource_slice("s", device("a"), pool="p", selects=IN_Z1),
                resource_slice("t", device("b"), pool="q", node="n1"),
            ],
            [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}],
            id="one of them is on the node",
        ),
    ],
)
def test_where_the_devices_can_be_used(
    slices: Sequence[ResourceSlice], want: list[dict[str, Any]] | None
) -> None:
    here = node("n1", labels={"zone": "z1", "disk": "ssd"})
    selector = allocated(claim("c", exactly(2)), *slices, on=here).node_selector
    terms = None if selector is None else as_json(selector)["nodeSelectorTerms"]
    assert terms == want


def config(name: str) -> dict[str, Any]:
    return {"opaque": {"driver": name, "parameters": {"a": 1}}}


CLASSES = [
    device_class("gpu", config=[config("gpu")]),
    device_class("nic", config=[config("nic")]),
]
SLICE = resource_slice("s", *(device(f"d{i}") for i in range(4)), node="n1")


@pytest.mark.parametrize(
    ("wanted", "want"),
    [
        pytest.param(
            claim("c", exactly(), exactly(of="nic"), exactly()),
            [
                {**config("gpu"), "source": "FromClass", "requests": ["r0", "r2"]},
                {**config("nic"), "source": "FromClass", "requests": ["r1"]},
            ],
            id="each class once, and for whom",
        ),
        pytest.param(
            claim("c", exactly(), exactly()),
            [{**config("gpu"), "source": "FromClass"}],
            id="of the class of all requests",
        ),
        pytest.param(
            claim("c", first_available("r", x=exactly(9), y=exactly(of="nic")), exactly()),
            [
                {**config("nic"), "source": "FromClass", "requests": ["r/y"]},
                {**config("gpu"), "source": "FromClass", "requests": ["r1"]},
            ],
            id="of alternatives the class of the chosen one",
        ),
        pytest.param(
            claim(
                "c",
                exactly(),
                exactly(),
                config=[config("own"), {**config("first"), "requests": ["r0"]}],
            ),
            [
                {**config("gpu"), "source": "FromClass"},
                {**config("own"), "source": "FromClaim"},
                {**config("first"), "source": "FromClaim", "requests": ["r0"]},
            ],
            id="then those of the claim",
        ),
        pytest.param(
            claim(
                "c",
                first_available("r", x=exactly(9), y=exactly()),
                exactly(),
                config=[
                    {**config("x"), "requests": ["r/x"]},
                    {**config("y"), "requests": ["r/y"]},
                ],
            ),
            [
                {**config("gpu"), "source": "FromClass"},
                {**config("y"), "source": "FromClaim", "requests": ["r/y"]},
            ],
            id="but not those for alternatives that were not chosen",
        ),
        pytest.param(
            claim("c", exactly(of="nic"), config=[{**config("own"), "requests": ["r0"]}]),
            [
                {**config("nic"), "source": "FromClass"},
                {**config("own"), "source": "FromClaim"},
            ],
            id="for the only request",
        ),
    ],
)
def test_parameters_for_drivers(wanted: ResourceClaim, want: list[dict[str, Any]]) -> None:
    assert list(allocated(wanted, SLICE, classes=CLASSES).devices.config) == want


@pytest.mark.parametrize(
    ("wanted", "requests", "in_1_36", "in_1_37"),
    [
        pytest.param(
            claim("c", exactly(), exactly(of="nic"), exactly(of="nic")),
            ["r0", "r2"],
            [["r0"], ["r1", "r2"], ["r0", "r2"], ["r0", "r2"]],
            [["r0"], ["r1", "r2"], ["r0", "r2"]],
            id="some requests: once instead of for each",
        ),
        pytest.param(
            claim("c", exactly(), exactly()),
            ["r0", "r1"],
            [["r0", "r1"], ["r0", "r1"], ["r0", "r1"]],
            [None, None],
            id="all requests: none is named",
        ),
        pytest.param(
            claim("c", exactly(), exactly()),
            None,
            [["r0", "r1"], None],
            [None, None],
            id="all requests, which were not named",
        ),
        pytest.param(
            claim("c", first_available("r", x=exactly(9), y=exactly()), exactly()),
            ["r", "r1"],
            [["r/y", "r1"], ["r", "r1"], ["r", "r1"]],
            [None, None],
            id="a choice by its name",
        ),
        pytest.param(
            claim("c", first_available("r", x=exactly(9), y=exactly()), exactly()),
            ["r/x", "r/y", "r1"],
            [["r/y", "r1"], ["r/x", "r/y", "r1"], ["r/x", "r/y", "r1"]],
            [None, None],
            id="a choice by the chosen alternative",
        ),
        pytest.param(
            claim("c", first_available("r", x=exactly(9), y=exactly()), exactly()),
            ["r/x", "r1"],
            [["r/y", "r1"], ["r/x", "r1"]],
            [None, ["r/x", "r1"]],
            id="a choice by another alternative",
        ),
    ],
)
def test_for_which_requests_parameters_are(
    wanted: ResourceClaim,
    requests: list[str] | None,
    in_1_36: list[list[str] | None],
    in_1_37: list[list[str] | None],
) -> None:
    own = config("own") if requests is None else {**config("own"), "requests": requests}
    devices = msgspec.structs.replace(wanted.spec.devices, config=(own,))
    spec = msgspec.structs.replace(wanted.spec, devices=devices)
    wanted = msgspec.structs.replace(wanted, spec=spec)

    for features, want in ((AS_1_36, in_1_36), (DEFAULT, in_1_37)):
        written = allocated(wanted, SLICE, classes=CLASSES, features=features).devices.config
        assert [one.get("requests") for one in written] == want
