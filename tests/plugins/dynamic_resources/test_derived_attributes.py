"""Attributes that requests give to devices, for constraints (1.37 spec N4.9)."""

from collections.abc import Sequence

import pytest

from berth.kube.objects.devices import DeviceAttribute, DeviceConstraint, ExactDeviceRequest
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.requests import AllocationError
from tests.device_builders import (
    claim,
    device,
    distinct,
    exactly,
    first_available,
    resource_slice,
    same,
    version,
)
from tests.plugins.dynamic_resources.searching import found

ON = Features(derived_attributes=True)
A = 'device.attributes["gpu.example.com"]'
ROOT = "derived/root"
SLICE = resource_slice(
    "s",
    device("g0", attributes={"kind": "gpu", "bus": "0:1", "numa": 7, "v": version("1.2.3")}),
    device("g1", attributes={"kind": "gpu", "bus": "1:1", "numa": 7, "v": version("1.2.3")}),
    device("n0", attributes={"kind": "nic", "slot": 1}),
    device("n1", attributes={"kind": "nic", "slot": 0}),
    node="n1",
)
GPU, NIC = f'{A}.kind == "gpu"', f'{A}.kind == "nic"'


def gpu(expression: str, count: int = 1, name: str = ROOT) -> ExactDeviceRequest:
    return exactly(count, where=[GPU], derived={name: expression})


def nic(expression: str) -> ExactDeviceRequest:
    return exactly(where=[NIC], derived={ROOT: expression})


BUS = f'{A}.bus.split(":")[0]'


@pytest.mark.parametrize(
    ("requests", "constraint", "want"),
    [
        pytest.param(
            [gpu(BUS), nic(f"string({A}.slot)")],
            same(ROOT),
            ["r0=g0", "r1=n1"],
            id="of two drivers' attributes one is made",
        ),
        pytest.param([gpu(BUS, 2)], same(ROOT), None, id="no two are alike"),
        pytest.param([gpu(BUS, 2)], distinct(ROOT), ["r0=g0", "r0=g1"], id="they differ"),
        pytest.param(
            [gpu(BUS, 2, "gpu.example.com/numa")],
            same("gpu.example.com/numa"),
            None,
            id="it comes before the attribute of the device",
        ),
        pytest.param(
            [gpu(BUS, 2)],
            same("gpu.example.com/numa"),
            ["r0=g0", "r0=g1"],
            id="other attributes are those of the device",
        ),
        pytest.param(
            [gpu(BUS), exactly(where=[NIC])], same(ROOT), None, id="a request without has none"
        ),
        pytest.param([gpu("7", 2)], same(ROOT), ["r0=g0", "r0=g1"], id="an integer"),
        pytest.param([gpu("true", 2)], same(ROOT), ["r0=g0", "r0=g1"], id="a boolean"),
        pytest.param([gpu(f"{A}.v", 2)], same(ROOT), ["r0=g0", "r0=g1"], id="a version"),
        pytest.param(
            [gpu("7"), nic('"7"')], same(ROOT), None, id="values of two types are not the same"
        ),
        pytest.param(
            [gpu('["x"]', 2)], same(ROOT), None, id="a list, which needs another feature gate"
        ),
        pytest.param(
            [gpu("1 / 0", 2)],
            same("gpu.example.com/numa"),
            ["r0=g0", "r0=g1"],
            id="what no constraint names is not evaluated",
        ),
    ],
)
def test_constraints(
    requests: Sequence[ExactDeviceRequest], constraint: DeviceConstraint, want: list[str] | None
) -> None:
    wanted = claim("c", *requests, constraints=[constraint])
    assert found(wanted, SLICE, features=ON) == want


def test_a_list_may_be_derived() -> None:
    lists = Features(derived_attributes=True, list_type_attributes=True)
    requests = [gpu(f'[{BUS}, "x"]', 2)]
    assert found(claim("c", *requests, constraints=[same(ROOT)]), SLICE, features=lists) == [
        "r0=g0",
        "r0=g1",
    ]
    assert found(claim("c", *requests, constraints=[distinct(ROOT)]), SLICE, features=lists) is None


def test_an_alternative_derives_its_own() -> None:
    wanted = claim(
        "c",
        first_available("f", two=gpu(BUS, 2), one=gpu('"0"')),
        nic(f"string({A}.slot)"),
        constraints=[same(ROOT)],
    )
    assert found(wanted, SLICE, features=ON) == ["f/one=g0", "r1=n1"]


def test_off_there_is_no_such_attribute() -> None:
    wanted = claim("c", gpu("7", 2), constraints=[same(ROOT)])
    assert found(wanted, SLICE, features=DEFAULT) is None


HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with"
    " has() for optional fields"
)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(
            f"{A}.missing",
            f" on device {{}}: CEL runtime error: no such key: missing{HINT}",
            id="it fails",
        ),
        pytest.param(
            "1.5",
            " on device {}: CEL runtime error: CEL result of type double could not be converted to"
            " a string, an int, a bool, a semver or a list of one of them",
            id="a type that attributes do not have",
        ),
        pytest.param(
            '[1, "a"]',
            " on device {}: CEL runtime error: CEL result of type list could not be converted to"
            " a string, an int, a bool, a semver or a list of one of them",
            id="a list of several types",
        ),
        pytest.param(
            f"{A}.?kind",
            " on device {}: CEL runtime error: CEL result of type optional_type could not be"
            " converted to a string, an int, a bool, a semver or a list of one of them",
            id="an optional value",
        ),
        pytest.param("x", ": CEL compile error: compilation failed: ", id="it cannot be compiled"),
    ],
)
def test_one_that_fails_ends_the_search(expression: str, want: str) -> None:
    with pytest.raises(AllocationError) as failure:
        found(claim("c", gpu(expression), constraints=[same(ROOT)]), SLICE, features=ON)
    whole = f"claim default/c: derived attribute {ROOT}" + want.format("gpu.example.com/n1/g0")
    assert str(failure.value).startswith(whole)


def test_a_list_of_nothing_is_an_attribute() -> None:
    assert DeviceAttribute(strings=()).typed_list == ("string", ())
