"""Whose eviction would let a pod in, on many nodes at once (spec §6.3, §6.4).

Decision (2026-11): nodes are asked about together, in one overlay, which judges each as if it were
alone. The k-th pods of all nodes are reprieved in one step, so an attempt takes as many steps as
there are lesser pods on one node, however many nodes there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import Diagnosis, PluginVerdict
from berth.framework.interface import FilterRunner
from berth.framework.node_table import NodeTable
from berth.framework.pod_batch import PodBatch
from berth.framework.pod_info import PodInfo
from berth.framework.preemption.candidate import Candidate, Preemption
from berth.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.framework.preemption.importance import importance
from berth.framework.preemption.ranks import Ranks
from berth.framework.status import Status
from berth.framework.verdict import Mask, Rows, Verdict

NO_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming pod")
NOT_HELPFUL: Final = Status.unresolvable("Preemption is not helpful for scheduling")


class Selected(NamedTuple):
    """What came of some nodes, by position among them."""

    candidates: dict[int, Candidate]
    """In order."""
    statuses: Diagnosis
    """Why preemption does not help on the others."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """Preemption for *pod* in thought; nothing but overlays is changed."""

    pod: PodInfo
    nodes: NodeTable
    state: CycleState
    filters: FilterRunner
    ranks: Ranks
    budgets: DisruptionBudgets

    def dry_run_preemption(self, rows: Rows, *, num_candidates: int) -> Preemption:
        """Try *rows* in order until a candidate breaks no budget and there are *num_candidates*."""
        lowest = self.ranks.lowest_priorities(self.nodes)
        has_victims = (lowest < self.pod.priority)[rows]
        statuses = Diagnosis(len(self.nodes), absent=NOT_HELPFUL)
        non_violating: list[Candidate] = []
        violating: list[Candidate] = []
        tried = len(rows)
        for at in _batches(np.flatnonzero(has_victims), first=num_candidates):
            selected = self.select_victims_on_nodes(rows[at])
            done = len(at)
            for position, candidate in selected.candidates.items():
                found = violating if candidate.pdb_violations else non_violating
                if len(found) < num_candidates:
                    found.append(candidate)
                if non_violating and len(non_violating) + len(violating) >= num_candidates:
                    done, tried = position + 1, int(at[position]) + 1
                    break
            statuses.add_part(selected.statuses, self.nodes, rows[at[:done]])
            if tried < len(rows):
                break
        in_vain = self.nodes.no_rows()
        in_vain[rows[:tried][~has_victims[:tried]]] = True
        if in_vain.any():
            statuses.verdicts.append(PluginVerdict("", Verdict.reject(NO_VICTIMS, where=in_vain)))
        return Preemption((*non_violating, *violating), statuses)

    def select_victims_on_nodes(self, rows: Rows) -> Selected:
        """Say for each of *rows* whose eviction lets the pod in, or why nobody's does.

        Whatever is done is done to all nodes at once. A victim has a number, by which it is found
        in ``potential_victims``, and its node one in ``node_of``.
        """
        overlay = self.filters.overlay(self.state, self.pod, self.nodes, rows)

        # Remove all pods of lower priority. If the pod does not fit then, it never will.
        potential_victims, node_of = self._potential_victims(rows)
        overlay.remove_pods(node_of, potential_victims)
        statuses = overlay.run_filters()
        fits = ~statuses.rejected(overlay.nodes)

        # Reprieve as many as possible: first those whose eviction breaks a disruption budget, then
        # the others, and the most important of either first.
        breaks_budget = self._break_budgets(potential_victims, node_of, among=fits)
        in_order = np.lexsort((~breaks_budget, node_of))
        is_victim = np.zeros(len(potential_victims), bool)
        for next_of_nodes in _one_of_each(in_order[fits[node_of[in_order]]], node_of):
            overlay.add_pods(node_of[next_of_nodes], potential_victims.take(next_of_nodes))
            reprieved = ~overlay.run_filters(node_of[next_of_nodes]).rejected(overlay.nodes)
            victims = next_of_nodes[~reprieved[node_of[next_of_nodes]]]
            overlay.remove_pods(node_of[victims], potential_victims.take(victims))
            is_victim[victims] = True

        candidates: dict[int, Candidate] = {}
        victims = in_order[is_victim[in_order]]
        ends = np.searchsorted(node_of[victims], np.arange(len(rows)), side="right").tolist()
        for i in np.flatnonzero(fits).tolist():
            node = self.nodes.name(rows[i])
            of_node = victims[ends[i - 1] if i else 0 : ends[i]].tolist()
            if not of_node:
                text = f'expected at least one victim pod on node "{node}"'
                statuses.statuses[i] = Status.error(text)
                continue
            pods = [potential_victims[number] for number in of_node]
            violations = int(np.count_nonzero(breaks_budget[of_node]))
            if violations:
                pods.sort(key=importance)
            candidates[i] = Candidate(int(rows[i]), node, tuple(pods), violations)
        return Selected(candidates, statuses)

    def _potential_victims(self, rows: Rows) -> tuple[PodBatch, Rows]:
        """Return the pods of lower priority, and their nodes by position among *rows*.

        Node by node, the most important pods of each first.
        """
        priority, nodes = self.pod.priority, self.nodes
        of_nodes = [self.ranks.below(priority, nodes, row) for row in rows.tolist()]
        counts = [len(pods) for pods in of_nodes]
        batch = PodBatch(list(chain.from_iterable(of_nodes)))
        return batch, np.repeat(np.arange(len(rows)), counts)

    def _break_budgets(self, pods: PodBatch, node_of: Rows, *, among: Mask) -> Mask:
        """Return whose eviction would break a budget, of the pods on the nodes *among* some."""
        breaks = np.zeros(len(pods), bool)
        if self.budgets.is_empty:
            return breaks
        for node in np.flatnonzero(among):
            numbers = np.flatnonzero(node_of == node).tolist()
            on_node = [pods[number] for number in numbers]
            violating = self.budgets.violated_by(on_node)
            breaks[numbers] = [pod in violating for pod in on_node]
        return breaks


def _one_of_each(numbers: Rows, node_of: Rows) -> list[Rows]:
    """Return the first of *numbers*, which are sorted by node, of every node, then the second..."""
    if not len(numbers):
        return []
    nodes = node_of[numbers]
    step = np.arange(len(numbers)) - np.searchsorted(nodes, nodes)
    by_step = np.argsort(step, kind="stable")
    return np.split(numbers[by_step], np.cumsum(np.bincount(step))[:-1])


def _batches(rows: Rows, *, first: int) -> Iterator[Rows]:
    """Yield *rows* in batches, each twice as many as the one before."""
    start, size = 0, max(first, 1)
    while start < len(rows):
        yield rows[start : start + size]
        start, size = start + size, 2 * size
