"""Fields behind feature gates that are off by default, wherever an object of their type is.

A real server drops them in the strategies of the kinds (``dropDisabledFields``). Those of releases
that do not have the field are unknown fields there.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.types import Schema, Type, object_of, objects_in, reachable
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

_USER: Final = ("user",)
_DEFAULT_USER: Final = ("defaultUser",)

GATED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "AtomicWriteVolumeUserFields": {
        "core.v1.ClusterTrustBundleProjection": _USER,
        "core.v1.ConfigMapVolumeSource": _DEFAULT_USER,
        "core.v1.DownwardAPIVolumeFile": _USER,
        "core.v1.DownwardAPIVolumeSource": _DEFAULT_USER,
        "core.v1.KeyToPath": _USER,
        "core.v1.PodCertificateProjection": _USER,
        "core.v1.ProjectedVolumeSource": _DEFAULT_USER,
        "core.v1.SecretVolumeSource": _DEFAULT_USER,
        "core.v1.ServiceAccountTokenProjection": _USER,
    },
    "CSIVolumeHealth": {
        "core.v1.PersistentVolumeClaimStatus": ("healthStatus",),
        "core.v1.PodStatus": ("volumeHealth",),
        "storage.v1.CSINode": ("status",),
    },
    "DRADerivedAttributes": {
        "resource.v1.DeviceSubRequest": ("derivedAttributes",),
        "resource.v1.ExactDeviceRequest": ("derivedAttributes",),
    },
    "DRADeviceCompatibilityGroups": {
        "resource.v1.DeviceCounterConsumption": ("compatibilityGroups",),
    },
    "DRANodeAllocatableResources": {"resource.v1.Device": ("nodeAllocatableResources",)},
    "DRAOptionalNodeOperations": {
        "resource.v1.DeviceRequestAllocationResult": ("skipNodeOperations",),
        "resource.v1.ResourceSliceSpec": ("skipNodeOperations",),
    },
    "DRAPartitionableDevicesType": {"resource.v1.ResourceSliceSpec": ("partitionTypeAttribute",)},
    "EmptyDirVolumeMode": {"core.v1.EmptyDirVolumeSource": ("mode",)},
    "EvictionRequestAPI": {"core.v1.PodSpec": ("evictionResponders",)},
    "GRPCContainerProbeTLS": {"core.v1.GRPCAction": ("mode",)},
    "H2CContainerProbe": {"core.v1.HTTPGetAction": ("protocol",)},
    "InPlacePodVerticalScalingSchedulerPreemption": {"core.v1.NodeSpec": ("podPreemptionPolicy",)},
    "VolumeBindMountOptions": {"core.v1.VolumeMount": ("bindMountOptions",)},
    "WorkloadWithJob": {"batch.v1.JobSpec": ("scheduling",)},
}
"""Gate → object type without ``io.k8s.api.`` → fields."""

Plan = tuple[tuple[str, str, Type], ...]
"""Of an object type: fields with the gate that they are behind, "" if it is something in them."""


class DisabledTypes(Step):
    """Drops the fields of :data:`GATED` whose gate is off, unless the object has had one of it."""

    def __init__(self, features: Collection[str]) -> None:
        self._off: dict[str, dict[str, str]] = {}
        for gate, types in GATED.items():
            for name, fields in types.items() if gate not in features else ():
                self._off.setdefault(name, {}).update(dict.fromkeys(fields, gate))
        self._plans: dict[Schema, Plan] = {}

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_write = operation in (Operation.CREATE, Operation.UPDATE)
        is_builtin = resource.structural is None
        return is_write and is_builtin and bool(self._plan(resource.schema))

    def admit(self, request: AdmissionRequest) -> None:
        schema = request.resource.schema
        found = list(self._places(schema, _written(request.object, request)))
        if not found:
            return
        old = _written(request.old_object, request)
        before = {gate for gate, _, _ in self._places(schema, old)}
        for gate, owner, field in found:
            if gate not in before:
                del owner[field]

    def _places(self, schema: Schema, obj: Any) -> Iterator[tuple[str, Object, str]]:
        """Yield the fields of *obj*, and of what is in it, with their gates and owners."""
        for name, gate, type_ in self._plan(schema):
            value = obj.get(name) if isinstance(obj, dict) else None
            if value is None:
                continue
            if gate:
                yield gate, obj, name
                continue
            for below, child, _ in objects_in(type_, value):
                yield from self._places(below, child)

    def _plan(self, schema: Schema) -> Plan:
        if schema not in self._plans:
            types = list(reachable(schema))
            leading = {each for each in types if self._gates(each)}
            while more := {
                each
                for each in types
                if each not in leading
                and any(object_of(field.type) in leading for field in each.fields.values())
            }:
                leading |= more
            for each in types:
                gates = self._gates(each)
                self._plans[each] = tuple(
                    (name, gates.get(name, ""), field.type)
                    for name, field in each.fields.items()
                    if name in gates or object_of(field.type) in leading
                )
        return self._plans[schema]

    def _gates(self, schema: Schema) -> Mapping[str, str]:
        known = self._off.get(schema.name.removeprefix("io.k8s.api."), {})
        return {name: gate for name, gate in known.items() if name in schema.fields}


def _written(obj: Object | None, request: AdmissionRequest) -> Object:
    """Return the part of an object that a write may change."""
    is_status = request.subresource == "status"
    return {name: value for name, value in (obj or {}).items() if (name == "status") is is_status}
