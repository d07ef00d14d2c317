"""Attributes of devices, with lists of them behind DRAListTypeAttributes (spec G15.2)."""

from typing import Any

import pytest

from berth.cluster.kinds.gated import gated_kinds
from berth.cluster.resources import Object, ResourceType
from berth.cluster.strategies.resource_slices import resource_slice
from tests.cluster.bodies import complaints

GATE = "DRAListTypeAttributes"
ON = resource_slice((GATE,))
PATH = "spec.devices[0].attributes"
ONE = "Invalid value: {}: exactly one value must be specified"


def slice_of(**attributes: Object) -> Object:
    return {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "n1"},
            "devices": [{"name": "gpu-0", "attributes": attributes}],
        },
    }


@pytest.mark.parametrize(
    ("attribute", "want"),
    [
        pytest.param({"string": "a"}, [], id="one value"),
        pytest.param({"strings": ["a", "b"]}, [], id="a list"),
        pytest.param({"int": 0}, [], id="zero is a value"),
        pytest.param({}, [f"{PATH}[a]: " + ONE.format('""')], id="nothing"),
        pytest.param(
            {"int": 1, "ints": [1]},
            [f"{PATH}[a]: " + ONE.format('{"int":1,"ints":[1]}')],
            id="two",
        ),
        pytest.param({"ints": []}, [f"{PATH}[a].ints: Required value"], id="an empty list"),
        pytest.param(
            {"strings": ["b", "a" * 65]},
            [f"{PATH}[a].strings[1]: Too long: may not be more than 64 bytes"],
            id="a long string in a list",
        ),
        pytest.param(
            {"string": "ä" * 33},
            [f"{PATH}[a].string: Too long: may not be more than 64 bytes"],
            id="a long string",
        ),
        pytest.param(
            {"versions": ["1.0.0", "v1"]},
            [
                f'{PATH}[a].versions[1]: Invalid value: "v1": must be a string compatible with'
                " semver.org spec 2.0.0"
            ],
            id="no version",
        ),
    ],
)
def test_attributes(attribute: Object, want: list[str]) -> None:
    assert complaints(ON, slice_of(a=attribute)) == want


def test_a_device_has_48_values_in_lists() -> None:
    half: dict[str, Any] = {"ints": list(range(24))}
    assert complaints(ON, slice_of(a=half, b=half)) == []
    assert complaints(ON, slice_of(a=half, b=half, c={"bools": [True]})) == [
        f"{PATH}: Invalid value: 49: the total number of values in lists must not exceed 48"
    ]


def test_with_the_gate_off_lists_are_dropped_unless_there_are_some() -> None:
    off = resource_slice()
    new = slice_of(a={"ints": [1]}, b={"int": 1})
    off.prepare(new, None)
    assert new["spec"] == slice_of(a={}, b={"int": 1})["spec"]
    old, new = slice_of(a={"ints": [1]}), slice_of(a={"ints": [2]})
    off.prepare(new, old)
    assert new["spec"] == slice_of(a={"ints": [2]})["spec"]


def test_includes_is_there_with_the_gate_only() -> None:
    def served(*gates: str) -> ResourceType:
        return next(
            gated_kind for gated_kind in gated_kinds(gates) if gated_kind.plural == "deviceclasses"
        )

    expression = 'device.attributes["gpu.example.com"].links.includes("nv0")'
    obj = {"metadata": {"name": "c"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
    assert complaints(served(GATE).strategy, obj) == []
    assert gated_kinds(()) == ()
