"""Preemption by a pod group that does not fit (1.37 spec N9).

The rule: all units of lower priority are taken away, and the whole group is tried once. If it fits,
the units are put back one after the other, those whose disruption budgets would break first, then
the most important first, as far as all pods of the group still fit on the nodes that they got.

Here arithmetic over resources says which units are in the way on these nodes. It allows too much,
never too little: if the pods fit beside all others, that is the answer of the rule. Otherwise
blocks of units are put back by halves, which is the rule as long as pods that fit beside some units
fit beside fewer.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from berth.kube.objects.pod_group import PodGroup
from berth.runtime.clock import Clock
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import PodGroupAttempt, PodGroupPostFilterResult
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import is_leaving_for_preemption
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.scheduler.framework.preemption.in_the_way import units_in_the_way
from berth.scheduler.framework.preemption.victim_units import VictimUnit, VictimUnits, pods_of
from berth.scheduler.framework.status import Status

POD_GROUP_PREEMPTION_POLICY: Final = "PodGroupPreemptionPolicy"
PREFIX: Final = "pod group preemption: "
NEVER: Final = Status.unschedulable(f"{PREFIX}not eligible due to preemptionPolicy=Never.")
NO_VICTIMS: Final = Status.unresolvable(
    f"{PREFIX}No preemption victims found for incoming preemptor"
)
CHANGED: Final = Status.unschedulable(f"{PREFIX}the nodes have changed meanwhile")
"""Of berth alone, which has other tasks take their turn during the search."""
ONGOING: Final = f"{PREFIX}ongoing preemption on nominated nodes"

MOST_DECISIONS: Final = 4_096
"""For so many pods nodes are looked at in one search; who was not reached by then is evicted."""
LEAST_CHECKS: Final = 20
"""So many checks are made however large the group."""


class PodGroupPreemption:
    """Finds the victims of groups."""

    def __init__(self, handle: Handle, budgets: DisruptionBudgets) -> None:
        self._handle = handle
        self._budgets = budgets
        self.units = VictimUnits(handle.pod_groups, priority_of_all=True)
        self._has_policy = POD_GROUP_PREEMPTION_POLICY in handle.features

    async def run(self, group: PodGroup, attempt: PodGroupAttempt) -> PodGroupPostFilterResult:
        """Say who has to go for *group*, and where its pods go then."""
        if self._never_preempts(group, attempt.pods):
            return PodGroupPostFilterResult(NEVER)
        priority = group.priority_beside(attempt.pods[0].pod)
        nominated = self._nominations(attempt.pods)
        if self._waits_for_victims(set(nominated.values()), priority):
            return PodGroupPostFilterResult(None, ONGOING, nominated)
        await self._give_turns()
        units = self.units.below(
            priority, (pod for on_node in self._handle.nodes.pods for pod in on_node.values())
        )
        if not units:
            return PodGroupPostFilterResult(NO_VICTIMS)
        await self._give_turns()
        units.sort(key=lambda unit: unit.importance)
        violations = dict(zip(units, self._budgets.violations(units), strict=True))
        await self._give_turns()
        status, hosts = await attempt.schedule_without(pods_of(units))
        if status is not None:
            reasons = (PREFIX + status.message,)
            return PodGroupPostFilterResult(Status(status.code, reasons))
        await self._give_turns()
        units.sort(key=lambda unit: not violations[unit])
        victims = await _Reprieve(attempt, hosts, self._handle.clock).run(units)
        if victims is None:
            return PodGroupPostFilterResult(CHANGED)
        victims.sort(key=lambda unit: unit.importance)
        pods = pods_of(victims)
        return PodGroupPostFilterResult(
            None,
            f"{PREFIX}found a placement for podgroup, preempting {len(pods)} victims",
            hosts,
            pods,
            disruptions=sum(unit.is_group for unit in victims),
            pdb_violations=sum(violations[unit] for unit in victims),
        )

    async def _give_turns(self) -> None:
        """Let other tasks have their turn; the last check of a search sees what they did."""
        await self._handle.clock.sleep(0.0)

    def _never_preempts(self, group: PodGroup, pods: Sequence[PodInfo]) -> bool:
        if self._has_policy:
            return group.spec.preemption_policy == "Never"
        return any(pod.pod.spec.preemption_policy == "Never" for pod in pods)

    def _nominations(self, pods: Sequence[PodInfo]) -> dict[str, str]:
        names = {
            pod.uid: self._handle.nominated_node(pod.uid) or pod.pod.status.nominated_node_name
            for pod in pods
        }
        return {uid: name for uid, name in names.items() if name}

    def _waits_for_victims(self, names: set[str], priority: int) -> bool:
        """Whether victims of a group of *priority* still leave one of the nodes."""
        nodes = self._handle.nodes
        rows = [nodes.row_of[name] for name in names if name in nodes.row_of]
        return any(
            is_leaving_for_preemption(pod.pod) and self.units.priority(pod) < priority
            for row in rows
            for pod in nodes.pods[row].values()
        )


class _Reprieve:
    """Puts units back that pods on their nodes have room beside."""

    def __init__(self, attempt: PodGroupAttempt, hosts: Mapping[str, str], clock: Clock) -> None:
        self._attempt = attempt
        self._hosts = hosts
        self._clock = clock
        self._checks_left = max(MOST_DECISIONS // len(hosts), LEAST_CHECKS)
        self._gone: dict[VictimUnit, None] = {}

    async def run(self, units: Sequence[VictimUnit]) -> list[VictimUnit] | None:
        """Return those of *units* that are not put back; None if not even all are enough now."""
        nodes = self._attempt.nodes
        placed = [
            pod.on_node(self._hosts[pod.uid])
            for pod in self._attempt.pods
            if pod.uid in self._hosts
        ]
        if all(pod.node_name in nodes.row_of for pod in placed):
            in_the_way = units_in_the_way(nodes, units, placed)
            if self._fits_without(in_the_way):
                return in_the_way
        self._gone = dict.fromkeys(units)
        await self._put_back(units)
        # Others had their turn since the checks that counted.
        return [*self._gone] if self._fits_without([*self._gone]) else None

    def _fits_without(self, units: Sequence[VictimUnit]) -> bool:
        return self._attempt.fits_without(pods_of(units), self._hosts)

    async def _put_back(self, block: Sequence[VictimUnit]) -> None:
        """Put *block* back, as a whole or what can be of it."""
        if self._checks_left <= 0:
            return
        self._checks_left -= 1
        await self._clock.sleep(0.0)
        away = set(block)
        left = [unit for unit in self._gone if unit not in away]
        if self._fits_without(left):
            self._gone = dict.fromkeys(left)
        elif len(block) > 1:
            middle = len(block) // 2
            await self._put_back(block[:middle])
            await self._put_back(block[middle:])
