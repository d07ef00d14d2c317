"""Units of eviction: one pod, or all pods of a group (spec G9.3).

The one place that knows it. A group that preempts asks for these units. Pods that preempt alone do
not in 1.36: for them every pod is a unit, also one of a group with ``disruptionMode: PodGroup``
(spec G8.6).
"""

from collections.abc import Iterable

import msgspec

from berth.kube.objects.pod_group import DisruptionMode, GroupKey, PodGroup, group_of
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.pod_groups import PodGroups
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.importance import started


class VictimUnit(msgspec.Struct, eq=False):
    """Pods that stay together or go together."""

    pods: tuple[PodInfo, ...]
    """Never empty; those of a group may be on many nodes."""
    priority: int
    is_group: bool = False

    @property
    def importance(self) -> tuple[int, bool, int, float]:
        """A key that sorts the most important unit first (spec G9.4).

        Higher priority, then groups before pods, larger groups before smaller ones, then who
        started first. A group started when the first of its pods did; kube-scheduler 1.36 takes
        any of them.
        """
        size = len(self.pods) if self.is_group else 0
        return -self.priority, not self.is_group, -size, min(map(started, self.pods))


class VictimUnits:
    """Finds the unit of a pod."""

    def __init__(self, pod_groups: PodGroups, groups: Lister[PodGroup]) -> None:
        self._pod_groups = pod_groups
        self._groups = groups

    def priority(self, pod: PodInfo) -> int:
        """Return the priority of the unit of *pod*: the group's, if it goes as a whole."""
        key = group_of(pod.pod)
        group = None if key is None else self._as_a_whole(key)
        return pod.priority if group is None else group.spec.priority or 0

    def below(
        self, priority: int, pods: Iterable[PodInfo], *, but_not: GroupKey
    ) -> list[VictimUnit]:
        """Return the units of *pods* with a lower priority than *priority*, in any order.

        Those of the group *but_not* are left out: a group does not preempt itself. In
        kube-scheduler 1.36 it may, if its own pods have a lower priority than it has.
        """
        units = []
        seen = {but_not}
        for pod in pods:
            key = group_of(pod.pod)
            group = None
            if key is not None:
                if key in seen:
                    continue
                group = self._as_a_whole(key)
            if key is None or group is None:
                if pod.priority < priority:
                    units.append(VictimUnit((pod,), pod.priority))
                continue
            seen.add(key)
            state, of_group = self._pod_groups.get(key), group.spec.priority or 0
            if state is not None and of_group < priority:
                scheduled = tuple(state.scheduled.values())
                units.append(VictimUnit(scheduled, of_group, is_group=True))
        return units

    def _as_a_whole(self, key: GroupKey) -> PodGroup | None:
        """Return the group of *key* if its pods are evicted together only."""
        group = self._groups.get(key.namespace, key.name)
        is_whole = group is not None and group.spec.disruption_mode == DisruptionMode.POD_GROUP
        return group if is_whole else None
