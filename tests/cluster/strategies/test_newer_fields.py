"""What is refused of the fields that came with Kubernetes 1.37."""

from typing import Any

import pytest

from berth.cluster.schemas import builtin
from berth.cluster.strategies.constraint_table import CONSTRAINTS

CORE, DEVICES = "io.k8s.api.core.v1.", "io.k8s.api.resource.v1."


def problems(type_name: str, obj: Any) -> list[str]:
    return [str(error) for error in CONSTRAINTS.violations(builtin.schema(type_name), obj)]


@pytest.mark.parametrize(
    ("type_name", "obj", "want"),
    [
        pytest.param(
            f"{CORE}VolumeMount",
            {"bindMountOptions": ["nodev", "suid", "nodev"]},
            [
                'bindMountOptions[1]: Unsupported value: "suid": supported values: "nodev",'
                ' "noexec", "nosuid"',
                'bindMountOptions[2]: Duplicate value: "nodev"',
            ],
            id="an option of a mount that is none, and one twice",
        ),
        pytest.param(
            f"{CORE}GRPCAction",
            {"port": 80, "mode": "Plain"},
            ['mode: Unsupported value: "Plain": supported values: "Plaintext", "TLS"'],
            id="a mode of a probe",
        ),
        pytest.param(
            f"{CORE}EmptyDirVolumeSource",
            {"mode": 512},
            [
                "mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both"
                " inclusive"
            ],
            id="a mode of a folder",
        ),
        pytest.param(
            f"{CORE}EvictionResponder",
            {"priority": 1},
            ["name: Required value"],
            id="a responder without a name",
        ),
        pytest.param(
            f"{CORE}NodePodPreemptionPolicy",
            {"disableResizePreemption": [f"r{index}" for index in range(21)]},
            ["disableResizePreemption: Too many: 21: must have at most 20 items"],
            id="more resources than a node may name",
        ),
        pytest.param(
            f"{DEVICES}ResourceSliceSpec",
            {"skipNodeOperations": ["NodePrepareResources"]},
            [
                'skipNodeOperations: Invalid value: ["NodePrepareResources"]: '
                "`NodePrepareResources` requires `NodeUnprepareResources`"
            ],
            id="preparing is skipped, but not what undoes it",
        ),
        pytest.param(
            f"{DEVICES}ResourceSliceSpec",
            {"skipNodeOperations": ["NodeUnprepareResources"]},
            [],
            id="only what undoes it",
        ),
        pytest.param(
            f"{DEVICES}DeviceCounterConsumption",
            {"compatibilityGroups": ["a", "b", "c"]},
            ["compatibilityGroups: Too many: 3: must have at most 2 items"],
            id="three groups of compatible devices",
        ),
        pytest.param(
            f"{DEVICES}DeviceSubRequest",
            {"derivedAttributes": [{"name": "a"}, {"name": "a.b/c", "expression": "1"}]},
            [
                'derivedAttributes[0].name: Invalid value: "a": must include a domain',
                "derivedAttributes[0].expression: Required value",
            ],
            id="an attribute that derives from nothing",
        ),
        pytest.param(
            f"{DEVICES}Device",
            {
                "capacity": {"cores": {"value": "4"}},
                "nodeAllocatableResources": {
                    "cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "1"}},
                    "memory": {"mapping": {"capacityKey": "memory"}},
                    "hugepages-2Mi": {"mapping": {"deviceMultiplier": "0"}},
                    "example.com/gpu": {"overhead": {"perPod": "1"}},
                    "ephemeral-storage": {},
                },
            },
            [
                "nodeAllocatableResources[example.com/gpu]: Invalid value: "
                '"example.com/gpu": must be the name of a node-allocatable resource that is not an'
                " extended resource",
                "nodeAllocatableResources[ephemeral-storage]: Required value: must specify one of:"
                " `mapping`, `overhead`",
                'nodeAllocatableResources[memory].mapping.capacityKey: Not found: "memory"',
                "nodeAllocatableResources[memory].mapping.capacityMultiplier: Required value: must"
                " be set with `capacityKey`",
                "nodeAllocatableResources[hugepages-2Mi].mapping.deviceMultiplier: Invalid value: "
                '"0": must be greater than 0',
            ],
            id="what devices take of their node",
        ),
    ],
)
def test_refused(type_name: str, obj: Any, want: list[str]) -> None:
    assert problems(type_name, obj) == want


def test_a_pod_of_a_group_cannot_have_responders() -> None:
    group = {"podGroupName": "g"}
    responders = [{"name": "a.example.com/r", "priority": 1}]
    spec = {"containers": [], "schedulingGroup": group, "evictionResponders": responders}
    said = problems(f"{CORE}PodSpec", spec)
    assert any(each.startswith("evictionResponders: Forbidden") for each in said)


def test_ten_responders_are_enough() -> None:
    responders = [{"name": f"a.example.com/r{index}", "priority": 1} for index in range(11)]
    said = problems(f"{CORE}PodSpec", {"containers": [], "evictionResponders": responders})
    assert "evictionResponders: Too many: 11: must have at most 10 items" in said
