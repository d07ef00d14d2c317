"""What the status of a pod says of its claims (spec G15.3, 1.37 spec N3.17)."""

from collections.abc import Collection
from typing import Final

from berth.cluster.resources import Object, ResourceType
from berth.cluster.strategies.resource_slices import NODE_ALLOCATABLE_RESOURCES
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.runtime.release import Behaviour, EffectiveVersion

KEEPS_CLAIM_STATUSES: Final = Behaviour(
    "1.37",
    "N3.17",
    "A write of a pod's status that leaves out what it says of claims does not delete that.",
)
KEPT: Final = (
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
    "resourceClaimStatuses",
)
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


class KeptClaimStatuses(Step):
    """Keeps what a status says of claims, unless a write says something else.

    A real server takes an empty list for a wish to delete it; here it is as good as none.
    """

    def __init__(self, release: str) -> None:
        self._is_on = EffectiveVersion.of(release).has(KEEPS_CLAIM_STATUSES)

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_status = operation is Operation.UPDATE and subresource == "status"
        return self._is_on and is_status and (resource.group, resource.kind) == ("", "Pod")

    def admit(self, request: AdmissionRequest) -> None:
        before: Object = (request.old_object or {}).get("status") or {}
        kept = {name: before[name] for name in KEPT if name in before}
        if kept and request.object is not None:
            request.object["status"] = {**kept, **(request.object.get("status") or {})}
