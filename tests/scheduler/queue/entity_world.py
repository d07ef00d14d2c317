"""The queue of entities in a :class:`World`, with PodGroups and attempts of groups."""

from collections.abc import Sequence
from typing import Any

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import CompositePodGroup, PodGroup
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.events import ActionType, ClusterEvent, EventResource
from berth.scheduler.framework.group_hierarchy import GroupHierarchy
from berth.scheduler.framework.interface import PreEnqueuePlugin
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodGroupInfo, QueuedPodInfo
from berth.scheduler.queue.backoff import DEFAULT_BACKOFF
from berth.scheduler.queue.entities import EntityQueue
from berth.scheduler.queue.hints import Registration
from berth_plugins.priority_sort import PrioritySort
from tests.scheduler.queue.world import PROFILE, START, World

ACTIONS = {True: ActionType.ADD, False: ActionType.UPDATE}


class EntityWorld(World):
    """One profile; PodGroups come and go as a watch would tell it."""

    queue: EntityQueue

    def __init__(
        self,
        *hints: Registration,
        gates: Sequence[PreEnqueuePlugin] = (),
        with_composites: bool = False,
    ) -> None:
        self.clock = FakeClock(START)
        self.pods: dict[str, Pod] = {}
        self.groups: Lister[PodGroup] = Lister()
        self.composites: Lister[CompositePodGroup] = Lister()
        self.hints_called: list[tuple[str, str, str]] = []
        self.queue = EntityQueue(
            hierarchy=GroupHierarchy(self.groups, self.composites if with_composites else None),
            clock=self.clock,
            sort_key=PrioritySort().sort_key,
            pre_enqueue={PROFILE: gates},
            hints={PROFILE: hints},
            pod_lookup=self.pods.get,
            observe_hint=lambda plugin, event, outcome, _: self.hints_called.append(
                (plugin, event, outcome)
            ),
            backoff=DEFAULT_BACKOFF,
        )

    def put_group(self, *groups: PodGroup) -> None:
        for group in groups:
            lister, resource = self._kind_of(group)
            old = lister.get(group.metadata.namespace, group.metadata.name)
            lister.on_add(group)
            event = ClusterEvent(resource, ACTIONS[old is None])
            self.queue.move_all_to_active_or_backoff_queue(event, old=old, new=group)

    def delete_group(self, group: PodGroup) -> None:
        lister, resource = self._kind_of(group)
        lister.on_delete(group)
        event = ClusterEvent(resource, ActionType.DELETE)
        self.queue.move_all_to_active_or_backoff_queue(event, old=group)

    def _kind_of(self, group: PodGroup) -> tuple[Lister[Any], EventResource]:
        if isinstance(group, CompositePodGroup):
            return self.composites, EventResource.COMPOSITE_POD_GROUP
        return self.groups, EventResource.POD_GROUP

    def delete(self, *pods: Pod) -> None:
        for pod in pods:
            self.pods.pop(pod.key, None)
            self.queue.delete(pod)

    def pop_group(self) -> QueuedPodGroupInfo:
        queued = self.pop()
        assert isinstance(queued, QueuedPodGroupInfo), queued.key
        return queued

    def end(
        self,
        entity: QueuedPodGroupInfo,
        *rejectors: str,
        bound: Sequence[str] = (),
        is_scheduled: bool = False,
    ) -> None:
        """End an attempt: pods named in *bound* do not come back, the others are rejected."""
        for member in [*entity.pods]:
            if member.pod.metadata.name in bound or member.key not in self.pods:
                self.queue.done(member.uid)
            else:
                self.reject_member(member, *rejectors)
        self.queue.add_attempted_pod_group_if_needed(
            entity, is_scheduled=is_scheduled, unschedulable_plugins=rejectors
        )

    def reject_member(self, member: QueuedPodInfo, *rejectors: str) -> None:
        """Do what the failure handler does."""
        member.unschedulable_plugins = set(rejectors)
        member.pod_info = PodInfo(self.pods[member.key])
        self.queue.add_unschedulable_if_not_present(member)

    def counts(self) -> dict[str, int]:
        """Return how many pods wait in each place that has any."""
        return {name: n for name, n in self.queue.sub_queues.pending_counts().items() if n}

    def entity_counts(self) -> dict[tuple[str, str], int]:
        return {key: n for key, n in self.queue.sub_queues.entity_counts().items() if n}
