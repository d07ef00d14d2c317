"""The queue of entities in a :class:`World`, with PodGroups and attempts of groups."""

from collections.abc import Sequence

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import PodGroup
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.events import ActionType, ClusterEvent, EventResource
from berth.scheduler.framework.interface import PreEnqueuePlugin
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

    def __init__(self, *hints: Registration, gates: Sequence[PreEnqueuePlugin] = ()) -> None:
        self.clock = FakeClock(START)
        self.pods: dict[str, Pod] = {}
        self.groups: dict[tuple[str, str], PodGroup] = {}
        self.hints_called: list[tuple[str, str, str]] = []
        self.queue = EntityQueue(
            pod_group=lambda namespace, name: self.groups.get((namespace, name)),
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
            key = group.metadata.namespace, group.metadata.name
            old = self.groups.get(key)
            self.groups[key] = group
            event = ClusterEvent(EventResource.POD_GROUP, ACTIONS[old is None])
            self.queue.move_all_to_active_or_backoff_queue(event, old=old, new=group)

    def delete_group(self, group: PodGroup) -> None:
        del self.groups[group.metadata.namespace, group.metadata.name]
        event = ClusterEvent(EventResource.POD_GROUP, ActionType.DELETE)
        self.queue.move_all_to_active_or_backoff_queue(event, old=group)

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
