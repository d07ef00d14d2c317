"""A scheduler like one release on a cluster of another: groups, claims and tainted devices."""

from pathlib import Path
from typing import Any, Final

import pytest

from berth.runtime.release import RELEASES
from tests.tools.up.group_scenarios import bound, check, group, nodes, pods, scenario, step

Object = dict[str, Any]

RULES: Final = {"1.36": "resource.k8s.io/v1beta2", "1.37": "resource.k8s.io/v1"}
GATES: Final = {
    "1.36": ("GenericWorkload", "GangScheduling", "DRADeviceTaintRules"),
    "1.37": ("GenericWorkload", "DRADeviceTaintRules"),
}
CLASS: Final[Object] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {},
}
SLICE: Final[Object] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    },
}
CLAIM: Final[Object] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "one"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
}
WITH_CLAIM: Final[Object] = {
    "of": "",
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}],
}


def rule(release: str) -> Object:
    return {
        "apiVersion": RULES[release],
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"device": "gpu-0"},
            "taint": {"key": "example.com/broken", "effect": "NoSchedule"},
        },
    }


@pytest.mark.parametrize("emulated", RELEASES)
@pytest.mark.parametrize("served", RELEASES)
def test_a_scheduler_works_with_the_versions_that_the_cluster_serves(
    served: str, emulated: str, tmp_path: Path
) -> None:
    case = scenario(
        nodes("n", 1, "4"),
        gates=GATES[emulated],
        objects=[CLASS, SLICE],
        steps=[
            step(
                "A gang starts together",
                {"create": [group(min_count=2), *pods("a", "b")]},
                expect=[
                    {**bound(2), "within": "1m"},
                    {
                        "objects": {
                            "kind": "PodGroup",
                            "name": "g",
                            "path": ".status.conditions[0].status",
                            "equals": "True",
                        },
                        "within": "1m",
                    },
                ],
            ),
            step(
                "A pod does not get the device that a rule taints",
                {"create": [rule(served), CLAIM]},
                {"create": pods("c", **WITH_CLAIM)},
                expect=[{"event": {"reason": "FailedScheduling", "name": "c"}, "within": "1m"}],
            ),
            step(
                "It gets it when the rule is gone",
                {"delete": {"kind": "DeviceTaintRule", "name": "broken"}},
                expect=[{**bound(1, of="none"), "within": "10m"}],
            ),
        ],
    )
    case["cluster"]["kubernetesVersion"] = served
    check(case, emulated, tmp_path)
