"""When volumes came into their phases (``pkg/registry/core/persistentvolume/strategy.go``)."""

from typing import Final

from berth.cluster.resources import Object, ResourceType
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.runtime.clock import Clock, rfc3339

FIELD: Final = "lastPhaseTransitionTime"


class VolumePhaseTime(Step):
    """Notes the time of a new phase, unless who writes it says one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_volume = (resource.group, resource.kind) == ("", "PersistentVolume")
        return operation is Operation.UPDATE and is_volume and subresource == "status"

    def admit(self, request: AdmissionRequest) -> None:
        new: Object = (request.object or {}).get("status") or {}
        old: Object = (request.old_object or {}).get("status") or {}
        if new.get("phase") != old.get("phase") and new.get(FIELD) in (None, old.get(FIELD)):
            new[FIELD] = rfc3339(self._clock.now())
