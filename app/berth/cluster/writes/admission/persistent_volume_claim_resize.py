"""PersistentVolumeClaimResize: only bound claims grow, and only of classes that allow it."""

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.writes.admission.default_storage_class import BETA_CLASS
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube.objects.amounts import ZERO, Amount, amounts

CLAIMS = find("", "v1", "persistentvolumeclaims").storage_key
STORAGE_CLASSES = find("storage.k8s.io", "v1", "storageclasses").storage_key


class PersistentVolumeClaimResize(Step):
    def __init__(self, store: Store) -> None:
        self._store = store

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_claim = not subresource and resource.storage_key == CLAIMS
        return operation is Operation.UPDATE and is_claim

    def validate(self, request: AdmissionRequest) -> None:
        new, old = request.object, request.old_object
        if new is None or old is None or _size(new).nanos <= _size(old).nanos:
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise forbidden(request, "Only bound persistent volume claims can be expanded")
        name = _class_of(new)
        if not name or name != _class_of(old) or not self._expands(name):
            why = (
                "only dynamically provisioned pvc can be resized and the storageclass that "
                "provisions the pvc must support resize"
            )
            raise forbidden(request, why)

    def _expands(self, name: str) -> bool:
        try:
            found = self._store.get(STORAGE_CLASSES, "", name).decode()
        except NotFoundError:
            return False
        return bool(found.get("allowVolumeExpansion"))


def _size(claim: Object) -> Amount:
    resources = (claim.get("spec") or {}).get("resources") or {}
    return amounts(resources.get("requests")).get("storage", ZERO)


def _class_of(claim: Object) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    name = annotations.get(BETA_CLASS) or (claim.get("spec") or {}).get("storageClassName")
    return str(name or "")
