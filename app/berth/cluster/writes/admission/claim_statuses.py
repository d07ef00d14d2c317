"""Pods' statuses of claims that take resources of their node (spec G15.3)."""

from collections.abc import Collection
from typing import Final

from berth.cluster.resources import Object, ResourceType
from berth.cluster.strategies.resource_slices import NODE_ALLOCATABLE_RESOURCES
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

FIELD: Final = "nodeAllocatableResourceClaimStatuses"


class DisabledNodeAllocatableResources(Step):
    """Drops what pods say of such claims where the gate is off, unless they have said it before."""

    def __init__(self, features: Collection[str]) -> None:
        self._is_off = NODE_ALLOCATABLE_RESOURCES not in features

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_status = operation is Operation.UPDATE and subresource == "status"
        return self._is_off and is_status and (resource.group, resource.kind) == ("", "Pod")

    def admit(self, request: AdmissionRequest) -> None:
        before: Object = (request.old_object or {}).get("status") or {}
        if request.object is not None and FIELD not in before:
            (request.object.get("status") or {}).pop(FIELD, None)
