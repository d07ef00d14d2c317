"""LimitRanger: what containers of a namespace get that say nothing, and what nobody may ask for."""

from collections.abc import Iterator
from contextlib import contextmanager

from berth.cluster.kinds.builtin import find
from berth.cluster.reading import UNREADABLE
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.by_namespace import ByNamespace
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube.objects.limit_ranges import claim_offences, in_one, pod_offences, set_defaults

LIMIT_RANGES = find("", "v1", "limitranges")
PODS = find("", "v1", "pods").storage_key
VOLUME_CLAIMS = find("", "v1", "persistentvolumeclaims").storage_key


class LimitRanger(Step):
    def __init__(self, store: Store) -> None:
        self._ranges = ByNamespace(store, LIMIT_RANGES, unreadable=True)

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        """Pods when they are created, as their resources stay, or are resized; claims always."""
        key = resource.storage_key
        if operation is Operation.CREATE:
            return not subresource and key in (PODS, VOLUME_CLAIMS)
        if operation is not Operation.UPDATE:
            return False
        return (key, subresource) in ((PODS, "resize"), (VOLUME_CLAIMS, ""))

    def admit(self, request: AdmissionRequest) -> None:
        """Give containers the defaults."""
        pod = request.object
        if pod is None or request.resource.storage_key != PODS or _is_deleted(request):
            return
        for each in self._ranges.get(request.namespace):
            with _readable(request, each):
                set_defaults(pod, each.get("spec") or {})

    def validate(self, request: AdmissionRequest) -> None:
        obj = request.object
        if obj is None or _is_deleted(request):
            return
        is_pod = request.resource.storage_key == PODS
        for each in self._ranges.get(request.namespace):
            with _readable(request, each):
                offences = (pod_offences if is_pod else claim_offences)(each.get("spec") or {}, obj)
                found = dict.fromkeys(offences)
            if found:
                raise forbidden(request, in_one(found))


@contextmanager
def _readable(request: AdmissionRequest, limit_range: Object) -> Iterator[None]:
    """Refuse where limits cannot be read: what they would allow, nobody knows."""
    try:
        yield
    except UNREADABLE as exc:
        name = limit_range["metadata"]["name"]
        why = f"limit range {name} cannot be read: {type(exc).__name__}: {exc}"
        raise forbidden(request, why) from exc


def _is_deleted(request: AdmissionRequest) -> bool:
    old = request.old_object
    return old is not None and "deletionTimestamp" in old["metadata"]
