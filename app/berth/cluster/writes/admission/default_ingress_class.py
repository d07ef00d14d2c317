"""DefaultIngressClass: ingresses that name no class get the default one."""

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import ResourceType, section
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.defaults import newest_default
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
OLD_CLASS = "kubernetes.io/ingress.class"
"""Annotations: of the class of ingresses that name none, and the old way to name one."""

INGRESSES = find("networking.k8s.io", "v1", "ingresses").storage_key
INGRESS_CLASSES = find("networking.k8s.io", "v1", "ingressclasses").storage_key


class DefaultIngressClass(Step):
    def __init__(self, store: Store) -> None:
        self._store = store

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_ingress = not subresource and resource.storage_key == INGRESSES
        return operation is Operation.CREATE and is_ingress

    def admit(self, request: AdmissionRequest) -> None:
        if request.object is None:
            return
        spec, metadata = section(request.object, "spec"), request.object["metadata"]
        if spec.get("ingressClassName") is not None:
            return
        if OLD_CLASS in (metadata.get("annotations") or {}):
            return
        name = newest_default(self._store, INGRESS_CLASSES, DEFAULT_CLASS)
        if name is not None:
            spec["ingressClassName"] = name
