"""NamespaceLifecycle: new objects need a namespace that is there to stay."""

from berth.cluster import errors
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube.field_errors import FieldError

IMMORTAL_NAMESPACES = ("default", "kube-public", "kube-system")

NAMESPACES = find("", "v1", "namespaces")


class NamespaceLifecycle(Step):
    def __init__(self, store: Store) -> None:
        self._store = store

    def handles(self, operation: Operation, resource: ResourceType, _subresource: str) -> bool:
        if operation is Operation.DELETE:
            return resource.storage_key == NAMESPACES.storage_key
        return operation is Operation.CREATE and resource.namespaced

    def admit(self, request: AdmissionRequest) -> None:
        if request.operation is Operation.DELETE:
            if request.name in IMMORTAL_NAMESPACES:
                raise forbidden(request, "this namespace may not be deleted")
            return
        namespace = request.namespace
        try:
            found = self._store.get(NAMESPACES.storage_key, "", namespace)
        except NotFoundError:
            raise errors.not_found(NAMESPACES, namespace) from None
        # Most namespaces stay, which can be seen without decoding them.
        if b"deletionTimestamp" in found.body and "deletionTimestamp" in found.decode()["metadata"]:
            why = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            cause = FieldError(
                "metadata.namespace",
                "NamespaceTerminating",
                f"namespace {namespace} is being terminated",
            )
            raise forbidden(request, why, [cause])
