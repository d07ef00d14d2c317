"""RuntimeClass: what a pod of a class costs beside its containers, and where it can run."""

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType, section
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube.field_errors import quoted
from berth.kube.objects.amounts import amounts

PODS = find("", "v1", "pods").storage_key
RUNTIME_CLASSES = find("node.k8s.io", "v1", "runtimeclasses").storage_key

MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
UNFOUNDED = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Step):
    def __init__(self, store: Store) -> None:
        self._store = store

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        return operation is Operation.CREATE and not subresource and resource.storage_key == PODS

    def admit(self, request: AdmissionRequest) -> None:
        if request.object is None:
            return
        spec = section(request.object, "spec")
        runtime_class = self._class(request, spec)
        if runtime_class is None:
            return
        overhead = _overhead(runtime_class)
        if overhead:
            if spec.get("overhead") and not _same(spec["overhead"], overhead):
                raise forbidden(request, MISMATCH)
            spec["overhead"] = overhead
        _set_scheduling(request, spec, runtime_class.get("scheduling") or {})

    def validate(self, request: AdmissionRequest) -> None:
        spec = (request.object or {}).get("spec") or {}
        said = spec.get("overhead")
        runtime_class = self._class(request, spec)
        overhead = _overhead(runtime_class) if runtime_class is not None else {}
        if overhead and not _same(said or {}, overhead):
            raise forbidden(request, MISMATCH)
        if said and not overhead:
            raise forbidden(request, UNFOUNDED)

    def _class(self, request: AdmissionRequest, spec: Object) -> Object | None:
        name = spec.get("runtimeClassName")
        if name is None:
            return None
        try:
            return self._store.get(RUNTIME_CLASSES, "", name).decode()
        except NotFoundError:
            why = f"pod rejected: RuntimeClass {quoted(name)} not found"
            raise forbidden(request, why) from None


def _overhead(runtime_class: Object) -> Object:
    fixed: Object = (runtime_class.get("overhead") or {}).get("podFixed") or {}
    return fixed


def _same(left: Object, right: Object) -> bool:
    try:
        return {name: each.nanos for name, each in amounts(left).items()} == {
            name: each.nanos for name, each in amounts(right).items()
        }
    except ValueError:
        return left == right


def _set_scheduling(request: AdmissionRequest, spec: Object, scheduling: Object) -> None:
    """Add to the pod's node selector, which may not say otherwise, and to its tolerations."""
    wanted = scheduling.get("nodeSelector") or {}
    selector = spec.get("nodeSelector") or {}
    for key, value in wanted.items():
        said = selector.get(key, value)
        if said != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {said}"
            )
            raise forbidden(request, why)
    if wanted:
        spec["nodeSelector"] = {**selector, **wanted}
    tolerations = spec.get("tolerations") or []
    added = [
        toleration
        for toleration in scheduling.get("tolerations") or ()
        if toleration not in tolerations
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]
