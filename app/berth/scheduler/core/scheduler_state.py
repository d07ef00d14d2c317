"""The state of a scheduler beside the objects of its cluster, for one that goes on from there."""

from typing import Final

from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import group_of
from berth.runtime.tasks import Steps, at_once
from berth.scheduler.core.scheduler_core import SchedulerCore
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo, copied
from berth.scheduler.queue.sub_queues import SubQueue


class WaitingPodState(KubeStruct, frozen=True, gc=False):
    """A waiting pod's history in the queue (spec §3.1). Times are in seconds since 1970."""

    uid: str
    queue: SubQueue
    timestamp: float
    initial_attempt_timestamp: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    backoff_expiration: float | None = None
    unschedulable_plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    gating_plugin: str = ""

    def queued(self, pod: Pod) -> QueuedPodInfo:
        """Return *pod* with this history."""
        return QueuedPodInfo(
            PodInfo(pod),
            timestamp=self.timestamp,
            initial_attempt_timestamp=self.initial_attempt_timestamp,
            attempts=self.attempts,
            unschedulable_count=self.unschedulable_count,
            consecutive_errors_count=self.consecutive_errors_count,
            backoff_expiration=self.backoff_expiration,
            unschedulable_plugins=set(self.unschedulable_plugins),
            pending_plugins=set(self.pending_plugins),
            gating_plugin=self.gating_plugin,
        )


class SchedulerState(KubeStruct, frozen=True, gc=False):
    """The queue, and what decides between nodes that are equally good."""

    now: float
    """The time, in seconds since 1970."""
    next_start_node_index: int = 0
    """Where the rotation over the nodes stands (spec §2.5)."""
    rows: tuple[int, ...] = ()
    """Row of each node, in the order in which scheduling goes round them. Ties are broken by rows,
    which follow the order in which nodes came, and are used again when a node has gone."""
    waiting: tuple[WaitingPodState, ...] = ()
    """Each sub-queue in its order."""


def state_of(core: SchedulerCore) -> SchedulerState:
    """Return the state of *core* at this moment; takes a sort of the waiting pods."""
    return at_once(taking_state(core))


def taking_state(core: SchedulerCore) -> Steps[SchedulerState]:
    """Return the state of *core* at the moment of the first step; each further one is for a pod.

    A pod that is gated while its victims are evicted is one to be tried: nobody else evicts them.
    """
    core.cache.refresh_order()
    sub_queues, preempts = core.queue.sub_queues, not core.preemptions.is_idle
    now, start = core.outside.clock.now(), core.sampling.next_start_node_index
    rows = tuple(core.cache.table.order.tolist())
    kept = [(part, [*map(copied, sub_queues.pods(part))]) for part in SubQueue]
    histories: dict[str, QueuedPodInfo] = {}
    for group in sub_queues.groups():
        histories |= dict.fromkeys((queued.uid for queued in group.pods), copied(group))
    preempting = {
        queued.uid
        for _, pods in kept
        for queued in (pods if preempts else ())
        if _is_preempting(core, queued)
    }
    yield
    waiting = []
    for part, pods in kept:
        for queued in pods:
            entity, is_preempting = histories.get(queued.uid, queued), queued.uid in preempting
            waiting.append(
                _state_of(queued, entity, _PARTS.get(part, part), is_preempting=is_preempting)
            )
            yield
    return SchedulerState(now=now, next_start_node_index=start, rows=rows, waiting=tuple(waiting))


def _is_preempting(core: SchedulerCore, queued: QueuedPodInfo) -> bool:
    """Whether victims are being evicted for the pod or for its group."""
    key = group_of(queued.pod)
    hierarchy = core.handle.pod_groups.hierarchy
    group = None if key is None else hierarchy.root(key)
    return core.preemptions.is_preempting(queued.uid) or (
        group is not None and core.preemptions.is_preempting(group.metadata.uid)
    )


_PARTS: Final = {SubQueue.INCOMPLETE: SubQueue.GATED, SubQueue.PENDING: SubQueue.ACTIVE}
"""Where a pod goes on from places that not every queue has."""


def _state_of(
    queued: QueuedPodInfo, entity: QueuedPodInfo, part: SubQueue, *, is_preempting: bool
) -> WaitingPodState:
    """Return the state of *queued*; its history is that of *entity*, in which it waits."""
    is_gated = part is SubQueue.GATED and not is_preempting
    return WaitingPodState(
        uid=queued.uid,
        queue=SubQueue.ACTIVE if part is SubQueue.GATED and is_preempting else part,
        timestamp=entity.timestamp,
        initial_attempt_timestamp=queued.initial_attempt_timestamp,
        attempts=queued.attempts,
        unschedulable_count=entity.unschedulable_count,
        consecutive_errors_count=entity.consecutive_errors_count,
        backoff_expiration=entity.backoff_expiration,
        unschedulable_plugins=tuple(sorted(entity.unschedulable_plugins)),
        pending_plugins=tuple(sorted(entity.pending_plugins)),
        gating_plugin=entity.gating_plugin if is_gated else "",
    )
