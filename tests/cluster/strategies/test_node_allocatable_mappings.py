"""Devices that stand for resources of their node, behind DRANodeAllocatableResources (G15.3)."""

import copy

import pytest

from berth.cluster.resources import Object
from berth.cluster.strategies.resource_slices import resource_slice
from tests.cluster.bodies import complaints

ON = resource_slice(("DRANodeAllocatableResources",))
PATH = "spec.devices[0].nodeAllocatableResourceMappings"


def slice_with(mappings: Object) -> Object:
    device = {
        "name": "gpu-0",
        "capacity": {"cores": {"value": "8"}},
        "nodeAllocatableResourceMappings": mappings,
    }
    spec = {"driver": "gpu.example.com", "pool": {"name": "n1"}, "devices": [device]}
    return {"metadata": {"name": "s"}, "spec": spec}


@pytest.mark.parametrize(
    ("mappings", "want"),
    [
        pytest.param({"cpu": {"allocationMultiplier": "2"}}, [], id="a multiplier"),
        pytest.param({"memory": {"capacityKey": "cores"}}, [], id="a capacity"),
        pytest.param(
            {"hugepages-2Mi": {"capacityKey": "cores", "allocationMultiplier": "2Mi"}},
            [],
            id="both",
        ),
        pytest.param(
            {"cpu": {}},
            [
                f"{PATH}[cpu]: Required value: at least one of `capacityKey` and"
                " `allocationMultiplier` must be specified"
            ],
            id="neither",
        ),
        pytest.param(
            {"cpu": {"allocationMultiplier": "0"}},
            [f'{PATH}[cpu].allocationMultiplier: Invalid value: "0": must be greater than 0'],
            id="nothing",
        ),
        pytest.param(
            {"cpu": {"capacityKey": "memory"}},
            [f'{PATH}[cpu].capacityKey: Not found: "memory"'],
            id="a capacity that the device does not have",
        ),
        pytest.param(
            {"example.com/gpu": {"allocationMultiplier": "1"}},
            [
                f'{PATH}[example.com/gpu]: Invalid value: "example.com/gpu": must be the name of a'
                " node-allocatable resource that is not an extended resource"
            ],
            id="an extended resource",
        ),
    ],
)
def test_mappings(mappings: Object, want: list[str]) -> None:
    assert complaints(ON, slice_with(mappings)) == want


def test_without_the_gate_they_are_dropped_unless_they_are_there() -> None:
    off, written = resource_slice(), slice_with({"cpu": {"allocationMultiplier": "2"}})
    kept, dropped = copy.deepcopy(written), copy.deepcopy(written)
    off.prepare(kept, written)
    off.prepare(dropped, None)
    assert kept["spec"] == written["spec"]
    assert "nodeAllocatableResourceMappings" not in dropped["spec"]["devices"][0]
