"""Volumes, claims, devices, budgets: what is filled in, and what is refused."""

from typing import Any

import pytest

from berth.cluster.columns.cells import Since
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType, Strategy
from berth.cluster.schemas import checks
from berth.cluster.strategies import devices, resource_slices
from tests.cluster.bodies import complaints, stored

PERSISTENT_VOLUME_CLAIM = find("", "v1", "persistentvolumeclaims").strategy
PERSISTENT_VOLUME = find("", "v1", "persistentvolumes").strategy
CSI_DRIVER = find("storage.k8s.io", "v1", "csidrivers").strategy
STORAGE_CLASS = find("storage.k8s.io", "v1", "storageclasses").strategy
POD_DISRUPTION_BUDGET = find("policy", "v1", "poddisruptionbudgets").strategy

META = {"name": "x", "namespace": "default"}
CLAIM: Object = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}
IMMUTABLE = (
    "spec: Forbidden: spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)


def requests(**request: Any) -> Object:
    return {"devices": {"requests": [{"name": "r", **request}]}}


@pytest.mark.parametrize(
    ("strategy", "spec", "want"),
    [
        pytest.param(
            PERSISTENT_VOLUME,
            {},
            {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
            id="volume",
        ),
        pytest.param(
            PERSISTENT_VOLUME_CLAIM,
            {"volumeMode": "Block"},
            {"volumeMode": "Block"},
            id="what is said counts",
        ),
        pytest.param(
            CSI_DRIVER,
            {"attachRequired": False},
            {
                "attachRequired": False,
                "podInfoOnMount": False,
                "storageCapacity": False,
                "fsGroupPolicy": "ReadWriteOnceWithFSType",
                "requiresRepublish": False,
                "seLinuxMount": False,
                "volumeLifecycleModes": ["Persistent"],
            },
            id="driver",
        ),
        pytest.param(
            PERSISTENT_VOLUME_CLAIM,
            {**CLAIM, "dataSource": {"kind": "PersistentVolumeClaim", "name": "old"}},
            {
                **CLAIM,
                "volumeMode": "Filesystem",
                "dataSource": {"kind": "PersistentVolumeClaim", "name": "old"},
                "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "old"},
            },
            id="claim with a source: in the newer field too",
        ),
        pytest.param(
            PERSISTENT_VOLUME_CLAIM,
            {**CLAIM, "dataSourceRef": {"apiGroup": "a.example", "kind": "Image", "name": "i"}},
            {
                **CLAIM,
                "volumeMode": "Filesystem",
                "dataSource": {"apiGroup": "a.example", "kind": "Image", "name": "i"},
                "dataSourceRef": {"apiGroup": "a.example", "kind": "Image", "name": "i"},
            },
            id="and in the older one",
        ),
        pytest.param(
            PERSISTENT_VOLUME_CLAIM,
            {**CLAIM, "dataSource": {"apiGroup": "a.example", "kind": "Image", "name": "i"}},
            {**CLAIM, "volumeMode": "Filesystem"},
            id="which is for volumes and snapshots",
        ),
        pytest.param(
            PERSISTENT_VOLUME_CLAIM,
            {**CLAIM, "dataSourceRef": {"kind": "Image", "name": "i", "namespace": "there"}},
            {
                **CLAIM,
                "volumeMode": "Filesystem",
                "dataSourceRef": {"kind": "Image", "name": "i", "namespace": "there"},
            },
            id="which knows no namespaces",
        ),
        pytest.param(
            devices.resource_claim(),
            requests(exactly={"deviceClassName": "gpu", "tolerations": [{"key": "a"}]}),
            requests(
                exactly={
                    "deviceClassName": "gpu",
                    "allocationMode": "ExactCount",
                    "count": 1,
                    "tolerations": [{"key": "a", "operator": "Equal"}],
                }
            ),
            id="claim of a device with a taint",
        ),
        pytest.param(
            devices.resource_claim(),
            requests(exactly={"deviceClassName": "gpu"}),
            requests(
                exactly={"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
            ),
            id="claim of one device",
        ),
        pytest.param(
            devices.resource_claim(),
            requests(exactly={"deviceClassName": "gpu", "allocationMode": "All"}),
            requests(exactly={"deviceClassName": "gpu", "allocationMode": "All"}),
            id="claim of all devices: no count",
        ),
        pytest.param(
            devices.resource_claim_template(),
            {"spec": requests(firstAvailable=[{"name": "a", "count": 2}])},
            {
                "spec": requests(
                    firstAvailable=[{"name": "a", "count": 2, "allocationMode": "ExactCount"}]
                )
            },
            id="template",
        ),
    ],
)
def test_defaults(strategy: Strategy, spec: Object, want: Object) -> None:
    assert stored(strategy, {"metadata": META, "spec": spec})["spec"] == want


def test_defaults_of_a_storage_class() -> None:
    obj = {
        "metadata": {"name": "x"},
        "provisioner": "p",
    }
    want = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", "provisioner": "p"}
    assert stored(STORAGE_CLASS, obj) == {"metadata": {"name": "x"}, **want}


@pytest.mark.parametrize(
    ("strategy", "obj", "want"),
    [
        pytest.param(
            PERSISTENT_VOLUME_CLAIM,
            {"metadata": META, "spec": {}},
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
            id="a claim of nothing",
        ),
        pytest.param(
            PERSISTENT_VOLUME,
            {"metadata": {"name": "x"}, "spec": {"capacity": {"storage": "1"}}},
            [
                "spec.accessModes: Required value",
                "spec: Required value: must specify a volume type",
            ],
            id="a volume that cannot be mounted",
        ),
        pytest.param(
            STORAGE_CLASS,
            {"metadata": {"name": "x"}},
            ["provisioner: Required value"],
            id="a class of nobody",
        ),
        pytest.param(
            devices.resource_claim(),
            {"metadata": META, "spec": requests()},
            [
                "spec.devices.requests[0]: Required value: exactly one of `exactly` or "
                "`firstAvailable` is required"
            ],
            id="a claim of no device",
        ),
        pytest.param(
            resource_slices.resource_slice(),
            {"metadata": {"name": "x"}, "spec": {"driver": "d"}},
            ["spec.pool.name: Required value"],
            id="devices of no pool",
        ),
        pytest.param(
            POD_DISRUPTION_BUDGET,
            {"metadata": META, "spec": {"minAvailable": 1, "maxUnavailable": 0}},
            [
                'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":0,'
                '"UnhealthyPodEvictionPolicy":null}: minAvailable and '
                "maxUnavailable cannot be both set"
            ],
            id="a budget that says both",
        ),
        pytest.param(
            POD_DISRUPTION_BUDGET,
            {"metadata": META, "spec": {"minAvailable": "101%"}},
            ['spec.minAvailable: Invalid value: "101%": must not be greater than 100%'],
            id="a budget of more than all",
        ),
    ],
)
def test_complaints(strategy: Strategy, obj: Object, want: list[str]) -> None:
    assert complaints(strategy, obj) == want


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({"volumeName": "v"}, [], id="bound"),
        pytest.param({"resources": {"requests": {"storage": "2Gi"}}}, [], id="grown"),
        pytest.param({"storageClassName": "other"}, [IMMUTABLE], id="another class"),
    ],
)
def test_updates_of_a_volume_claim(change: Object, want: list[str]) -> None:
    old = stored(PERSISTENT_VOLUME_CLAIM, {"metadata": META, "spec": CLAIM})
    old["status"] = {"phase": "Bound"}
    new = {"metadata": META, "spec": {**CLAIM, **change}}
    told = complaints(PERSISTENT_VOLUME_CLAIM, new, old)
    assert [line.partition("\n")[0] for line in told] == want


def test_a_claim_grows_once_it_is_bound() -> None:
    old = stored(PERSISTENT_VOLUME_CLAIM, {"metadata": META, "spec": CLAIM})
    new = {"metadata": META, "spec": {**CLAIM, "resources": {"requests": {"storage": "2Gi"}}}}
    [told] = complaints(PERSISTENT_VOLUME_CLAIM, new, old)
    assert told == f"{IMMUTABLE}\n" + "\n".join(
        [
            "@@ -6,7 +6,7 @@",
            '  "Resources": {',
            '   "Limits": null,',
            '   "Requests": {',
            '-   "storage": "1Gi"',
            '+   "storage": "2Gi"',
            "   }",
            "  },",
            '  "VolumeName": "",',
            "",
        ]
    )


def test_a_claim_keeps_its_volume() -> None:
    spec = {**CLAIM, "volumeName": "v"}
    old = stored(PERSISTENT_VOLUME_CLAIM, {"metadata": META, "spec": spec})
    new = {"metadata": META, "spec": {**spec, "volumeName": "w"}}
    [told] = complaints(PERSISTENT_VOLUME_CLAIM, new, old)
    assert told.partition("\n")[0] == IMMUTABLE


def served(group: str, plural: str) -> ResourceType:
    resource = find(group, "v1", plural)
    assert resource is not None
    return resource


@pytest.mark.parametrize(
    ("plural", "obj"),
    [
        pytest.param(
            "resourceslices",
            {"spec": {"devices": [{"name": "d", "capacity": {"memory": {"value": 8}}}]}},
            id="a capacity as a number",
        ),
        pytest.param(
            "deviceclasses",
            {"spec": {"config": [{"opaque": {"driver": "d", "parameters": {"any": [1]}}}]}},
            id="parameters that only the driver knows",
        ),
    ],
)
def test_values_that_the_models_say_little_of(plural: str, obj: Object) -> None:
    assert checks.misfit(served("resource.k8s.io", plural).schema, obj) is None


AT = "2026-11-20T13:06:10Z"


def cells_of(group: str, plural: str, **fields: Any) -> list[Any]:
    obj: Object = {"metadata": {"name": "x", "creationTimestamp": AT}, **fields}
    return [column.value(obj) for column in find(group, "v1", plural).columns]


def test_cells_of_a_volume() -> None:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadOnlyMany", "ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": {"namespace": "default", "name": "data"},
        "storageClassName": "fast",
        "volumeMode": "Filesystem",
    }
    found = cells_of("", "persistentvolumes", spec=spec, status={"phase": "Bound"})
    want = ["x", "1Gi", "RWO,ROX", "Delete", "Bound", "default/data", "fast", "<unset>", ""]
    assert found == [*want, Since(AT), "Filesystem"]


def test_cells_of_a_claim_without_volume() -> None:
    status = {"phase": "Pending", "capacity": {"storage": "1Gi"}}
    found = cells_of("", "persistentvolumeclaims", spec={}, status=status)
    assert found == ["x", "Pending", "", "", "", "", "<unset>", Since(AT), "<unset>"]


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({}, "pending", id="nothing yet"),
        pytest.param({"allocation": {"devices": {}}}, "allocated", id="has devices"),
        pytest.param(
            {"allocation": {"devices": {}}, "reservedFor": [{}]}, "allocated,reserved", id="in use"
        ),
    ],
)
def test_cells_of_a_resource_claim(status: Object, want: str) -> None:
    assert cells_of("resource.k8s.io", "resourceclaims", status=status) == [
        "x",
        want,
        Since(AT),
    ]


def test_cells_of_a_budget() -> None:
    fields = {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}}
    assert cells_of("policy", "poddisruptionbudgets", **fields) == [
        "x",
        "50%",
        "N/A",
        2,
        Since(AT),
    ]
