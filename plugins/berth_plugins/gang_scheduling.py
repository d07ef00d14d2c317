"""GangScheduling: the pods of a gang get nodes together, or none of them does (spec G6)."""

import logging
from collections.abc import Sequence
from typing import Final
from weakref import WeakSet

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import GroupKey, PodGroup, group_of, group_to_wait_with
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintIndex,
    QueueingHint,
)
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EnqueueExtensions,
    PermitPlugin,
    PlacementFeasiblePlugin,
    PreEnqueuePlugin,
)
from berth.scheduler.framework.placement import PlacementProgress
from berth.scheduler.framework.pod_groups import GROUPS_AS_ENTITIES, PodGroupState
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status

log = logging.getLogger(__name__)

GANG_REPLACEMENT_PODS: Final = "GangReplacementPods"

PERMIT_SECONDS: Final = 300.0
"""How long a pod that has a node waits for the others of its gang."""

TOO_FEW_PODS: Final = Status.unresolvable(
    "waiting for minCount pods from a gang to appear in scheduling queue"
)
TOO_FEW_SCHEDULED: Final = Status(
    Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",)
)


class GangScheduling(PreEnqueuePlugin, PermitPlugin, PlacementFeasiblePlugin, EnqueueExtensions):
    """Gates pods until their gang is large enough, and holds them until enough have nodes."""

    NAME = "GangScheduling"
    DECIDES_BY_SIGNATURE = True  # pods of a gang have none; for others it decides nothing

    def __init__(self, args: None = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("GangScheduling: needs a handle to look up groups")
        self._handle = handle
        self._told: WeakSet[PodGroupState] = WeakSet()
        self._admits_replacements = GANG_REPLACEMENT_PODS in handle.features

    def _min_count(self, group: PodGroup) -> int | None:
        """Return how many pods must have nodes together; None: any number.

        kube-scheduler asks for ``minCount`` pods also of a gang that runs: once some of them have
        finished, a pod that replaces another waits for ever (spec G5.8). With GangReplacementPods
        it is enough that the gang has been scheduled once.
        """
        if self._admits_replacements and group.has_been_scheduled:
            return None
        return group.min_count

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        key = group_to_wait_with(pod.pod)
        if key is None:
            return None
        status = self._gate(key)
        if status is not None:
            self._tell(key, status)
        return status

    def _tell(self, key: GroupKey, status: Status) -> None:
        """Log once per group what gates it: no condition and no event says it (spec G4.1)."""
        state = self._handle.pod_groups.get(key)
        if state is None or state in self._told:
            return
        self._told.add(state)
        log.info("pods of a group are gated", extra={"pod_group": str(key), "why": status.message})

    def _gate(self, key: GroupKey) -> Status | None:
        group = self._handle.listers.pod_groups.get(key.namespace, key.name)
        if group is None:
            return Status.unresolvable(
                f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'
            )
        min_count = self._min_count(group)
        if min_count is None:
            return None
        state = self._handle.pod_groups.get(key)
        if state is None:
            return Status.error(f"pod group state not found for pod group {key}")
        return None if state.all_pods_count >= min_count else TOO_FEW_PODS

    def placement_feasible(self, group: PodGroup, progress: PlacementProgress) -> Status | None:
        """Say whether enough pods have nodes, or can have (1.37 spec N8.3); 1 of a basic group."""
        needed = self._min_count(group) or 1
        if progress.scheduled >= needed:
            return None
        counts = f"{progress.scheduled} scheduled, {progress.remaining} remaining"
        if progress.remaining + progress.scheduled < needed:
            return Status.unschedulable(f"minCount ({needed}) cannot be satisfied: {counts}")
        return Status(Code.WAIT, (f"minCount ({needed}) is not yet satisfied: {counts}",))

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        """Let the pod wait until enough of its gang have nodes; the last one lets all go.

        The pod itself is assumed on its node by now, and counts. In a trial that is all: nobody
        waits yet, and all pods of the gang that can be tried are being tried.
        """
        key = group_of(pod.pod)
        if key is None:
            return None, 0.0
        group = self._handle.listers.pod_groups.get(key.namespace, key.name)
        if group is None:
            why = f'podgroup.scheduling.k8s.io "{key.name}" not found'
            return Status.error(f"failed to get podGroup {key}: {why}"), 0.0
        min_count = self._min_count(group)
        if min_count is None:
            return None, 0.0
        pods = self._handle.pod_groups.get(key)
        if pods is None:
            return Status.error(f"pod group state not found for pod group {key}"), 0.0
        if pods.scheduled_pods_count < min_count:
            if not state.on_trial:
                state.pods_to_activate.update((pod.key, pod) for pod in pods.unscheduled())
            return TOO_FEW_SCHEDULED, PERMIT_SECONDS
        if not state.on_trial:
            self._handle.allow_waiting(pods.scheduled.keys(), self.NAME)
        return None, 0.0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pod_came = ClusterEvent(EventResource.POD, ActionType.ADD)
        group_came = ClusterEvent(EventResource.POD_GROUP, ActionType.ADD)
        registered = [
            ClusterEventWithHint(pod_came, after_pod_add, (POD_INDEX,)),
            ClusterEventWithHint(group_came, after_pod_group_add, (GROUP_INDEX,)),
        ]
        if GROUPS_AS_ENTITIES in self._handle.features:
            changed = ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE)
            hint = ClusterEventWithHint(changed, after_pod_group_update, (GROUP_INDEX,))
            registered.append(hint)
        return registered


def after_pod_add(pod: Pod, old: Pod | None, new: Pod) -> QueueingHint:
    """Queue if the new pod is of the same group."""
    key = group_of(pod)
    return QueueingHint.QUEUE if key is not None and group_of(new) == key else QueueingHint.SKIP


def after_pod_group_add(pod: Pod, old: PodGroup | None, new: PodGroup) -> QueueingHint:
    """Queue if it is the pod's group."""
    key, meta = group_of(pod), new.metadata
    is_its = key is not None and (key.namespace, key.name) == (meta.namespace, meta.name)
    return QueueingHint.QUEUE if is_its else QueueingHint.SKIP


def after_pod_group_update(pod: Pod, old: PodGroup, new: PodGroup) -> QueueingHint:
    """Queue if it is the pod's group, and fewer pods are needed than before (1.37 spec N8.1)."""
    if after_pod_group_add(pod, None, new) is QueueingHint.SKIP or old.min_count is None:
        return QueueingHint.SKIP
    is_less = new.min_count is None or new.min_count < old.min_count
    return QueueingHint.QUEUE if is_less else QueueingHint.SKIP


def _keys(pod: Pod) -> tuple[GroupKey, ...]:
    group = group_of(pod)
    return () if group is None else (group,)


POD_INDEX: Final = HintIndex(lambda pod: [_keys(pod.pod)], lambda _old, new: _keys(new))
GROUP_INDEX: Final = HintIndex(
    lambda pod: [_keys(pod.pod)],
    lambda _old, new: (GroupKey(new.metadata.namespace, new.metadata.name),),
)
