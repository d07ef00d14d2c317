"""The scheduling queue of entities: pods of no group, and whole PodGroups (1.37 spec N8.1).

Of groups that are parts of others the topmost is the entity, with the pods of all of them (N11).

::

    pod of a group --+-- its PodGroup is unknown -> incomplete --PodGroup/Add--+
                     |                                                         v
                     +-- its group is being tried -> pending --it is back--> the group, which waits
                     |                                                       where pods do
                     +---------------------------------------------------------^

A group has one place, one timestamp and one backoff. When it is its turn all its pods are tried;
those that come back are merged with those that came meanwhile. A pod whose binding fails later
comes back by itself: it joins its group wherever that waits, or is the first of it again.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import (
    CompositeKey,
    GroupKey,
    PodGroup,
    group_of,
    group_to_wait_with,
)
from berth.scheduler.framework.events import FORCE_ACTIVATE, ClusterEvent, EventResource
from berth.scheduler.framework.group_hierarchy import GroupHierarchy
from berth.scheduler.framework.pod_info import (
    PodInfo,
    QueuedPodGroupInfo,
    QueuedPodInfo,
    group_entity_key,
)
from berth.scheduler.framework.pod_signature import signature_in_group
from berth.scheduler.queue.events_from_update import pod_scheduling_properties_change
from berth.scheduler.queue.failure_cache import CachedFailure
from berth.scheduler.queue.gating import PreCheck
from berth.scheduler.queue.hints import QueueingStrategy
from berth.scheduler.queue.scheduling_queue import (
    SCHEDULE_ATTEMPT_FAILURE,
    SchedulingQueue,
    count_failure,
)
from berth.scheduler.queue.sub_queues import (
    POD,
    SubQueue,
    SubQueues,
)

INCOMPLETE, PENDING = SubQueue.INCOMPLETE.value, SubQueue.PENDING.value


class GroupMembers:
    """Where the waiting pods of groups are. Only the queue of entities moves them."""

    def __init__(self, hierarchy: GroupHierarchy) -> None:
        self.types = [GroupKey.ENTITY_TYPE]
        """Those of entities beside pods."""
        if hierarchy.has_composites:
            self.types.append(CompositeKey.ENTITY_TYPE)
        self._hierarchy = hierarchy
        self.queued: dict[GroupKey, QueuedPodGroupInfo] = {}
        """The entities that wait in a sub-queue."""
        self.in_flight: dict[GroupKey, QueuedPodGroupInfo] = {}
        """The entities that are being tried."""
        self.incomplete: dict[GroupKey, dict[str, QueuedPodInfo]] = {}
        """By the PodGroup that is not known."""
        self.pending: dict[GroupKey, dict[str, QueuedPodInfo]] = {}
        """By the entity in flight."""
        self._group_of: dict[str, GroupKey] = {}

    def waits(self, pod: QueuedPodInfo, group: GroupKey) -> None:
        """Take note that a pod waits, wherever that is."""
        self._group_of[pod.key] = group

    def is_gone(self, key: str) -> None:
        """Take note that the pod ``namespace/name`` waits no more."""
        self._group_of.pop(key, None)

    def group_of(self, key: str) -> GroupKey | None:
        """Return under which group a pod waits; None if it has none, or does not wait."""
        return self._group_of.get(key)

    def entity_of(self, key: str) -> QueuedPodGroupInfo | None:
        """Return the entity that a pod waits in; None if it waits in no sub-queue."""
        group = self._group_of.get(key)
        entity = None if group is None else self.queued.get(group)
        return entity if entity is not None and key in entity.members else None

    def flight_of(self, key: str, group: GroupKey) -> QueuedPodGroupInfo | None:
        """Return the entity in flight that a pod comes back to: its own, or that of *group*."""
        for entity in self.in_flight.values():
            if key in entity.members:
                return entity
        return self.in_flight.get(group)

    def __bool__(self) -> bool:
        return bool(self._group_of)


class EntitySubQueues(SubQueues):
    """The waiting pods, those of groups one by one."""

    def of_groups(self, members: GroupMembers) -> "EntitySubQueues":
        self._members = members
        return self

    def _key_of(self, key: str) -> str:
        """Return the key of the entity that a pod waits in."""
        group = self._members.group_of(key)
        return key if group is None else group_entity_key(group)

    def get(self, key: str) -> QueuedPodInfo | None:
        group = self._members.group_of(key)
        if group is None:
            return super().get(key)
        members = self._members
        entity = members.queued.get(group)
        for pods in (
            entity.members if entity is not None else {},
            members.incomplete.get(group, {}),
            members.pending.get(group, {}),
        ):
            if (queued := pods.get(key)) is not None:
                return queued
        return None

    def entity_of(self, queued: QueuedPodInfo) -> QueuedPodInfo:
        return self._members.entity_of(queued.key) or queued

    def place_of(self, key: str) -> SubQueue | None:
        group = self._members.group_of(key)
        if group is None:
            return super().place_of(key)
        if key in self._members.incomplete.get(group, ()):
            return SubQueue.INCOMPLETE
        if key in self._members.pending.get(group, ()):
            return SubQueue.PENDING
        return super().place_of(group_entity_key(group))

    def groups(self) -> Iterable[QueuedPodGroupInfo]:
        return self._members.queued.values()

    def entities(self, sub_queue: SubQueue) -> Iterator[QueuedPodInfo]:
        return super().pods(sub_queue)

    def pods(self, sub_queue: SubQueue) -> Iterator[QueuedPodInfo]:
        match sub_queue:
            case SubQueue.INCOMPLETE:
                return _each_of(self._members.incomplete.values())
            case SubQueue.PENDING:
                return _each_of(self._members.pending.values())
            case _:
                return (pod for entity in super().pods(sub_queue) for pod in entity.pods)

    def in_any_order(self, sub_queue: SubQueue) -> Iterator[QueuedPodInfo]:
        match sub_queue:
            case SubQueue.ACTIVE | SubQueue.BACKOFF:
                return (pod for entity in super().in_any_order(sub_queue) for pod in entity.pods)
            case _:
                return self.pods(sub_queue)

    def first_active(self) -> QueuedPodInfo | None:
        first = super().first_active()
        return None if first is None else next(iter(first.pods))

    def ahead_of(self, key: str) -> int:
        """Return how many entities come before that of a pod."""
        return super().ahead_of(self._key_of(key))

    async def all_ahead_of(self, keys: Iterable[str]) -> dict[str, int]:
        by_entity: dict[str, list[str]] = {}
        for key in keys:
            by_entity.setdefault(self._key_of(key), []).append(key)
        ahead = await super().all_ahead_of(by_entity)
        return {key: number for entity, number in ahead.items() for key in by_entity[entity]}

    def pending_counts(self) -> dict[str, int]:
        counts = super().pending_counts()
        for group, entity in self._members.queued.items():
            place = super().place_of(group_entity_key(group))
            if place is not None:
                counts[place.value] += len(entity.members) - 1
        counts[INCOMPLETE] = sum(map(len, self._members.incomplete.values()))
        counts[PENDING] = sum(map(len, self._members.pending.values()))
        return counts

    def entity_counts(self) -> dict[tuple[str, str], int]:
        sizes = super().pending_counts()
        counts = {(name, POD): size for name, size in sizes.items()}
        counts |= {(name, kind): 0 for kind in self._members.types for name in sizes}
        for key, entity in self._members.queued.items():
            place = super().place_of(group_entity_key(key))
            if place is not None:
                counts[place.value, POD] -= 1
                counts[place.value, entity.group_key.ENTITY_TYPE] += 1
        return counts

    def waiting_since(self) -> dict[str, float]:
        oldest, members = super().waiting_since(), self._members
        for name, queued in ((INCOMPLETE, members.incomplete), (PENDING, members.pending)):
            since = [pod.pending_since for pods in queued.values() for pod in pods.values()]
            if since:
                oldest[name] = min(since)
        return oldest

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from (pod for entity in super().__iter__() for pod in entity.pods)
        yield from _each_of(self._members.incomplete.values())
        yield from _each_of(self._members.pending.values())

    def check_invariants(self) -> None:
        super().check_invariants()
        members = self._members
        in_queues = {
            entity.group_key: entity
            for entity in super().__iter__()
            if isinstance(entity, QueuedPodGroupInfo)
        }
        assert in_queues == members.queued
        assert all(entity.members for entity in members.queued.values()), "a group without pods"
        for entity in members.queued.values():
            kinds = {key: signature_in_group(pod.pod_info) for key, pod in entity.members.items()}
            assert entity.kinds == kinds, "a pod was changed in place"
            assert entity.num_of_kind == Counter(kinds.values())
        assert not members.queued.keys() & members.in_flight.keys(), "a group is tried and waits"
        assert members.pending.keys() <= members.in_flight.keys()
        root = members._hierarchy.root_key
        waiting = [
            *((group, entity.members) for group, entity in members.queued.items()),
            *members.incomplete.items(),
            *members.pending.items(),
        ]
        for group, pods in waiting:
            for key, pod in pods.items():
                assert members.group_of(key) == group, key
                of_pod = group_to_wait_with(pod.pod)
                assert of_pod is not None
                assert group == root(of_pod) or group in members.pending, key
        assert len(members._group_of) == sum(len(pods) for _, pods in waiting)


class EntityQueue(SchedulingQueue):
    """All entities that wait for nodes."""

    sub_queues: EntitySubQueues

    def __init__(self, *, hierarchy: GroupHierarchy, **options: Any) -> None:
        """*options* are those of :class:`SchedulingQueue`."""
        super().__init__(sub_queues=EntitySubQueues, **options)
        self._hierarchy = hierarchy
        self._groups = GroupMembers(hierarchy)
        self.sub_queues.of_groups(self._groups)
        self._incoming_entities: Counter[tuple[str, str, str]] = Counter()

    # What happens to pods

    def update(self, old: Pod, new: Pod) -> None:
        if group_to_wait_with(new) is None or old.metadata.uid != new.metadata.uid:
            super().update(old, new)
            return
        queued, place = self.sub_queues.get(new.key), self.sub_queues.place_of(new.key)
        if new.metadata.uid in self._in_flight:
            if queued is not None:  # it has come back, and its group has not yet
                self._replace_pod(queued, old, new)
            for event in pod_scheduling_properties_change(old, new):
                self._in_flight.record(self._hints.of(event), old=old, new=new)
            return
        if queued is None:
            self._add(new, self._pod_added)
            return
        entity = self._groups.entity_of(new.key)
        if entity is None:
            self._replace_pod(queued, old, new)
            return
        # Not in place: what a sub-queue files it under may be another now.
        self._remove(entity.key)
        self._replace_pod(queued, old, new)
        _put(entity, queued)
        match place:
            case SubQueue.ACTIVE:
                self._active.add(entity)
            case SubQueue.BACKOFF:
                self._backoff.add(entity)
            case _:
                self._unschedulable.add(entity)
                for event in pod_scheduling_properties_change(old, new):
                    if self._try_move(entity, self._hints.of(event), old=old, new=new):
                        return

    def delete(self, pod: Pod) -> None:
        if group_to_wait_with(pod) is None:
            super().delete(pod)
            return
        self.nominator.delete_nominated_pod_if_exists(pod.metadata.uid)
        key, entity = self._groups.group_of(pod.key), self._groups.entity_of(pod.key)
        if key is None:
            return
        self._groups.is_gone(pod.key)
        for pods in (self._groups.incomplete, self._groups.pending):
            if pod.key in (waiting := pods.get(key, {})):
                del waiting[pod.key]
                if not waiting:
                    del pods[key]
                self.done(pod.metadata.uid)  # it may have come back from the attempt
                return
        if entity is None:
            return
        strategy = self._take_out(entity)
        entity.take(pod.key)
        if entity.members:
            self._put_back(entity, strategy, self._pod_added)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Do it to the whole group of each of *pods* that has one."""
        alone = []
        hints = self._hints.of(FORCE_ACTIVATE)
        for pod in pods:
            if group_to_wait_with(pod) is None:
                alone.append(pod)
                continue
            entity = self._groups.entity_of(pod.key)
            if entity is not None:
                if not self._active.get(entity.key):
                    from_backoff = self._backoff.remove(entity.key)
                    if from_backoff is not None:
                        self._leave_backoff(entity, hints.label)
                    else:
                        self._unschedulable.remove(entity.key)
                        self._requeue(entity, QueueingStrategy.IMMEDIATELY, hints.label)
            elif pod.metadata.uid in self._in_flight:
                self._in_flight.record(hints, old=None, new=pod)
        super().activate(alone)

    def restore(self, queued: QueuedPodInfo, sub_queue: SubQueue) -> None:
        key = group_to_wait_with(queued.pod)
        if key is None:
            super().restore(queued, sub_queue)
            return
        self.nominator.add_nominated_pod(queued.pod_info)
        group = self._hierarchy.root(key)
        if group is None:
            self._is_incomplete(queued, key)
            return
        self._groups.waits(queued, group.key)
        entity = self._groups.queued.get(group.key)
        if entity is not None:
            self._remove(entity.key)
            _put(entity, queued)
            self._restore(entity, sub_queue)
        else:
            entity = _as_history(group, queued)
            self._groups.queued[group.key] = entity
            self._restore(entity, sub_queue)

    # What the scheduler does

    def pop(self) -> QueuedPodInfo | None:
        queued = super().pop()
        if isinstance(queued, QueuedPodGroupInfo):
            self._leaves(queued)
        return queued

    def pop_specific_pod(self, key: str, *, gated: bool = True) -> QueuedPodInfo | None:
        """Do that for a pod of no group only: others are taken out with their group."""
        if self._groups.group_of(key) is not None:
            return None
        return super().pop_specific_pod(key, gated=gated)

    def pop_entity_of(self, key: str) -> QueuedPodInfo | None:
        group = self._groups.group_of(key)
        if group is None:
            return super().pop_entity_of(key)
        entity = self._groups.queued.get(group)
        if entity is None:
            return None
        self._remove(entity.key)
        entity.attempts += 1
        for member in entity.pods:
            if member.initial_attempt_timestamp is None:
                member.initial_attempt_timestamp = self._clock.now()
        self._begin_flight(entity)
        self._leaves(entity)
        return entity

    def entity_done(self, queued: QueuedPodInfo) -> None:
        for member in queued.pods:
            self.done(member.uid)
        if isinstance(queued, QueuedPodGroupInfo):
            self.add_attempted_pod_group_if_needed(queued, is_scheduled=True)

    def _begin_flight(self, queued: QueuedPodInfo) -> bool:
        if not isinstance(queued, QueuedPodGroupInfo):
            return super()._begin_flight(queued)
        for member in queued.pods:
            member.attempts += 1
            self._in_flight.start(member.uid)
        return True

    def _leaves(self, entity: QueuedPodGroupInfo) -> None:
        """Take note that a group is being tried."""
        del self._groups.queued[entity.group_key]
        self._groups.in_flight[entity.group_key] = entity
        for key in entity.members:
            self._groups.is_gone(key)

    def add_unschedulable_if_not_present(
        self, queued: QueuedPodInfo, *, cached_failure: CachedFailure | None = None
    ) -> bool:
        """Do the same; a pod whose group is being tried waits for that to come back.

        One whose binding failed later joins its group. If nothing else of that waits, the group
        backs off as the pod would. Guess (1.37 spec N8.1): upstream it may be tried at once.
        """
        key = group_to_wait_with(queued.pod)
        if key is None:
            return super().add_unschedulable_if_not_present(queued, cached_failure=cached_failure)
        if self.sub_queues.place_of(queued.key) is not None:
            self.done(queued.uid)
            return False
        count_failure(queued, now=self._clock.now())
        group = self._hierarchy.root(key)
        flight = self._groups.flight_of(queued.key, key if group is None else group.key)
        if flight is not None:
            self._is_pending(queued, flight)
            if queued.key not in flight.members:
                self.done(queued.uid)
            return True
        if group is None or group.key in self._groups.queued:
            self._join(queued, SCHEDULE_ATTEMPT_FAILURE)
        else:
            self._groups.waits(queued, group.key)
            entity = _as_history(group, queued)
            self._put_back(entity, self._strategy_after_attempt(entity), SCHEDULE_ATTEMPT_FAILURE)
        self.done(queued.uid)
        return True

    def add_attempted_pod_group_if_needed(
        self,
        entity: QueuedPodGroupInfo,
        *,
        is_scheduled: bool,
        unschedulable_plugins: Collection[str] = (),
        pending_plugins: Collection[str] = (),
    ) -> None:
        """End the flight of a popped group, and let those of its pods wait that came back.

        After a cycle that bound some of them the others are tried at once, with the timestamp that
        the group had. After one that failed it waits for events that help one of its pods against
        the plugins that rejected it; without plugins, for its backoff.
        """
        key = entity.group_key
        del self._groups.in_flight[key]
        pending = self._groups.pending.pop(key, {})
        returned = [member.uid for member in pending.values() if member.key in entity.members]
        group = self._hierarchy.get(key)
        members = [member for member in pending.values() if self._root_of(member) is group]
        entity.clear()
        if members and group is not None:
            entity.group = group
            for member in members:
                _put(entity, member)
            entity.unschedulable_plugins = set(unschedulable_plugins)
            entity.pending_plugins = set(pending_plugins)
            strategy = QueueingStrategy.IMMEDIATELY
            if not is_scheduled:
                count_failure(entity, now=self._clock.now())
                events = self._in_flight.events_since_pop(returned[0]) if returned else None
                strategy = QueueingStrategy.AFTER_BACKOFF
                if events is not None:
                    strategy = self._hints.strategy_after(events, entity)
            self._put_back(entity, strategy, SCHEDULE_ATTEMPT_FAILURE)
        for member in pending.values():
            if member.key not in entity.members:  # its group is another one's now, or gone
                self._join(member, SCHEDULE_ATTEMPT_FAILURE)
        for uid in returned:
            self.done(uid)

    # What happens in the cluster

    def gate_may_open(self, key: str) -> None:
        group = self._groups.group_of(key)
        super().gate_may_open(key if group is None else group_entity_key(group))

    def move_all_to_active_or_backoff_queue(
        self,
        event: ClusterEvent,
        *,
        old: Any = None,
        new: Any = None,
        pre_check: PreCheck | None = None,
    ) -> None:
        if event.resource in (EventResource.POD_GROUP, EventResource.COMPOSITE_POD_GROUP):
            self._follow(old, new)
        super().move_all_to_active_or_backoff_queue(event, old=old, new=new, pre_check=pre_check)

    def _follow(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Take over a new or changed group; of a PodGroup that is gone, the pods are incomplete.

        A CompositePodGroup takes in the groups below it as it comes, and leaves them as it goes.
        """
        queued, groups = self._groups.queued, [group for group in (old, new) if group is not None]
        key = groups[0].key
        if old is not None and new is not None and old.parent_key == new.parent_key:
            if (entity := queued.get(key)) is not None:
                strategy = self._take_out(entity)
                entity.group = new
                self._restore_place(entity, strategy)
            return
        around = {key, *(self._hierarchy.root_above(group).key for group in groups)}
        if isinstance(key, CompositeKey):
            around.update(child.key for child in self._hierarchy.children(key))
        for entity in [queued[each] for each in around if each in queued]:
            self._part(entity)
        for member in self._groups.incomplete.pop(key, {}).values():
            self._join(member, self._pod_added)

    def _part(self, entity: QueuedPodGroupInfo) -> None:
        """Have those pods leave an entity that are not, or no more, below its group."""
        group = self._hierarchy.get(entity.group_key)
        leaving = [
            member for member in entity.pods if group is None or self._root_of(member) is not group
        ]
        strategy = self._take_out(entity)
        for member in leaving:
            entity.take(member.key)
        if group is not None and entity.members:
            entity.group = group
            self._restore_place(entity, strategy)
        for member in leaving:
            self._join(member, self._pod_added)

    def _root_of(self, member: QueuedPodInfo) -> PodGroup | None:
        key = group_of(member.pod)
        return None if key is None else self._hierarchy.root(key)

    # Ways of groups

    def _add(self, pod: Pod, label: str) -> None:
        key = group_to_wait_with(pod)
        if key is None:
            super()._add(pod, label)
            return
        self.delete(pod)
        member = QueuedPodInfo(PodInfo(pod), timestamp=self._clock.now())
        self.nominator.add_nominated_pod(member.pod_info)
        self._join(member, label)

    def _join(self, member: QueuedPodInfo, label: str) -> None:
        """Have *member* wait with its group, or for it."""
        key = group_of(member.pod)
        assert key is not None
        group = self._hierarchy.root(key)
        flight = self._groups.in_flight.get(key if group is None else group.key)
        if flight is not None:
            self._is_pending(member, flight)
            return
        if group is None:
            self._is_incomplete(member, key)
            return
        self._groups.waits(member, group.key)
        if (entity := self._groups.queued.get(group.key)) is None:
            entity = QueuedPodGroupInfo(member.pod_info, member.timestamp, group=group)
            _put(entity, member)
            self._put_back(entity, QueueingStrategy.IMMEDIATELY, label)
        else:
            strategy = self._take_out(entity)
            _put(entity, member)
            if strategy is QueueingStrategy.IMMEDIATELY and self._gates.run_pre_enqueue_plugins(
                member
            ):
                # The others have just been let in: a group of n pods asks about n, not n squared.
                self._groups.queued[group.key] = entity
                self._push_active(entity, label)
            else:
                self._put_back(entity, strategy, label)

    def _is_incomplete(self, member: QueuedPodInfo, key: GroupKey) -> None:
        self._groups.waits(member, key)
        self._groups.incomplete.setdefault(key, {})[member.key] = member

    def _is_pending(self, member: QueuedPodInfo, flight: QueuedPodGroupInfo) -> None:
        self._groups.waits(member, flight.group_key)
        self._groups.pending.setdefault(flight.group_key, {})[member.key] = member

    def _take_out(self, entity: QueuedPodGroupInfo) -> QueueingStrategy:
        """Take a group out of its sub-queue; return what puts it back there."""
        del self._groups.queued[entity.group_key]
        if self._active.remove(entity.key):
            return QueueingStrategy.IMMEDIATELY
        if self._backoff.remove(entity.key):
            return QueueingStrategy.AFTER_BACKOFF
        self._unschedulable.remove(entity.key)
        return QueueingStrategy.SKIP

    def _put_back(self, entity: QueuedPodGroupInfo, strategy: QueueingStrategy, label: str) -> None:
        self._groups.queued[entity.group_key] = entity
        self._requeue(entity, strategy, label)

    def _restore_place(self, entity: QueuedPodGroupInfo, strategy: QueueingStrategy) -> None:
        """Put a group back where it was, though what it is may be another now; ask nobody."""
        self._groups.queued[entity.group_key] = entity
        match strategy:
            case QueueingStrategy.IMMEDIATELY:
                self._active.add(entity)
            case QueueingStrategy.AFTER_BACKOFF:
                self._backoff.add(entity)
            case QueueingStrategy.SKIP:
                self._unschedulable.add(entity)

    def _push_active(self, queued: QueuedPodInfo, label: str) -> None:
        for member in queued.pods:
            if member.initial_attempt_timestamp is None:
                member.initial_attempt_timestamp = self._clock.now()
        super()._push_active(queued, label)

    def _drop(self, queued: QueuedPodInfo) -> None:
        super()._drop(queued)
        if isinstance(queued, QueuedPodGroupInfo):
            del self._groups.queued[queued.group_key]
            for key in queued.members:
                self._groups.is_gone(key)

    def _note(self, sub_queue: str, label: str, queued: QueuedPodInfo, number: int = 1) -> None:
        super()._note(sub_queue, label, queued, number * len(queued.pods))
        kind = queued.group_key.ENTITY_TYPE if isinstance(queued, QueuedPodGroupInfo) else POD
        self._incoming_entities[sub_queue, label, kind] += number

    def incoming_entity_counts(self) -> dict[tuple[str, str, str], int]:
        return dict(self._incoming_entities)


def _as_history(group: PodGroup, member: QueuedPodInfo) -> QueuedPodGroupInfo:
    """Return *group* with the history of its only waiting pod."""
    entity = QueuedPodGroupInfo(
        member.pod_info,
        member.timestamp,
        initial_attempt_timestamp=member.initial_attempt_timestamp,
        attempts=member.attempts,
        unschedulable_count=member.unschedulable_count,
        consecutive_errors_count=member.consecutive_errors_count,
        backoff_expiration=member.backoff_expiration,
        unschedulable_plugins=set(member.unschedulable_plugins),
        pending_plugins=set(member.pending_plugins),
        gating_plugin=member.gating_plugin,
        group=group,
    )
    _put(entity, member)
    return entity


def _put(entity: QueuedPodGroupInfo, member: QueuedPodInfo) -> None:
    entity.put(member, signature_in_group(member.pod_info))


def _each_of(groups: Iterable[dict[str, QueuedPodInfo]]) -> Iterator[QueuedPodInfo]:
    return (pod for pods in groups for pod in pods.values())
