"""Workload-aware preemption: a pod group that does not fit preempts as one (spec G9).

::

    the trial of the group fails; none of its pods may preempt alone
      not eligible --------------------> the group fails, and its condition says why
      victims of its last attempt leave-> it waits for them
      no victims would be enough ------> the group fails
      victims found -------------------> evicted as one; all pods are nominated where they fitted

The search (:mod:`.pod_group_victims`) sees what counts on nodes: resources, ports, affinity,
spread. It does not see devices of resource claims, and volumes that are attached until the victim
is gone: a group that lacks those gets no help (spec G9.5).

Decisions (2026-11), where this differs from 1.36.2 and agrees with what later releases do: no new
victims while those of the group's last attempt are on their nodes (G9.2); all pods are nominated to
the nodes of the last trial that fitted (G9.6); the end of the evictions wakes the group (G9.7); a
group is not made smaller than it could be to spare a victim (G20).
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from berth.kube.objects.pod_group import GroupKey, PodGroup
from berth.scheduler.framework.preemption.candidate import is_leaving_for_preemption
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.scheduler.framework.preemption.victim_units import VictimUnit, VictimUnits, pods_of
from berth.scheduler.outcome import KEEP, Nomination, To
from berth.scheduler.pod_group.reports import GroupParts
from berth.scheduler.pod_group.trial import (
    UNSCHEDULABLE,
    WAITS,
    GroupStatus,
    Member,
    PodGroupTrial,
    Result,
)
from berth.scheduler.pod_group.victims import Victims, VictimSearch
from berth.scheduler.profile.profile import Profile
from berth.scheduler.scheduling_steps import SchedulingSteps

DEFAULT_PREEMPTION: Final = "DefaultPreemption"
GANG_SCHEDULING: Final = "GangScheduling"
NO_PLUGIN: Final = (
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
CONSTRAINED: Final = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)
NEVER: Final = "not eligible due to preemptionPolicy=Never."
NO_VICTIMS: Final = "No preemption victims found for incoming preemptor"


class PodGroupPostFilterResult(msgspec.Struct, frozen=True):
    """What became of a group that did not fit."""

    status: GroupStatus
    nominations: Mapping[str, Nomination] = msgspec.field(default_factory=dict)
    """Of pods by UID; those left out have what their own attempt says."""


class PodGroupPreemption:
    """Evicts pods for groups."""

    def __init__(self, steps: SchedulingSteps, trial: PodGroupTrial, parts: GroupParts) -> None:
        self._steps = steps
        self._trial = trial
        self._sleep = parts.sleep
        self._pod_groups = parts.pod_groups
        self._groups = parts.groups
        self._units = VictimUnits(parts.pod_groups)
        self._budgets = DisruptionBudgets(
            parts.pod_disruption_budgets, stops_at_first_violation=False
        )

    async def run(
        self, members: Sequence[Member], key: GroupKey, status: GroupStatus
    ) -> PodGroupPostFilterResult:
        """Make room for *members*, which came to *status* and hold nothing.

        Other tasks have their turn meanwhile. When this returns, evictions have been ordered, and
        are carried out later.
        """
        profile = members[0].profile
        if not any(plugin.NAME == DEFAULT_PREEMPTION for plugin in profile.post_filters):
            return _refused(status, NO_PLUGIN)
        group = self._groups.get(key.namespace, key.name)
        if group is None:
            return _not_found(key)
        constraints = group.spec.scheduling_constraints
        if constraints is not None and constraints.topology:
            return _refused(status, CONSTRAINED)
        if any(member.queued.pod.spec.preemption_policy == "Never" for member in members):
            return _refused(status, NEVER)
        if self._waits_for_victims(members, group):
            waits = GroupStatus(Result.WAITING, f"{UNSCHEDULABLE}, {WAITS}")
            return PodGroupPostFilterResult(waits, self._nominations_of(members))
        units = await self._potential_victims(group, key)
        if not units:
            return _refused(status, NO_VICTIMS)
        members = await self._ask_extenders(members, units)
        broken = set(self._budgets.filter_units_with_pdb_violation(units))
        needed = self._needed(group, key, profile)
        search = VictimSearch(self._steps, self._trial, members, needed=needed, sleep=self._sleep)
        victims = await search.run(
            [unit for unit in units if unit in broken],
            [unit for unit in units if unit not in broken],
        )
        if isinstance(victims, GroupStatus):
            return (
                PodGroupPostFilterResult(victims)
                if victims.result is Result.ERROR
                else (_refused(status, victims.message))
            )
        current = self._groups.get(key.namespace, key.name)
        if current is None or current.metadata.uid != group.metadata.uid:
            return _not_found(key)
        if not all(self._steps.extender_round.is_waiting(member.queued) for member in members):
            return PodGroupPostFilterResult(status)  # without them it may not fit
        self._evict(victims, members, current)
        hosts = {uid: To(node) for uid, node in victims.hosts.items()}
        return PodGroupPostFilterResult(GroupStatus(Result.WAITING, status.message), hosts)

    async def _ask_extenders(
        self, members: Sequence[Member], units: Sequence[VictimUnit]
    ) -> Sequence[Member]:
        """Return *members* with what extenders say once *units* are gone; it counts in all trials.

        kube-scheduler asks them in each trial. They are never asked about the victims.
        """
        asked = []
        for member in members:
            answer = member.answer
            if answer is not None:
                answer = await self._steps.extender_round.answer_for(
                    member.profile, member.queued, gone=pods_of(units)
                )
            asked.append(Member(member.queued, member.profile, member.started, answer))
        return asked

    async def _potential_victims(self, group: PodGroup, key: GroupKey) -> list[VictimUnit]:
        """Return the units that the group may preempt, most important first.

        The group's own priority counts, 0 if it has none; that of its pods plays no role.
        """
        await self._sleep(0.0)
        nodes = self._steps.cache.table.row_of
        pods = [pod for pod in self._steps.cache.pods() if pod.node_name in nodes]
        units = self._units.below(group.spec.priority or 0, pods, but_not=key)
        await self._sleep(0.0)
        units.sort(key=lambda unit: unit.importance)
        return units

    def _needed(self, group: PodGroup, key: GroupKey, profile: Profile) -> int:
        """Return how many more pods must have nodes at least."""
        if not any(plugin.NAME == GANG_SCHEDULING for plugin in profile.permits):
            return 1
        state = self._pod_groups.get(key)
        scheduled = state.scheduled_pods_count if state is not None else 0
        return max((group.min_count or 0) - scheduled, 1)

    def _evict(self, chosen: Victims, members: Sequence[Member], group: PodGroup) -> None:
        victims = pods_of(chosen.units)
        if any(victim.pod.metadata.deletion_timestamp is None for victim in victims):
            self._steps.metrics.victims_chosen(len(victims))
        self._steps.preemptions.prepare_group_async(
            group,
            [member.queued.pod_info for member in members],
            profile=members[0].profile.name,
            victims=victims,
        )

    def _waits_for_victims(self, members: Sequence[Member], group: PodGroup) -> bool:
        """Whether victims of the last attempt for *group* still leave (spec G9.2).

        After a restart nobody remembers them; those on the nodes that its pods are nominated to are
        known by their condition.
        """
        if self._steps.preemptions.waits_for_victims(group.metadata.uid):
            return True
        nodes, priority = self._steps.cache.table, group.spec.priority or 0
        nominated = {self._nominated_node(member) for member in members}
        rows = [nodes.row_of[name] for name in nominated if name in nodes.row_of]
        return any(
            is_leaving_for_preemption(pod.pod) and self._units.priority(pod) < priority
            for row in rows
            for pod in nodes.pods[row].values()
        )

    def _nominations_of(self, members: Sequence[Member]) -> dict[str, Nomination]:
        names = {member.queued.uid: self._nominated_node(member) for member in members}
        return {uid: To(name) if name else KEEP for uid, name in names.items()}

    def _nominated_node(self, member: Member) -> str:
        known = self._steps.queue.nominator.nominated_node(member.queued.uid)
        return known or member.queued.pod.status.nominated_node_name


def _refused(status: GroupStatus, why: str) -> PodGroupPostFilterResult:
    return PodGroupPostFilterResult(GroupStatus(status.result, f"{status.message}, {why}"))


def _not_found(key: GroupKey) -> PodGroupPostFilterResult:
    why = f"failed to get pod group object: {key.not_found}"
    return PodGroupPostFilterResult(GroupStatus(Result.ERROR, why))
