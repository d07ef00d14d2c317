"""The time at which the taint of a DeviceTaintRule was added (spec G15.1).

Not a plugin of a real server: there the defaults of the kind and its strategy do it.
"""

from berth.cluster.kinds.gated_devices import GROUP
from berth.cluster.resources import ResourceType
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.runtime.clock import Clock, rfc3339


class DeviceTaintTime(Step):
    """Fills in ``timeAdded``, also when the effect changes and the client leaves the time alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_rule = (resource.group, resource.kind) == (GROUP, "DeviceTaintRule")
        is_write = operation in (Operation.CREATE, Operation.UPDATE)
        return is_rule and is_write and not subresource

    def admit(self, request: AdmissionRequest) -> None:
        taint = ((request.object or {}).get("spec") or {}).get("taint")
        if not taint:
            return  # validation says what is wrong
        old = ((request.old_object or {}).get("spec") or {}).get("taint") or {}
        is_kept = bool(old) and taint.get("timeAdded") == old.get("timeAdded")
        if not taint.get("timeAdded") or (is_kept and taint.get("effect") != old.get("effect")):
            taint["timeAdded"] = rfc3339(self._clock.now())
