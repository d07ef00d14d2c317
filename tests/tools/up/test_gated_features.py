"""What feature gates change beside the scheduling of groups, on an embedded cluster (spec G19)."""

from pathlib import Path
from typing import Final

import pytest

from berth.runtime.release import RELEASES
from berth.scheduler.config.errors import ConfigError
from tests.tools.up.group_scenarios import (
    LONG,
    Object,
    bound,
    by_release,
    check,
    condition,
    create,
    group,
    nodes,
    pod,
    pods,
    scenario,
    step,
    told,
)

DRIVER: Final = "gpu.example.com"
CLASS: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {},
}
SLICE: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "n"},
    "spec": {
        "driver": DRIVER,
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    },
}
TEMPLATE: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpu"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    },
}
CLAIMS: Final = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]

CSI: Final = "csi.example.com"
STORAGE: Final = [
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": CSI},
        "spec": {"storageCapacity": True},
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": CSI,
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    *(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": node, "namespace": "kube-system"},
            "storageClassName": "local",
            "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": node}},
            "capacity": capacity,
        }
        for node, capacity in (("large", "100Gi"), ("small", "50Gi"))
    ),
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        },
    },
]


def no_claim(path: str) -> Object:
    return {"objects": {"kind": "ResourceClaim", "path": path, "count": 0}, "always": LONG}


def by_capacity(*, gates: tuple[str, ...]) -> Object:
    """A pod with a volume that either of two nodes has room for."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    only = step(
        "A claim of 10Gi, 100Gi on one node and 50Gi on the other",
        create(pod("db", of="", volumes=[volume])),
        expect=[{"pods": {"name": "db", "node": "large"}}],
    )
    both = (nodes("small", 1, "4"), nodes("large", 1, "4"))
    return scenario(*both, gates=gates, objects=STORAGE, steps=[only])


CASES: Final = {
    "20, a member, and then the group, are deleted while they wait": scenario(
        nodes("n", 1, "2"),
        steps=[
            step(
                "Three pods, room for two",
                create(group(min_count=3), *pods("a", "b", "c")),
                expect=[condition("reason", "Unschedulable")],
            ),
            step(
                "One is deleted: the others are too few",
                {"delete": {"kind": "Pod", "name": "c"}},
                expect=[{**bound(0), "always": LONG}],
            ),
            step(
                "The group is deleted, and leaves with its last pod",
                {"delete": {"kind": "PodGroup", "name": "g"}},
                {"delete": {"kind": "Pod", "selector": "group=g"}},
                expect=[{"objects": {"kind": "PodGroup", "count": 0}}],
            ),
            step(
                "Another of its name, and pods that fit",
                create(group(min_count=2), *pods("a", "b")),
                expect=[bound(2), condition("status", "True")],
            ),
        ],
    ),
    "21, one device for a gang of two is neither allocated nor reserved": scenario(
        nodes("n", 1, "4"),
        objects=[CLASS, SLICE, TEMPLATE],
        steps=[
            step(
                "Each pod has a claim of its own",
                create(group(min_count=2), *pods("a", "b", resourceClaims=CLAIMS)),
                expect=[
                    {"objects": {"kind": "ResourceClaim", "count": 2}},
                    condition("reason", "Unschedulable"),
                    no_claim(".status.allocation"),
                    no_claim(".status.reservedFor"),
                    bound(0),
                ],
            )
        ],
    ),
    "22, tolerations by comparison": scenario(
        {**nodes("n", 1, "8"), "taints": [{"key": "gpus", "value": "4", "effect": "NoSchedule"}]},
        gates=("TaintTolerationComparisonOperators",),
        steps=[
            step(
                "A taint of 4",
                create(
                    *(
                        pod(
                            name,
                            of="",
                            tolerations=[{"key": "gpus", "operator": operator, "value": value}],
                        )
                        for name, operator, value in (
                            ("lt-8", "Lt", "8"),
                            ("lt-4", "Lt", "4"),
                            ("gt-3", "Gt", "3"),
                        )
                    )
                ),
                create(pod("bad", tolerations=[{"key": "gpus", "operator": "Lt", "value": "08"}]))
                | {"refused": "must be a valid decimal integer in canonical form"},
                expect=[
                    {"pods": {"name": "lt-8", "scheduled": True}},
                    {"pods": {"name": "gt-3", "scheduled": True}},
                    told("lt-4", "untolerated taint"),
                ],
            )
        ],
    ),
    "23, a volume is made where more storage is free": by_capacity(
        gates=("StorageCapacityScoring",)
    ),
    "24, pods without a group do not wait for gangs": scenario(
        nodes("n", 2, "50"),
        steps=[
            step(
                "Ten gangs that fit nowhere, and a hundred pods",
                create(
                    *(group(f"g{n}", min_count=2) for n in range(10)),
                    *(pod(f"g{n}-{i}", of=f"g{n}", cpu="60") for n in range(10) for i in range(2)),
                    *(pod(f"p{n}", of="") for n in range(100)),
                ),
                expect=[
                    {**bound(100, of="none"), "within": "10s"},
                    {"pods": {"selector": "group!=none", "scheduled": True}, "never": LONG},
                ],
            )
        ],
    ),
}


@by_release(CASES)
def test_features(case: Object, release: str, tmp_path: Path) -> None:
    check(case, release, tmp_path)


@pytest.mark.parametrize("release", RELEASES)
def test_25_a_gate_needs_those_that_it_depends_on(release: str, tmp_path: Path) -> None:
    steps = [step("Nothing", expect=[bound(0)])]
    case = scenario(nodes("n", 1, "1"), gates=("TopologyAwareWorkloadScheduling",), steps=steps)
    with pytest.raises(ConfigError, match=r"disabled: \[GenericWorkload\]"):
        check(case, release, tmp_path)
