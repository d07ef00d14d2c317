"""Pods of a group, and which of them have nodes (spec G3.1)."""

from collections.abc import Iterator, Mapping
from typing import Final

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import GroupKey, PodGroup, group_of
from berth.runtime.release import Behaviour
from berth.scheduler.framework.group_hierarchy import NO_HIERARCHY, GroupHierarchy
from berth.scheduler.framework.pod_info import PodInfo

GROUPS_AS_ENTITIES: Final = Behaviour(
    "1.37",
    "N8",
    "The scheduling queue has a PodGroup as one entity. Its trial ends as soon as too few pods can"
    " get nodes; priorities and preemption policies of pods must be those of the group.",
)


class PodGroupState:
    """The pods of one group that are not finished.

    A pod without a node in the API is ``known`` from its first event on; a pod on a node, also one
    that is only assumed there, is ``scheduled``.
    """

    __slots__ = ("__weakref__", "known", "scheduled")

    def __init__(self) -> None:
        self.known: dict[str, Pod] = {}
        """By UID, those without a node that this scheduler is responsible for, as last seen."""
        self.scheduled: dict[str, PodInfo] = {}
        """By UID, those that the cache counts on a node, of any scheduler."""

    @property
    def all_pods_count(self) -> int:
        # Not the union, which would have a gang of n pods that arrive one by one cost n squared.
        both = self.known.keys() & self.scheduled.keys()
        return len(self.known) + len(self.scheduled) - len(both)

    @property
    def scheduled_pods_count(self) -> int:
        return len(self.scheduled)

    def unscheduled(self) -> Iterator[Pod]:
        """Yield the pods that have no node, not even an assumed one."""
        return (pod for uid, pod in self.known.items() if uid not in self.scheduled)


class PodGroups:
    """The state of every group that has a pod. Event handlers and the cache write it."""

    def __init__(self, hierarchy: GroupHierarchy = NO_HIERARCHY) -> None:
        self.hierarchy = hierarchy
        """Which groups these are parts of."""
        self._states: dict[GroupKey, PodGroupState] = {}

    def get(self, key: GroupKey) -> PodGroupState | None:
        """Return the state of a group; None if it has no pods."""
        return self._states.get(key)

    def all_pods_count(self, key: GroupKey) -> int:
        state = self._states.get(key)
        return 0 if state is None else state.all_pods_count

    def scheduled_pods_count(self, key: GroupKey) -> int:
        state = self._states.get(key)
        return 0 if state is None else state.scheduled_pods_count

    def scheduled(self, group: PodGroup) -> list[PodInfo]:
        """Return the pods of *group*, and of all groups below it, that have nodes."""
        states = map(self._states.get, self.hierarchy.leaves(group))
        return [pod for state in states if state is not None for pod in state.scheduled.values()]

    def unscheduled(self, group: PodGroup) -> Iterator[Pod]:
        """Yield the pods of *group*, and of all groups below it, that have no node."""
        states = map(self._states.get, self.hierarchy.leaves(group))
        return (pod for state in states if state is not None for pod in state.unscheduled())

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[tuple[GroupKey, PodGroupState]]:
        return iter(self._states.items())

    def see(self, pod: Pod) -> None:
        """Take in *pod*, which has no node in the API, or its newer version."""
        key = group_of(pod)
        if key is not None:
            self._state(key).known[pod.metadata.uid] = pod

    def forget(self, pod: Pod) -> None:
        """Forget that *pod* is without a node: it is gone, or has one."""
        key = group_of(pod)
        state = None if key is None else self._states.get(key)
        if key is not None and state is not None:
            state.known.pop(pod.metadata.uid, None)
            self._drop_empty(key, state)

    def put(self, pod: PodInfo) -> None:
        """Count *pod* as on a node."""
        key = group_of(pod.pod)
        if key is not None:
            self._state(key).scheduled[pod.uid] = pod

    def take(self, pod: PodInfo) -> None:
        """Count *pod* as on a node no more."""
        key = group_of(pod.pod)
        state = None if key is None else self._states.get(key)
        if key is not None and state is not None:
            state.scheduled.pop(pod.uid, None)
            self._drop_empty(key, state)

    def snapshot(self) -> Mapping[GroupKey, tuple[frozenset[str], frozenset[str]]]:
        """Return the UIDs of each group, without and with a node; for tests and for people."""
        return {
            key: (frozenset(pod.metadata.uid for pod in state.unscheduled()),
                  frozenset(state.scheduled))
            for key, state in self._states.items()
        }  # fmt: skip

    def _state(self, key: GroupKey) -> PodGroupState:
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = PodGroupState()
        return state

    def _drop_empty(self, key: GroupKey, state: PodGroupState) -> None:
        if not state.known and not state.scheduled:
            del self._states[key]


NO_GROUPS: Final = PodGroups()
"""What there is while the gate GenericWorkload is off."""
