"""StorageObjectInUseProtection: volumes and claims stay as long as somebody uses them.

A finalizer holds them; :mod:`berth.cluster.controllers.volume_protection` takes it away.
"""

from typing import Final

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import ResourceType
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

FINALIZERS: Final = {
    find("", "v1", "persistentvolumeclaims").storage_key: "kubernetes.io/pvc-protection",
    find("", "v1", "persistentvolumes").storage_key: "kubernetes.io/pv-protection",
}


class StorageObjectInUseProtection(Step):
    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_protected = not subresource and resource.storage_key in FINALIZERS
        return operation is Operation.CREATE and is_protected

    def admit(self, request: AdmissionRequest) -> None:
        if request.object is None:
            return
        metadata = request.object["metadata"]
        finalizer = FINALIZERS[request.resource.storage_key]
        present = metadata.get("finalizers") or []
        if finalizer not in present:
            metadata["finalizers"] = [*present, finalizer]
