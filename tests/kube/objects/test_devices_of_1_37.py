"""Fields of devices that are new in 1.37, as the API writes them (1.37 spec N4)."""

import json
from typing import Any

import msgspec
import pytest

from berth.kube.objects.devices import Device, ExactDeviceRequest, ResourceClaim, ResourceSliceSpec
from berth.kube.objects.pod import PodStatus

RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "a"}


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        pytest.param(
            ResourceSliceSpec,
            {"driver": "d", "skipNodeOperations": ["NodePrepareResources", "*"]},
            id="skipNodeOperations",
        ),
        pytest.param(
            Device,
            {
                "name": "a",
                "consumesCounters": [
                    {
                        "counterSet": "set",
                        "counters": {"memory": {"value": "1Gi"}},
                        "compatibilityGroups": ["mig"],
                    }
                ],
            },
            id="compatibilityGroups",
        ),
        pytest.param(
            Device,
            {
                "name": "a",
                "nodeAllocatableResources": {
                    "cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "500m"}},
                    "memory": {
                        "mapping": {"deviceMultiplier": "1Gi"},
                        "overhead": {"perPod": "1Mi", "perContainer": "2Mi"},
                    },
                },
            },
            id="nodeAllocatableResources",
        ),
        pytest.param(
            ExactDeviceRequest,
            {
                "deviceClassName": "gpu",
                "derivedAttributes": [{"name": "derived/root", "expression": "device.driver"}],
            },
            id="derivedAttributes",
        ),
        pytest.param(
            ResourceClaim,
            {
                "status": {
                    "allocation": {
                        "devices": {
                            "results": [
                                RESULT
                                | {
                                    "skipNodeOperations": ["*"],
                                    "compatibilityGroups": {"set": ["mig"]},
                                }
                            ]
                        }
                    }
                }
            },
            id="results of an allocation",
        ),
        pytest.param(
            PodStatus,
            {
                "nodeAllocatableResourceClaimStatuses": [
                    {
                        "resourceClaimName": "c",
                        "containers": ["main"],
                        "mapping": [{"name": "cpu", "quantity": "2"}],
                        "overhead": [{"name": "cpu", "perPod": "1m", "perContainer": "2m"}],
                    }
                ]
            },
            id="what claims take, in the status of a pod",
        ),
    ],
)
def test_what_is_read_is_written_again(
    type_: type[msgspec.Struct], written: dict[str, Any]
) -> None:
    decoded = msgspec.json.decode(json.dumps(written), type=type_)
    assert msgspec.json.decode(msgspec.json.encode(decoded)) == written


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        (
            Device,
            {"name": "a", "nodeAllocatableResources": {"cpu": {"overhead": {"perPod": "-1"}}}},
        ),
        (
            Device,
            {
                "name": "a",
                "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "x"}}},
            },
        ),
        (
            PodStatus,
            {
                "nodeAllocatableResourceClaimStatuses": [
                    {"mapping": [{"name": "c", "quantity": "-1"}]}
                ]
            },
        ),
    ],
)
def test_amounts_that_are_none_are_refused(
    type_: type[msgspec.Struct], written: dict[str, Any]
) -> None:
    with pytest.raises(msgspec.ValidationError, match="quantity"):
        msgspec.json.decode(json.dumps(written), type=type_)
