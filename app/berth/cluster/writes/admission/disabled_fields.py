"""Fields behind feature gates: dropped while the gate is off, unless the object has them already.

A real server does so in the strategies of the kinds (``dropDisabledFields``).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from berth.cluster import errors
from berth.cluster.features import (
    MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD,
    NODE_DECLARED_FEATURES,
    POD_LEVEL_RESOURCES,
    VOLUME_LIMIT_SCALING,
)
from berth.cluster.kinds.gates import GENERIC_WORKLOAD
from berth.cluster.resources import Object, ResourceType
from berth.cluster.writes.admission.refusals import name_of
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube import field_errors
from berth.kube.objects.taints import COMPARISONS

POD_SPECS: Final[Mapping[str, Sequence[str]]] = {
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "DaemonSet": ("spec", "template", "spec"),
    "Deployment": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
    "Pod": ("spec",),
    "ReplicaSet": ("spec", "template", "spec"),
    "ReplicationController": ("spec", "template", "spec"),
    "StatefulSet": ("spec", "template", "spec"),
}
"""Where in an object of a kind the spec of its pods is."""

OF_PODS: Final[Mapping[str, Sequence[str]]] = {
    GENERIC_WORKLOAD: ("schedulingGroup",),
    MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD: ("topologySpreadConstraints", "matchLabelKeys"),
    POD_LEVEL_RESOURCES: ("resources",),
}
"""Fields in the spec of a pod, by gate; of a list, that of each item."""

PREVENT_IF_MISSING: Final = "preventPodSchedulingIfMissing"
OF_KINDS: Final[Mapping[tuple[str, str, str], tuple[str, Sequence[str]]]] = {
    ("storage.k8s.io", "CSIDriver", ""): (VOLUME_LIMIT_SCALING, ("spec", PREVENT_IF_MISSING)),
    ("", "Node", ""): (NODE_DECLARED_FEATURES, ("status", "declaredFeatures")),
    ("", "Node", "status"): (NODE_DECLARED_FEATURES, ("status", "declaredFeatures")),
}
"""Gate and field of a kind, and of a subresource of it."""

COMPARING: Final = ("Lt", "Gt")


def _is_write(operation: Operation) -> bool:
    return operation in (Operation.CREATE, Operation.UPDATE)


def _has_pods(operation: Operation, resource: ResourceType, subresource: str) -> bool:
    is_builtin = resource.structural is None
    return _is_write(operation) and not subresource and resource.kind in POD_SPECS and is_builtin


def _pod_spec(request: AdmissionRequest, obj: Object | None) -> Any:
    found: Any = obj
    for step in POD_SPECS[request.resource.kind]:
        found = found.get(step) if isinstance(found, dict) else None
    return found


class DisabledPodFields(Step):
    """Drops fields of pods and of their templates (spec G2.3, G14, G16.4)."""

    def __init__(self, features: Collection[str]) -> None:
        self._off = [path for gate, path in OF_PODS.items() if gate not in features]

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        return bool(self._off) and _has_pods(operation, resource, subresource)

    def admit(self, request: AdmissionRequest) -> None:
        spec, before = _pod_spec(request, request.object), _pod_spec(request, request.old_object)
        for path in self._off:
            _drop(path, spec, before)


class DisabledFields(Step):
    """Drops fields of other kinds, and gives those that are behind no gate any more their default.

    ``preventPodSchedulingIfMissing`` of a CSIDriver is false with the gate (spec G16.2).
    """

    def __init__(self, features: Collection[str]) -> None:
        self._features = features

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        known = OF_KINDS.get((resource.group, resource.kind, subresource))
        if known is None or not _is_write(operation):
            return False
        return known[0] not in self._features or known[0] == VOLUME_LIMIT_SCALING

    def admit(self, request: AdmissionRequest) -> None:
        resource = request.resource
        gate, path = OF_KINDS[resource.group, resource.kind, request.subresource]
        if gate not in self._features:
            _drop(path, request.object, request.old_object)
        elif request.object is not None and isinstance(request.object.get("spec"), dict):
            request.object["spec"].setdefault(PREVENT_IF_MISSING, False)


class DisabledComparisons(Step):
    """Refuses tolerations that compare numbers, unless the object has some already (spec G11)."""

    def __init__(self, features: Collection[str]) -> None:
        self._is_off = COMPARISONS not in features

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        return self._is_off and _has_pods(operation, resource, subresource)

    def admit(self, request: AdmissionRequest) -> None:
        found = list(_comparing(_pod_spec(request, request.object)))
        if not found or any(_comparing(_pod_spec(request, request.old_object))):
            return
        at = ".".join(POD_SPECS[request.resource.kind])
        refusals = [
            field_errors.not_supported(
                f"{at}.tolerations[{index}].operator", operator, ("Equal", "Exists")
            )
            for index, operator in found
        ]
        raise errors.invalid(request.resource, name_of(request), refusals)


def _comparing(spec: Any) -> Iterator[tuple[int, str]]:
    """Yield the place and the operator of tolerations that compare numbers."""
    tolerations = spec.get("tolerations") if isinstance(spec, dict) else None
    for index, toleration in enumerate(tolerations if isinstance(tolerations, list) else ()):
        if isinstance(toleration, dict) and toleration.get("operator") in COMPARING:
            yield index, toleration["operator"]


def _drop(path: Sequence[str], obj: Any, before: Any) -> None:
    """Take the field at *path* out of *obj*, if nothing at *path* of *before* has it."""
    field = path[-1]
    if any(field in owner for owner in _owners(path, before)):
        return
    for owner in _owners(path, obj):
        owner.pop(field, None)


def _owners(path: Sequence[str], value: Any) -> Iterator[Object]:
    """Yield the objects that may have the last field of *path*; of a list, those in it."""
    if isinstance(value, list):
        for each in value:
            yield from _owners(path, each)
    elif isinstance(value, dict):
        if len(path) == 1:
            yield value
        else:
            yield from _owners(path[1:], value.get(path[0]))
