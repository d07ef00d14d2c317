"""Whose eviction would let a pod in, on many nodes at once (spec §6.3, §6.4).

Decision (2026-11): nodes are asked about together, in one overlay, which evaluates each as if it
were alone. The k-th pods of all nodes are reprieved in one step, so an attempt takes as many steps
as there are lesser pods on one node, however many nodes there are.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import Diagnosis, PluginVerdict
from berth.framework.interface import FilterRunner
from berth.framework.node_table import NodeTable
from berth.framework.pod_batch import PodBatch
from berth.framework.pod_info import PodInfo
from berth.framework.preemption.candidate import NO_CANDIDATES, Candidates, Preemption
from berth.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.framework.status import Status
from berth.framework.verdict import Ints, Mask, Rows, Verdict
from berth_plugins.default_preemption.known_selections import (
    KnownPreemptors,
    Selected,
    SelectionsOfAll,
)
from berth_plugins.default_preemption.ranked_pods import Ranked, RankedPods

NO_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming pod")
NOT_HELPFUL: Final = Status.unresolvable("Preemption is not helpful for scheduling")


FEWEST: Final = 32
"""So many nodes are tried in about the time of one."""


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

    def dry_run_preemption(self, rows: Rows, *, num_candidates: int) -> Preemption:
        """Try *rows* in order until a candidate breaks no budget and there are *num_candidates*."""
        lowest = self.ranked_pods.lowest_priorities(self.nodes)
        has_victims = (lowest < self.pod.priority)[rows]
        statuses = Diagnosis(len(self.nodes), absent=NOT_HELPFUL)
        candidates = NO_CANDIDATES
        tried, tried_so_far, enough = len(rows), 0, None
        left = np.flatnonzero(has_victims)
        select = self._selecting()
        while len(left):
            size = _batch_size(num_candidates, have=len(candidates), tried=tried_so_far)
            at, left = left[:size], left[size:]
            tried_so_far += len(at)
            some = rows[at]
            selected = select(some)
            candidates = candidates + selected.candidates if candidates else selected.candidates
            enough = _enough(candidates.pdb_violations, num_candidates)
            if enough is None:
                selected.add_statuses(statuses, self.nodes, some)
                continue
            last = int(np.flatnonzero(some == candidates.rows[enough - 1])[0])
            selected.add_statuses(statuses, self.nodes, some[: last + 1])
            tried = int(at[last]) + 1
            break
        in_vain = self.nodes.no_rows()
        in_vain[rows[:tried][~has_victims[:tried]]] = True
        if in_vain.any():
            statuses.verdicts.append(PluginVerdict("", Verdict.reject(NO_VICTIMS, where=in_vain)))
        is_violating = candidates.pdb_violations[:enough] > 0
        non_violating = np.flatnonzero(~is_violating)[:num_candidates]
        violating = np.flatnonzero(is_violating)[:num_candidates]
        return Preemption(candidates.take(np.concatenate([non_violating, violating])), statuses)

    def _selecting(self) -> Callable[[Rows], SelectionsOfAll]:
        """Return what selects victims on nodes, or knows them."""
        row_by_row = self.filters.row_by_row(self.pod, self.nodes) if self.known else None
        if self.known is None or row_by_row is None:
            return self._select_anew
        follows_from = row_by_row.follows_from, self.budgets.version
        known = self.known.of(self.pod, self.nodes, follows_from)
        ask, but_not = self.select_victims_on_nodes, row_by_row.but_not
        return lambda rows: known.select(rows, ask, but_not=but_not)

    def _select_anew(self, rows: Rows) -> SelectionsOfAll:
        candidates, statuses = self.select_victims_on_nodes(rows)
        return SelectionsOfAll(candidates, rows, statuses, None)

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
        breaks_budget = self._break_budgets(pods, node_of, among=fits)
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
        for node in np.flatnonzero(fits & (num_victims == 0)).tolist():
            name = self.nodes.name(rows[node])
            text = f'expected at least one victim pod on node "{name}"'
            statuses.statuses[node] = Status.error(text)
        candidates = self._candidates(rows, potential_victims, is_victim, breaks_budget)
        return Selected(candidates, statuses)

    def _candidates(
        self, rows: Rows, potential_victims: Ranked, is_victim: Mask, breaks_budget: Mask
    ) -> Candidates:
        """Return the nodes that have victims; of equal ones those that break a budget go first."""
        pods, node_of, priorities, starts = potential_victims
        victims = np.flatnonzero(is_victim)
        order = (~breaks_budget[victims], starts[victims], -priorities[victims], node_of[victims])
        victims = victims[np.lexsort(order)]
        num_victims = np.bincount(node_of[victims], minlength=len(rows))
        violations = np.bincount(node_of[victims[breaks_budget[victims]]], minlength=len(rows))
        nodes = np.flatnonzero(num_victims)
        return Candidates(
            rows[nodes],
            [self.nodes.name(row) for row in rows[nodes].tolist()],
            violations[nodes],
            num_victims[nodes],
            list(pods.take(victims)),
            priorities[victims],
            starts[victims],
        )

    def _break_budgets(self, pods: PodBatch, node_of: Rows, *, among: Mask) -> Mask:
        """Return whose eviction would break a budget, of the pods on the nodes *among* some."""
        breaks = np.zeros(len(pods), bool)
        if self.budgets.is_empty:
            return breaks
        ends = np.searchsorted(node_of, np.arange(len(among)), side="right")
        for node in np.flatnonzero(among).tolist():
            first, end = int(ends[node - 1]) if node else 0, int(ends[node])
            on_node = [pods[i] for i in range(first, end)]
            violating = self.budgets.filter_pods_with_pdb_violation(on_node)
            breaks[first:end] = [pod in violating for pod in on_node]
        return breaks


def _enough(pdb_violations: Ints, wanted: int) -> int | None:
    """Return after how many candidates one breaks no budget and there are as many as *wanted*.

    Of those that break budgets as of those that do not, no more than *wanted* count.
    """
    non_violating = np.cumsum(pdb_violations == 0)
    violating = np.cumsum(pdb_violations > 0)
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


def _batch_size(wanted: int, *, have: int, tried: int) -> int:
    """Return how many nodes to try next, about as many as it takes to have *wanted* candidates."""
    if not tried:
        return max(wanted, 1)
    missing = max(wanted - have, 1)
    return max(min(missing * tried // max(have, 1) * 5 // 4, 2 * tried), FEWEST)
