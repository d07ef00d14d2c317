"""DefaultStorageClass: claims that name no class get the default one."""

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import ResourceType, section
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.defaults import newest_default
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
"""Annotations: of the class of claims that name none, and the old way to name one."""

VOLUME_CLAIMS = find("", "v1", "persistentvolumeclaims")
STORAGE_CLASSES = find("storage.k8s.io", "v1", "storageclasses")


class DefaultStorageClass(Step):
    def __init__(self, store: Store) -> None:
        self._store = store

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_claim = not subresource and resource.storage_key == VOLUME_CLAIMS.storage_key
        return operation is Operation.CREATE and is_claim

    def admit(self, request: AdmissionRequest) -> None:
        if request.object is None:
            return
        spec, metadata = section(request.object, "spec"), section(request.object, "metadata")
        annotations = metadata.get("annotations") or {}
        if spec.get("storageClassName") is not None or BETA_CLASS in annotations:
            return
        name = newest_default(self._store, STORAGE_CLASSES.storage_key, DEFAULT_CLASS)
        if name is not None:
            spec["storageClassName"] = name
