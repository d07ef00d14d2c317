"""GangScheduling: the pods of a gang get nodes together, or none of them does (spec G6).

Of groups that are parts of others, the whole tree waits for what its root needs (1.37 spec N11).
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from weakref import WeakSet

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import (
    CompositePodGroup,
    GroupKey,
    PodGroup,
    group_of,
    group_to_wait_with,
)
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
from berth.scheduler.framework.key_index import Choices
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
NO_HIERARCHY: Final = "failed to build hierarchy snapshot: "


class GangScheduling(PreEnqueuePlugin, PermitPlugin, PlacementFeasiblePlugin, EnqueueExtensions):
    """Gates pods until their gang is large enough, and holds them until enough have nodes."""

    NAME = "GangScheduling"
    DECIDES_BY_SIGNATURE = True  # pods of a gang have none; for others it decides nothing

    def __init__(self, args: None = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("GangScheduling: needs a handle to look up groups")
        self._handle = handle
        self._groups = handle.pod_groups.hierarchy
        self._told: WeakSet[PodGroupState] = WeakSet()
        self._pod_index = HintIndex(_key_of_pod, lambda _old, new: self._keys(group_of(new)))
        self._group_index = HintIndex(_key_of_pod, lambda _old, new: self._keys(new.key))
        self._admits_replacements = GANG_REPLACEMENT_PODS in handle.features

    def _min_count(self, group: PodGroup) -> int | None:
        """Return how many pods, or groups, must have nodes together; None: any number.

        kube-scheduler asks for ``minCount`` pods also of a gang that runs: once some of them have
        finished, a pod that replaces another waits for ever (spec G5.8). With GangReplacementPods
        it is enough that the gang has been scheduled once.
        """
        if self._admits_replacements and self._has_been_scheduled(group):
            return None
        return group.min_count

    def _has_been_scheduled(self, group: PodGroup) -> bool:
        if not isinstance(group, CompositePodGroup):
            return group.has_been_scheduled
        # Nobody writes a condition on it.
        children = self._groups.children(group.key)
        return sum(map(self._has_been_scheduled, children)) >= (group.min_count or 1)

    def _needed(self, group: PodGroup) -> int:
        return self._min_count(group) or 1

    def _composite_above(self, group: PodGroup) -> CompositePodGroup | Status | None:
        """Return the root of the tree that *group* is part of; None if it stands alone."""
        if group.parent_key is None or not self._groups.has_composites:
            return None
        if missing := self._groups.missing_above(group.key):
            return Status.unresolvable(NO_HIERARCHY + missing)
        root = self._groups.root_above(group)
        assert isinstance(root, CompositePodGroup)
        return root

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
        root = self._composite_above(group)
        if isinstance(root, Status):
            return root
        if root is not None:
            count = self._handle.pod_groups.all_pods_count
            return self._too_few(root, count, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        min_count = self._min_count(group)
        if min_count is None:
            return None
        state = self._handle.pod_groups.get(key)
        if state is None:
            return Status.error(f"pod group state not found for pod group {key}")
        return None if state.all_pods_count >= min_count else TOO_FEW_PODS

    def _too_few(
        self, root: CompositePodGroup, count: Callable[[GroupKey], int], code: Code
    ) -> Status | None:
        """Return a status of *code* unless the groups below *root* have what they need."""
        if self._groups.has_enough(root, count, self._needed):
            return None
        # Guess (1.37 spec N11): the root is named as PodGroups are in other texts of the plugin.
        what = f'waiting for composite pod group "{root.metadata.name}" tree to meet quorum'
        return Status(code, (what,))

    def placement_feasible(self, group: PodGroup, progress: PlacementProgress) -> Status | None:
        """Say whether enough pods have nodes, or can have (1.37 spec N8.3); 1 of a basic group.

        Of a CompositePodGroup the same of groups, in the same words.
        """
        needed = self._needed(group)
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
            return Status.error(f"failed to get podGroup {key}: {key.not_found}"), 0.0
        root = self._composite_above(group)
        if isinstance(root, Status):
            return Status.error(root.message), 0.0
        if root is not None:
            return self._permit_tree(state, root)
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

    def _permit_tree(
        self, state: CycleState, root: CompositePodGroup
    ) -> tuple[Status | None, float]:
        """Do the same for a pod of any group below *root*."""
        pods = self._handle.pod_groups
        waits = self._too_few(root, pods.scheduled_pods_count, Code.WAIT)
        if not state.on_trial:
            if waits is not None:
                state.pods_to_activate.update((pod.key, pod) for pod in pods.unscheduled(root))
            else:
                self._handle.allow_waiting({pod.uid for pod in pods.scheduled(root)}, self.NAME)
        return waits, 0.0 if waits is None else PERMIT_SECONDS

    # What wakes a pod: changes of its group, and of others with the same root.

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pod_came = ClusterEvent(EventResource.POD, ActionType.ADD)
        registered = [ClusterEventWithHint(pod_came, self._after_pod_add, (self._pod_index,))]
        resources = [EventResource.POD_GROUP]
        if self._groups.has_composites:
            resources.append(EventResource.COMPOSITE_POD_GROUP)
        for resource in resources:
            came = ClusterEvent(resource, ActionType.ADD)
            hint = ClusterEventWithHint(came, self._after_group_add, (self._group_index,))
            registered.append(hint)
            if GROUPS_AS_ENTITIES in self._handle.features:
                changed = ClusterEvent(resource, ActionType.UPDATE)
                hint = ClusterEventWithHint(changed, self._after_group_update, (self._group_index,))
                registered.append(hint)
        return registered

    def _is_in_tree(self, pod: Pod, key: GroupKey | None) -> bool:
        """Whether the group of *pod* has the same root as that of *key*."""
        own = group_of(pod)
        if own is None or key is None:
            return False
        return own == key or self._groups.root_key(own) == self._groups.root_key(key)

    def _after_pod_add(self, pod: Pod, old: Pod | None, new: Pod) -> QueueingHint:
        """Queue if the new pod is of the same group."""
        return QueueingHint.QUEUE if self._is_in_tree(pod, group_of(new)) else QueueingHint.SKIP

    def _after_group_add(self, pod: Pod, old: PodGroup | None, new: PodGroup) -> QueueingHint:
        """Queue if it is the pod's group."""
        return QueueingHint.QUEUE if self._is_in_tree(pod, new.key) else QueueingHint.SKIP

    def _after_group_update(self, pod: Pod, old: PodGroup, new: PodGroup) -> QueueingHint:
        """Queue if it is the pod's group, and fewer are needed than before (1.37 spec N8.1)."""
        if not self._is_in_tree(pod, new.key) or old.min_count is None:
            return QueueingHint.SKIP
        is_less = new.min_count is None or new.min_count < old.min_count
        return QueueingHint.QUEUE if is_less else QueueingHint.SKIP

    def _keys(self, key: GroupKey | None) -> Iterable[GroupKey]:
        """Return the PodGroups with the same root as *key*."""
        if key is None:
            return ()
        root = self._groups.root(key)
        return (key,) if root is None else self._groups.leaves(root)


def _key_of_pod(pod: PodInfo) -> Choices:
    key = group_of(pod.pod)
    return [() if key is None else (key,)]
