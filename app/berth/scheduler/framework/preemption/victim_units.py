"""Units of eviction: one pod, or all pods of a group (spec G9.3, 1.37 spec N9.2, N11).

The one place that knows it. A group that preempts asks for these units. Pods that preempt alone do
not in 1.36: for them every pod is a unit, also one of a group with ``disruptionMode: PodGroup``
(spec G8.6).
"""

from collections.abc import Iterable

import msgspec

from berth.kube.objects.pod_group import CompositePodGroup, GroupKey, PodGroup, group_of
from berth.scheduler.framework.pod_groups import PodGroups
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.importance import started


class VictimUnit(msgspec.Struct, eq=False):
    """Pods that stay together or go together."""

    pods: tuple[PodInfo, ...]
    """Never empty; those of a group may be on many nodes."""
    priority: int
    group: PodGroup | None = None
    """That which is evicted as a whole; None: it is one pod."""

    @property
    def is_group(self) -> bool:
        return self.group is not None

    @property
    def importance(self) -> tuple[int, bool, bool, int, float]:
        """A key that sorts the most important unit first (spec G9.4).

        Higher priority, then groups of groups, groups, and pods, larger groups before smaller
        ones, then who started first. A group started when the first of its pods did;
        kube-scheduler 1.36 takes any of them.
        """
        size = len(self.pods) if self.is_group else 0
        is_composite = isinstance(self.group, CompositePodGroup)
        first = min(map(started, self.pods))
        return -self.priority, not is_composite, not self.is_group, -size, first


class VictimUnits:
    """Finds the unit of a pod."""

    def __init__(
        self,
        pod_groups: PodGroups,
        *,
        priority_of_all: bool = False,
    ) -> None:
        """*priority_of_all*: the priority of a group is that of each of its pods, as in 1.37.

        Else it is that of groups that go as a whole only.
        """
        self._pod_groups = pod_groups
        self._hierarchy = pod_groups.hierarchy
        self._priority_of_all = priority_of_all

    def priority(self, pod: PodInfo) -> int:
        """Return the priority of the unit of *pod*."""
        key = group_of(pod.pod)
        return self._priority(pod, None if key is None else self._hierarchy.root(key))

    def _priority(self, pod: PodInfo, root: PodGroup | None) -> int:
        """Return the same by the *root* that the pod is below.

        Guess (1.37 spec N11): the priority of the root is that of all groups below it, as it is in
        a scheduling cycle.
        """
        if root is None or not (self._priority_of_all or root.is_evicted_as_a_whole):
            return pod.priority
        return root.priority_beside(pod.pod)

    def below(
        self, priority: int, pods: Iterable[PodInfo], *, but_not: GroupKey | None = None
    ) -> list[VictimUnit]:
        """Return the units of *pods* with a lower priority than *priority*, in any order.

        Those of the group *but_not* are left out: a group does not preempt itself. In
        kube-scheduler 1.36 it may, if its own pods have a lower priority than it has.
        """
        units = []
        seen = {but_not}
        for pod in pods:
            key = group_of(pod.pod)
            if key is not None and key in seen:
                continue
            of_unit = self._priority(pod, None if key is None else self._hierarchy.root(key))
            group = None if key is None else self._hierarchy.evicted_with(key)
            if group is None:
                if of_unit < priority:
                    units.append(VictimUnit((pod,), of_unit))
                continue
            seen.update(self._hierarchy.leaves(group))
            if of_unit < priority and (scheduled := self._pod_groups.scheduled(group)):
                units.append(VictimUnit(tuple(scheduled), of_unit, group))
        return units


def pods_of(units: Iterable[VictimUnit]) -> list[PodInfo]:
    return [pod for unit in units for pod in unit.pods]
