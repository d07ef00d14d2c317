"""Nominated nodes of pods that are bound."""

from collections.abc import Collection

from berth.cluster import errors
from berth.cluster.features import CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING
from berth.cluster.resources import ResourceType
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube import field_errors


class NominatedNodeNames(Step):
    """Refuses another nomination for a pod that has a node, with the gate that clears it (G14)."""

    def __init__(self, features: Collection[str]) -> None:
        self._is_on = CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING in features

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_status = (resource.group, resource.kind, subresource) == ("", "Pod", "status")
        return self._is_on and is_status and operation is Operation.UPDATE

    def validate(self, request: AdmissionRequest) -> None:
        new, old = request.object or {}, request.old_object or {}
        wanted = (new.get("status") or {}).get("nominatedNodeName")
        is_bound = bool((old.get("spec") or {}).get("nodeName"))
        if wanted and is_bound and wanted != (old.get("status") or {}).get("nominatedNodeName"):
            why = "may not be set on pods that are already bound to a node"
            refusal = field_errors.forbidden("status.nominatedNodeName", why)
            raise errors.invalid(request.resource, request.name, [refusal])
