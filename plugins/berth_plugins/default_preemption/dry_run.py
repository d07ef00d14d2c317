"""Dry runs of evictions that would let a pod in, on many nodes at once (spec §6.3, §6.4).

Decision (2026-11): nodes are asked about together, in one overlay, which evaluates each as if it
were alone. The k-th pods of all nodes are reprieved in one step, so an attempt takes as many steps
as there are lesser pods on one node, however many nodes there are.
"""

from itertools import pairwise
from typing import Final

import msgspec
import numpy as np

from berth.scheduler.framework.cached_rows import UNKNOWN
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis, PluginVerdict
from berth.scheduler.framework.interface import FilterRunner
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import (
    Candidate,
    Candidates,
    Preemption,
    costs_of,
)
from berth.scheduler.framework.preemption.disruption_budgets import BudgetKey, DisruptionBudgets
from berth.scheduler.framework.preemption.victim_units import VictimUnits
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import Mask, Rows, Verdict
from berth_plugins.default_preemption.cached_selections import (
    NO_VICTIMS,
    NO_VICTIMS_FOUND,
    CachedSelections,
    KnownPreemptors,
    Selected,
)
from berth_plugins.default_preemption.ranked_pods import Ranked, RankedPods
from berth_plugins.default_preemption.unit_selection import UnitSelection

NOT_HELPFUL: Final = Status.unresolvable("Preemption is not helpful for scheduling")
FEWEST: Final = 32
"""So many nodes are asked about in less than twice the time of one."""


class DryRun(msgspec.Struct, frozen=True):
    """Preemption for *pod* in thought; nothing but overlays is changed."""

    pod: PodInfo
    nodes: NodeTable
    state: CycleState
    filters: FilterRunner
    ranked_pods: RankedPods
    budgets: DisruptionBudgets
    known: KnownPreemptors | None = None
    """What is known of preemptors of the same template; None: all nodes are asked about."""
    units: VictimUnits | None = None
    """What is evicted together; None: every pod alone."""

    def dry_run_preemption(self, rows: Rows, *, num_candidates: int) -> Preemption:
        """Try *rows* in order until a candidate breaks no budget and there are *num_candidates*."""
        has_victims = self.ranked_pods.lowest_priorities(self.nodes) < self.pod.priority
        if self.units is None and not np.count_nonzero(has_victims[rows]):
            return self._without_victims(rows)
        known = self._known_selections()
        of_groups = None if self.units is None else self._unit_selection(self.units)
        rows_of_groups = self.nodes.no_rows() if of_groups is None else of_groups.rows()
        has_victims |= rows_of_groups
        in_view = rows[: 2 * max(num_candidates, FEWEST)]  # mostly enough
        asked = found = 0
        while True:
            outcomes = np.where(has_victims[in_view], known.outcomes[in_view], NO_VICTIMS)
            at = (outcomes < 0).nonzero()[0]
            breaks_budget = known.break_budgets[in_view[at]]
            enough = _enough(breaks_budget, num_candidates)
            if enough is None and len(in_view) < len(rows):
                in_view = rows[: 2 * len(in_view)]
                continue
            tried = len(in_view) if enough is None else int(at[enough - 1]) + 1
            num_unknown = int(np.count_nonzero(outcomes[:tried] == UNKNOWN))
            if not num_unknown:
                break
            unknown = rows[has_victims[rows] & (known.outcomes[rows] == UNKNOWN)]
            some = unknown[: _batch_size(num_unknown, have=found, tried=asked)]
            selected = (
                self.select_victims_on_nodes(some)
                if of_groups is None
                else self._select_units(some, of_groups, rows_of_groups[some])
            )
            known.learn(some, selected)
            asked, found = asked + len(some), found + len(selected.candidates)
        at, breaks_budget = at[:enough], breaks_budget[:enough]
        non_violating, violating = at[~breaks_budget], at[breaks_budget]
        at = np.concatenate([non_violating[:num_candidates], violating[:num_candidates]])
        rejected = known.rejected(rows[:tried], outcomes[:tried], absent=NOT_HELPFUL)
        return Preemption(known.candidates(rows[at]), rejected)

    def _without_victims(self, rows: Rows) -> Preemption:
        """Return what comes of *rows* that have no pods of lower priority: nobody is asked."""
        rejected = Diagnosis(len(self.nodes), absent=NOT_HELPFUL)
        if len(rows):
            where = self.nodes.no_rows()
            where[rows] = True
            rejected.verdicts.append(PluginVerdict("", Verdict.reject(NO_VICTIMS_FOUND, where)))
        return Preemption((), rejected)

    def _unit_selection(self, units: VictimUnits) -> UnitSelection:
        return UnitSelection(self.pod, self.nodes, self.state, self.filters, self.budgets, units)

    def _select_units(self, rows: Rows, of_groups: UnitSelection, have_groups: Mask) -> Selected:
        """Do the same as :meth:`select_victims_on_nodes`, nodes with pods of groups one by one."""
        if not have_groups.any():
            return self.select_victims_on_nodes(rows)
        statuses, found = Diagnosis(len(rows)), list[Candidate]()
        plain = np.flatnonzero(~have_groups)
        if len(plain):
            selected = self.select_victims_on_nodes(rows[plain])
            found += selected.candidates
            for i, place in enumerate(plain.tolist()):
                if (status := selected.statuses.status_of(i)) is not None:
                    statuses.statuses[place] = status
        for place in np.flatnonzero(have_groups).tolist():
            answer = of_groups.select_victims_on_node(int(rows[place]))
            if isinstance(answer, Candidate):
                found.append(answer)
            else:
                statuses.statuses[place] = answer
        return Selected(Candidates.of(found), statuses, {})

    def _known_selections(self) -> CachedSelections:
        """Return what is known of rows as they are."""
        known = self.known if self.units is None else None  # units are on many rows
        row_by_row = self.filters.row_by_row(self.pod, self.nodes) if known else None
        if known is None or row_by_row is None:
            return CachedSelections(self.nodes, self.budgets)
        return known.of(self.pod, self.nodes, self.budgets, row_by_row)

    def select_victims_on_nodes(self, rows: Rows) -> Selected:
        """Say for each of *rows* whose eviction lets the pod in, or why nobody's does.

        Whatever is done is done to all nodes at once. Pods and nodes go by number: ``node_of``
        has the node of each potential victim.
        """
        overlay = self.filters.overlay(self.state, self.pod, self.nodes, rows)

        # Remove all pods of lower priority. If the pod does not fit then, it never will.
        potential_victims = self.ranked_pods.below(self.pod.priority, self.nodes, rows)
        pods, node_of = potential_victims.pods, potential_victims.node_of
        overlay.remove_pods(node_of, pods)
        statuses = overlay.run_filters()
        fits = ~statuses.rejected(overlay.nodes)

        # Reprieve as many as possible: first those whose eviction breaks a disruption budget, then
        # the others, and the most important of either first.
        breaks_budget, charged = self._break_budgets(pods, node_of, among=fits)
        is_victim = np.zeros(len(pods), bool)
        in_order = np.lexsort((~breaks_budget, node_of))
        for next_of_nodes in _one_of_each(in_order[fits[node_of[in_order]]], node_of):
            overlay.add_pods(node_of[next_of_nodes], pods.take(next_of_nodes))
            of_nodes = overlay.run_filters(node_of[next_of_nodes], have_passed=True)
            reprieved = ~of_nodes.rejected(overlay.nodes)
            victims = next_of_nodes[~reprieved[node_of[next_of_nodes]]]
            overlay.remove_pods(node_of[victims], pods.take(victims))
            is_victim[victims] = True

        num_victims = np.bincount(node_of[is_victim], minlength=len(rows))
        for node in (fits & (num_victims == 0)).nonzero()[0].tolist():
            name = self.nodes.name(rows[node])
            text = f'expected at least one victim pod on node "{name}"'
            statuses.statuses[node] = Status.error(text)
        candidates = self._candidates(rows, potential_victims, is_victim, breaks_budget)
        return Selected(candidates, statuses, charged)

    def _candidates(
        self, rows: Rows, potential_victims: Ranked, is_victim: Mask, breaks_budget: Mask
    ) -> Candidates:
        """Return the nodes that have victims; of equal ones those that break a budget go first."""
        pods, node_of, priorities, starts = potential_victims
        victims = is_victim.nonzero()[0]
        order = (~breaks_budget[victims], starts[victims], -priorities[victims], node_of[victims])
        victims = victims[np.lexsort(order)]
        num_victims = np.bincount(node_of[victims], minlength=len(rows))
        violations = np.bincount(node_of[victims[breaks_budget[victims]]], minlength=len(rows))
        nodes = num_victims.nonzero()[0]
        num_victims = num_victims[nodes]
        costs = costs_of(
            pdb_violations=violations[nodes],
            num_victims=num_victims,
            priorities=priorities[victims],
            starts=starts[victims],
        )
        chosen, ends = [*pods.take(victims)], np.cumsum(num_victims).tolist()
        of_nodes = [tuple(chosen[first:end]) for first, end in pairwise([0, *ends])]
        names = [*self.nodes.names(rows[nodes].tolist())]
        return Candidates(rows[nodes], names, costs, np.fromiter(of_nodes, object, len(nodes)))

    def _break_budgets(
        self, pods: PodBatch, node_of: Rows, *, among: Mask
    ) -> tuple[Mask, dict[int, dict[BudgetKey, int]]]:
        """Return whose eviction would break a budget, of the pods on the nodes *among* some.

        By node also to which budgets so many of its pods were charged.
        """
        breaks = np.zeros(len(pods), bool)
        charged: dict[int, dict[BudgetKey, int]] = {}
        if self.budgets.is_empty:
            return breaks, charged
        ends = np.searchsorted(node_of, np.arange(len(among)), side="right")
        for node in np.flatnonzero(among).tolist():
            first, end = int(ends[node - 1]) if node else 0, int(ends[node])
            on_node = [pods[i] for i in range(first, end)]
            violating, charged[node] = self.budgets.charge(on_node)
            if violating:
                breaks[first:end] = [pod in violating for pod in on_node]
        return breaks, charged


def _enough(break_budgets: Mask, wanted: int) -> int | None:
    """Return after how many candidates one breaks no budget and there are as many as *wanted*.

    Of those that break budgets as of those that do not, no more than *wanted* count.
    """
    if not np.count_nonzero(break_budgets):
        wanted = max(wanted, 1)
        return wanted if wanted <= len(break_budgets) else None
    non_violating = np.cumsum(~break_budgets)
    violating = np.cumsum(break_budgets)
    count = np.minimum(non_violating, wanted) + np.minimum(violating, wanted)
    enough = np.flatnonzero((non_violating > 0) & (count >= wanted))
    return int(enough[0]) + 1 if len(enough) else None


def _one_of_each(numbers: Rows, node_of: Rows) -> list[Rows]:
    """Return the first of *numbers*, which are sorted by node, of every node, then the second..."""
    if not len(numbers):
        return []
    nodes = node_of[numbers]
    step = np.arange(len(numbers)) - np.searchsorted(nodes, nodes)
    by_step = np.argsort(step, kind="stable")
    return np.split(numbers[by_step], np.cumsum(np.bincount(step))[:-1])


def _batch_size(missing: int, *, have: int, tried: int) -> int:
    """Return how many nodes to try next, about as many as it takes to have *missing* candidates."""
    return max(missing, min(missing * tried // max(have, 1) * 5 // 4, 2 * tried), FEWEST)
