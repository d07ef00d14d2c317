"""Reports about a group: the condition that it is scheduled, and its metrics (spec G7, N8.4)."""

from collections.abc import Awaitable, Callable

import msgspec

from berth.kube.objects.pod_group import POD_GROUP_SCHEDULED, GroupKey, PodGroup, PodGroupCondition
from berth.kube.objects.policy import PodDisruptionBudget
from berth.runtime.clock import Clock, rfc3339
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.pod_groups import PodGroups
from berth.scheduler.metrics.scheduler_metrics import (
    GroupPreemptionMetrics,
    PlacementMetrics,
    PodGroupMetrics,
)
from berth.scheduler.reporter import PodGroupReporter


class PodGroupReports:
    """Writes the condition through the reporter, and counts."""

    def __init__(
        self,
        groups: Lister[PodGroup],
        *,
        reporter: PodGroupReporter,
        metrics: PodGroupMetrics,
        clock: Clock,
        condition_type: str = POD_GROUP_SCHEDULED,
    ) -> None:
        self._condition_type = condition_type
        self._groups = groups
        self._reporter = reporter
        self._metrics = metrics
        self._clock = clock
        self._written: dict[str, GroupKey] = {}
        """Groups that were reported as scheduled, by uid, until the informer shows it."""

    def algorithm_took(self, seconds: float) -> None:
        """Note how long it took to try all pods of a group."""
        self._metrics.algorithm_took(seconds)

    def finished(
        self, key: GroupKey, *, profile: str, result: str, message: str, seconds: float
    ) -> None:
        """Note what a cycle of *seconds* came to. Once a group is scheduled it stays so (G7.1).

        The status of another scheduler's PodGroup is its own controller's.
        """
        self.attempted(profile, result=result, seconds=seconds)
        self.tell(key, result=result, message=message)

    def attempted(self, profile: str, *, result: str, seconds: float) -> None:
        """Note the same without telling it."""
        self._metrics.attempted(result, profile, seconds=seconds)

    def tell(self, key: GroupKey, *, result: str, message: str) -> None:
        """Write the condition alone, as of a group that was not tried at all."""
        group = self._groups.get(key.namespace, key.name)
        if group is None or not group.is_of_kubernetes:
            return
        if result == "scheduled":
            self._written = {
                uid: other for uid, other in self._written.items() if not self._is_told(uid, other)
            }
            self._written[group.metadata.uid] = key
        elif group.metadata.uid in self._written:
            # Members that found no room are tried again at once (N8.1), and the informer may be
            # behind what was written for those that did.
            return
        reason = {"scheduled": "Scheduled", "error": "SchedulerError"}.get(result, "Unschedulable")
        condition = changed_condition(
            group,
            type=self._condition_type,
            status="True" if result == "scheduled" else "False",
            reason=reason,
            message=message,
            now=self._clock.now(),
        )
        if condition is not None:
            self._reporter.pod_group_condition(group, condition)

    def _is_told(self, uid: str, key: GroupKey) -> bool:
        """Whether the informer has that a group is scheduled, or has another or none."""
        group = self._groups.get(key.namespace, key.name)
        return group is None or group.metadata.uid != uid or group.has_been_scheduled


class GroupParts(msgspec.Struct, frozen=True):
    """What a scheduler needs for groups."""

    pod_groups: PodGroups
    groups: Lister[PodGroup]
    reports: PodGroupReports
    pod_disruption_budgets: Lister[PodDisruptionBudget]
    placement_metrics: PlacementMetrics
    preemption_metrics: GroupPreemptionMetrics
    is_topology_aware: bool
    """Whether TopologyAwareWorkloadScheduling is on."""
    preempts_as_one: bool
    """Whether WorkloadAwarePreemption is on."""
    are_entities: bool
    """Whether the queue has groups as entities, as 1.37 does."""
    have_preemption_policy: bool
    """Whether PodGroupPreemptionPolicy is on."""
    look_back: bool
    """Whether PodGroupLookBack is on."""
    sleep: Callable[[float], Awaitable[None]]
    """Waits for so many seconds, of which a recording takes note."""


def changed_condition(
    group: PodGroup, *, type: str, status: str, reason: str, message: str, now: float
) -> PodGroupCondition | None:
    """Return the condition to write; None if the group has it, or was scheduled before."""
    conditions = group.status.conditions
    old = next((condition for condition in conditions if condition.type == type), None)
    if group.has_been_scheduled and status != "True":
        return None
    since = old.last_transition_time if old is not None and old.status == status else None
    new = PodGroupCondition(
        type,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since or rfc3339(now),
        observed_generation=group.metadata.generation,
    )
    return None if new == old else new
