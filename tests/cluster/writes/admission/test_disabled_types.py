"""Fields of Kubernetes 1.37 behind gates: kept with the gate, dropped without, unknown in 1.36."""

import json
from typing import Any, Final

import pytest

from berth.cluster.kinds.builtin import find, resources
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import reachable
from berth.cluster.writes.admission.disabled_types import GATED, DisabledTypes
from berth.cluster.writes.admission.request import Operation
from berth.runtime.release import RELEASES
from berth.scheduler.config.kube_features import FEATURE_GATES
from tests.cluster.writes.booted import Booted

PODS: Final = find("", "v1", "pods")
NODES: Final = find("", "v1", "nodes")
JOBS: Final = find("batch", "v1", "jobs")
SLICES: Final = find("resource.k8s.io", "v1", "resourceslices")


def pod(container: Object | None = None, **spec: Any) -> Object:
    containers = [{"name": "c", "image": "i", **(container or {})}]
    return {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": containers, **spec},
    }


def volume(**source: Any) -> Object:
    return pod(volumes=[{"name": "v", **source}])


def slice_of(**spec: Any) -> Object:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": "s"},
        "spec": {"driver": "a.example.com", "nodeName": "n", "pool": pool, **spec},
    }


def device(**more: Any) -> Object:
    return slice_of(devices=[{"name": "d", **more}])


CASES: Final = [
    pytest.param(
        "EvictionRequestAPI",
        PODS,
        pod(evictionResponders=[{"name": "a.example.com/r", "priority": 1}]),
        "evictionResponders",
        id="who is asked before a pod is evicted",
    ),
    pytest.param(
        "VolumeBindMountOptions",
        PODS,
        pod(
            {"volumeMounts": [{"name": "v", "mountPath": "/v", "bindMountOptions": ["nodev"]}]},
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
        "bindMountOptions",
        id="how a volume is mounted",
    ),
    pytest.param(
        "H2CContainerProbe",
        PODS,
        pod({"livenessProbe": {"httpGet": {"path": "/", "port": 80, "protocol": "HTTP2"}}}),
        '"HTTP2"',
        id="the protocol of a probe",
    ),
    pytest.param(
        "GRPCContainerProbeTLS",
        PODS,
        pod({"readinessProbe": {"grpc": {"port": 80, "mode": "TLS"}}}),
        '"TLS"',
        id="the mode of a probe",
    ),
    pytest.param(
        "EmptyDirVolumeMode", PODS, volume(emptyDir={"mode": 448}), "448", id="who reads a folder"
    ),
    pytest.param(
        "AtomicWriteVolumeUserFields",
        PODS,
        volume(configMap={"name": "c", "defaultUser": 4711}),
        "4711",
        id="whose a file is",
    ),
    pytest.param(
        "InPlacePodVerticalScalingSchedulerPreemption",
        NODES,
        {
            "metadata": {"name": "n"},
            "spec": {"podPreemptionPolicy": {"disableResizePreemption": ["cpu"]}},
        },
        "podPreemptionPolicy",
        id="what a node does not evict for",
    ),
    pytest.param(
        "DRAOptionalNodeOperations",
        SLICES,
        slice_of(skipNodeOperations=["*"]),
        "skipNodeOperations",
        id="what a driver need not do",
    ),
    pytest.param(
        "DRAPartitionableDevicesType",
        SLICES,
        slice_of(partitionTypeAttribute="a.example.com/t"),
        "partitionTypeAttribute",
        id="the type of partitions",
    ),
    pytest.param(
        "DRADeviceCompatibilityGroups",
        SLICES,
        device(
            consumesCounters=[
                {"counterSet": "c", "counters": {"x": {"value": "1"}}, "compatibilityGroups": ["g"]}
            ]
        ),
        "compatibilityGroups",
        id="devices that go together",
    ),
    pytest.param(
        "DRANodeAllocatableResources",
        SLICES,
        device(nodeAllocatableResources={"cpu": {"mapping": {"deviceMultiplier": "1"}}}),
        "nodeAllocatableResources",
        id="what a device takes of its node",
    ),
    pytest.param(
        "WorkloadWithJob",
        JOBS,
        {
            "metadata": {"name": "j", "namespace": "default"},
            "spec": {
                "template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}},
                "scheduling": {"schedulingPolicy": {"basic": {}}},
            },
        },
        '"scheduling"',
        id="how the pods of a Job are scheduled",
    ),
]


def told(cluster: Booted, resource: ResourceType, obj: Object) -> str:
    return json.dumps(cluster.create(resource, obj)["spec"])


@pytest.mark.parametrize(("gate", "resource", "obj", "field"), CASES)
def test_a_field_is_kept_with_its_gate_only(
    gate: str, resource: ResourceType, obj: Object, field: str
) -> None:
    assert field in told(Booted(gate), resource, obj)
    assert field not in told(Booted(), resource, obj)


def test_a_field_that_is_there_stays_when_its_gate_is_turned_off() -> None:
    before = Booted("EmptyDirVolumeMode")
    before.create(PODS, volume(emptyDir={"mode": 448}))

    def relabel(obj: Object) -> Object:
        return {**obj, "metadata": {**obj["metadata"], "labels": {"a": "b"}}}

    after = Booted(store=before.store).update(PODS, "default/p", relabel)
    assert after["spec"]["volumes"][0]["emptyDir"]["mode"] == 448


def test_a_status_has_what_is_behind_a_gate_with_it_only() -> None:
    def sick(obj: Object) -> Object:
        health = {"name": "v", "healthConditions": [{"status": "Degraded", "reason": "R"}]}
        return {**obj, "status": {**obj["status"], "volumeHealth": [health]}}

    for gates, is_kept in ((("CSIVolumeHealth",), True), ((), False)):
        cluster = Booted(*gates)
        cluster.create(PODS, pod())
        stored = cluster.update(PODS, "default/p", sick, subresource="status")
        assert ("volumeHealth" in stored["status"]) is is_kept


def test_the_table_speaks_of_fields_that_there_are() -> None:
    kinds = (builtin.schema_of(k.group, k.version, k.kind) for k in builtin.kinds())
    types = {
        schema.name.removeprefix("io.k8s.api."): schema
        for kind in kinds
        if kind is not None
        for schema in reachable(kind)
    }
    for gate, of_gate in GATED.items():
        assert not FEATURE_GATES[RELEASES[-1]][gate].enabled, "of those alone a default can miss"
        for name, fields in of_gate.items():
            assert {*fields} <= types[name].fields.keys()


def test_a_server_of_1_36_has_no_such_fields() -> None:
    step = DisabledTypes(())
    assert not [r for r in resources("1.36") if step.handles(Operation.CREATE, r, "")]
