"""SchedulingGates: a pod with scheduling gates is not tried until the last of them is gone."""

from collections.abc import Sequence

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.interface import EnqueueExtensions, PreEnqueuePlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status


class SchedulingGates(PreEnqueuePlugin, EnqueueExtensions):
    """Keeps a pod out of the queue while ``spec.schedulingGates`` is not empty (spec §3.2)."""

    NAME = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        gates = [gate.name for gate in pod.pod.spec.scheduling_gates]
        if not gates:
            return None
        return Status.unresolvable(f"waiting for scheduling gates: [{' '.join(gates)}]")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        gates_gone = ClusterEvent(
            EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        )
        return [ClusterEventWithHint(gates_gone, after_gates_eliminated)]


def after_gates_eliminated(pod: Pod, old: Pod | None, new: Pod) -> QueueingHint:
    """Queue if it is this pod that lost its gates."""
    return QueueingHint.QUEUE if new.metadata.uid == pod.metadata.uid else QueueingHint.SKIP
