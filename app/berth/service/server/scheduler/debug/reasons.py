"""Reasons of waiting pods, the same for pods which wait for the same."""

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Final

import msgspec

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import group_of
from berth.scheduler.binding import Stage
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.service.server.scheduler.debug.models import Cause

REASONS_PER_TURN: Final = 512
"""Pods whose reasons are looked at in one turn of the event loop; each takes some microseconds."""
LONGEST_ERROR: Final = 200
"""Letters of an error that count: what follows mostly differs by pod."""

_PREEMPTION: Final = "DefaultPreemption"
_SCHEDULING_GATES: Final = "SchedulingGates"
_NODES: Final = " nodes are available: "


class Reason(msgspec.Struct, frozen=True, dict=True):
    """Why pods wait; those for which it is equal belong together."""

    cause: Cause
    plugins: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @cached_property
    def id(self) -> str:
        """Its name in addresses, the same in every process."""
        return blake2b(msgspec.json.encode(self), digest_size=8).hexdigest()


class Reasons:
    """Finds the reason of waiting pods; to be made for one look at all of them."""

    def __init__(self, view: SchedulerView) -> None:
        self._view = view
        self._messages = view.decisions.messages()
        self._nominator = view.queue.nominator
        self._groups = view.groups

    def of(self, queued: QueuedPodInfo) -> Reason:
        """Return why *queued* waits, which is in the queue or waits for Permit plugins."""
        if queued.gating_plugin:
            return self._gated(queued)
        binding = self._view.bindings.get(queued.uid)
        if binding is not None:
            waits = binding.waiting.pending_plugins if binding.waiting is not None else ()
            return Reason(Cause.PERMIT, tuple(sorted(waits)))
        if self._nominator.nominated_node(queued.uid):
            return Reason(Cause.PREEMPTING)
        if not queued.attempts:
            return Reason(Cause.NOT_TRIED)
        plugins = tuple(sorted(queued.unschedulable_plugins | queued.pending_plugins))
        message = self.message_of(queued)
        is_of_group = self._groups is not None and group_of(queued.pod) is not None
        if not plugins and not is_of_group:
            pod = queued.pod.metadata
            error = message.replace(queued.key, "POD").replace(pod.name, "POD")
            return Reason(Cause.ERROR, (), (error[:LONGEST_ERROR],) if error else ())
        return Reason(Cause.REJECTED, plugins, reasons_in(message))

    def message_of(self, queued: QueuedPodInfo) -> str:
        """Return what its PodScheduled condition says, or else what its last attempt came to."""
        return message_of(queued, self._view.pods) or self._messages.get(queued.uid, "")

    def _gated(self, queued: QueuedPodInfo) -> Reason:
        plugin = queued.gating_plugin
        if plugin == _PREEMPTION:
            return Reason(Cause.PREEMPTING)
        gates: tuple[str, ...] = ()
        if plugin == _SCHEDULING_GATES:
            gates = tuple(sorted(gate.name for gate in queued.pod.spec.scheduling_gates))
        return Reason(Cause.GATED, (plugin,), gates)


@lru_cache(maxsize=4096)
def reasons_in(message: str) -> tuple[str, ...]:
    """Return the reasons of a FailedScheduling message without the numbers of nodes, sorted.

    "0/3 nodes are available: 2 Insufficient cpu, 1 Too many pods. preemption: ..." is "Insufficient
    cpu" and "Too many pods". What is written differently is one reason as a whole.
    """
    head, is_counted, rest = message.partition(_NODES)
    if not is_counted or not head.startswith("0/"):
        return (message,) if message else ()
    reasons: list[str] = []
    for part in rest.partition(". ")[0].removesuffix(".").split(", "):
        number, _, reason = part.partition(" ")
        if number.isdecimal() and reason:
            reasons.append(reason)
        elif reasons:
            reasons[-1] += f", {part}"  # a comma within a reason
        else:
            reasons.append(part)
    return tuple(sorted(reasons))


def message_of(queued: QueuedPodInfo, pods: Mapping[str, Pod]) -> str:
    """Return what the PodScheduled condition of a pod says in the API."""
    current = pods.get(queued.key, queued.pod)
    for condition in current.status.conditions:
        if condition.type == "PodScheduled":
            return condition.message
    return ""


def in_flight(view: SchedulerView) -> Iterator[QueuedPodInfo]:
    """Yield the pods that wait for Permit plugins; what is being tried is never seen."""
    for binding in view.bindings:
        if binding.stage is Stage.PERMIT:
            yield binding.reservation.queued
