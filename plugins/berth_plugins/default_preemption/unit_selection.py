"""Victims on nodes where pods of groups run: what goes together is one unit (1.37 spec N9.4).

A group with ``disruptionMode`` ``all`` is evicted with all its pods, also those on other nodes, or
not at all, and the priority of a group's pods is the group's. Other nodes are as they are in the
dry run, also in what PreFilter found of them: kube-scheduler tells AddPod and RemovePod of the
unit's pods there.
"""

from collections.abc import Iterable

import msgspec
import numpy as np

from berth.kube.objects.pod_group import group_of
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import FilterRunner
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.scheduler.framework.preemption.victim_units import VictimUnit, VictimUnits, pods_of
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import Mask
from berth_plugins.default_preemption.cached_selections import NO_VICTIMS_FOUND


class UnitSelection(msgspec.Struct, frozen=True):
    """The search for victims of *pod* node by node, on those with pods of groups."""

    pod: PodInfo
    nodes: NodeTable
    state: CycleState
    filters: FilterRunner
    budgets: DisruptionBudgets
    units: VictimUnits

    def rows(self) -> Mask:
        """Return which rows have pods of groups."""
        rows = self.nodes.no_rows()
        for row, pods in enumerate(self.nodes.pods):
            rows[row] = any(group_of(pod.pod) is not None for pod in pods.values())
        return rows

    def select_victims_on_node(self, row: int) -> Candidate | Status:
        """Return who must go for the pod on *row*, or why nobody's eviction lets it in."""
        units = self.units.below(self.pod.priority, self.nodes.pods[row].values())
        if not units:
            return NO_VICTIMS_FOUND
        units.sort(key=lambda unit: unit.importance)
        name = self.nodes.name(row)
        overlay = self.filters.overlay(self.state, self.pod, self.nodes, np.array([row]))

        def here(some: Iterable[VictimUnit]) -> list[PodInfo]:
            return [pod for pod in pods_of(some) if pod.node_name == name]

        leaving = here(units)
        overlay.remove_pods([0] * len(leaving), leaving)
        refusal = overlay.run_filters().status_of(0)
        if refusal is not None:
            return refusal
        violations = dict(zip(units, self.budgets.violations(units), strict=True))
        victims = []
        # Reprieve as many units as possible, those whose budgets would break first.
        for unit in sorted(units, key=lambda unit: not violations[unit]):
            pods = here([unit])
            overlay.add_pods([0] * len(pods), pods)
            if overlay.run_filters(have_passed=True).status_of(0) is not None:
                overlay.remove_pods([0] * len(pods), pods)
                victims.append(unit)
        if not victims:
            return Status.error(f'expected at least one victim pod on node "{name}"')
        victims.sort(key=lambda unit: unit.importance)
        broken = sum(violations[unit] for unit in victims)
        return Candidate(row, name, tuple(pods_of(victims)), broken)
