"""The scheduling algorithm: PreFilter, Filter over the table, Score, choose (spec §2.3-2.6)."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from berth.extender.result import EXTENDER, ExtenderResult
from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import Diagnosis
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.status import Code, Status
from berth.framework.verdict import Ints, Mask
from berth.profile.nominated_pods import FiltersWithNominatedPods, NominatedPods
from berth.profile.profile import PreFilterOutcome, Profile, eligible_rows
from berth.scheduler.decision import Decision

MIN_FEASIBLE_NODES = 100
"""Sampling never looks for fewer nodes than this."""

Select = Callable[[Sequence[int]], int]
"""Picks one of several equally good rows."""


def num_feasible_nodes_to_find(percentage: int, num_nodes: int) -> int:
    """Return how many feasible nodes are enough (spec §2.5).

    *percentage* is percentageOfNodesToScore; 0 means all of them. kube-scheduler then takes a share
    that shrinks as the cluster grows, from 50 to 5 percent, because judging more takes it too long.
    """
    if percentage == 0 or num_nodes < MIN_FEASIBLE_NODES:
        return num_nodes
    return max(num_nodes * percentage // 100, MIN_FEASIBLE_NODES)


class NodeFinder:
    """Finds nodes on one table; keeps where the rotation over the nodes stands.

    Of a profile, ``percentage_of_nodes_to_score`` 0 looks at every node: with columns that costs
    less than kube-scheduler's sample. Any other value samples by kube-scheduler's rule.
    """

    def __init__(self, nodes: NodeTable, *, select: Select, extenders_decide: bool = False) -> None:
        """*extenders_decide*: some filter or prioritize, so that a sample of one is too small."""
        self.nodes = nodes
        self._extenders_decide = extenders_decide
        self.next_start_node_index = 0
        self._select = select

    def find(
        self,
        profile: Profile,
        pod: PodInfo,
        *,
        state: CycleState,
        nominated: NominatedPods,
        look_at_all: bool = False,
        extender_result: ExtenderResult | None = None,
    ) -> Decision:
        """Decide where *pod* goes on the table as it is now; changes nothing but the rotation.

        PostFilter is not run, see :meth:`run_post_filter_plugins`. As in kube-scheduler, a single
        feasible node is chosen without scoring, and nobody looks further when the nominated node
        fits; with *look_at_all* the decision is the same, but everything is judged and what is
        chosen from is scored.

        An *extender_result* is what extenders said of the candidates that :meth:`judge` had found
        before: only those that they left, and that still fit, come into question. The rotation
        stays.
        """
        decision = self.judge(
            profile,
            pod,
            state=state,
            nominated=nominated,
            look_at_all=look_at_all,
            extender_result=extender_result,
        )
        if decision.status is None:
            self._choose(
                profile,
                decision,
                state=state,
                look_at_all=look_at_all,
                extender_result=extender_result,
            )
        return decision

    def judge(
        self,
        profile: Profile,
        pod: PodInfo,
        *,
        state: CycleState,
        nominated: NominatedPods,
        look_at_all: bool = False,
        beyond_nominated: bool = False,
        extender_result: ExtenderResult | None = None,
    ) -> Decision:
        """Find the candidates for :meth:`find`, which takes the same arguments.

        *beyond_nominated*: all nodes are looked at even if the nominated one fits.
        """
        nodes = self.nodes
        decision = Decision(pod, profile.name, Diagnosis(len(nodes)), feasible=nodes.no_rows())
        diagnosis = decision.diagnosis
        if not len(nodes):
            decision.status = Status.unresolvable("no nodes available to schedule pods")
            decision.nominated_node = ""
            return decision

        state.feasible = nodes.exists.copy()
        outcome = decision.pre_filter = profile.run_pre_filter(state, pod, nodes)
        if outcome.status is not None:
            decision.status = outcome.status
            if outcome.status.is_rejected:
                diagnosis.absent = outcome.status
                diagnosis.pre_filter_message = outcome.status.message
                diagnosis.unschedulable_plugins |= _rejectors(outcome)
            return decision
        eligible, diagnosis.absent = eligible_rows(outcome, nodes)
        if outcome.node_names is not None:
            diagnosis.unschedulable_plugins |= set(outcome.plugins_with_nodes)

        filters = FiltersWithNominatedPods(profile, nominated)
        row = None
        if not beyond_nominated:
            row = self._fitting_nominated_row(filters, decision, state, eligible, extender_result)
        decision.nominated_used = row is not None
        if row is None or look_at_all:
            state.feasible = eligible.copy()
            with profile.filtering(diagnosis):
                filters.run_filters(state, pod, nodes, diagnosis)
            if extender_result is not None:
                self._apply_extender_result(extender_result, decision, state)
            decision.feasible = state.feasible
            _note_rejectors(diagnosis)
        error = diagnosis.error(nodes, naming_for=profile.plugins_by_others)
        if error is None and extender_result is not None:
            error = extender_result.error
        if error is not None:
            decision.status = error
            return decision

        if row is not None:
            rows = np.array([row], np.intp)
        else:
            sample = not look_at_all and extender_result is None
            rows = self._candidates(decision, profile, sample=sample)
        decision.candidates = rows
        if not len(rows):
            decision.status = Status.unschedulable(*diagnosis.reasons())
            return decision
        if row is not None:
            state.feasible = nodes.no_rows()
            state.feasible[row] = True
            if not look_at_all:
                decision.feasible = state.feasible
        else:
            state.feasible = decision.feasible
        return decision

    def _choose(
        self,
        profile: Profile,
        decision: Decision,
        *,
        state: CycleState,
        look_at_all: bool,
        extender_result: ExtenderResult | None,
    ) -> None:
        """Score the candidates, if there are several, and take the best one."""
        nodes, rows = self.nodes, decision.candidates
        if look_at_all or len(rows) > 1:
            scores = profile.run_scores(state, decision.pod, nodes, rows)
            if isinstance(scores, Status):
                decision.status = scores
                return
            if extender_result is not None:
                decision.extender_scores = _extender_scores(extender_result, nodes, rows)
                scores.total += decision.extender_scores
            decision.scores = scores
            scores.best = np.flatnonzero(scores.total == scores.total.max())
            decision.best = rows[scores.best].data  # often thousands
        else:
            decision.best = rows[:1].tolist()
        chosen = decision.best[0] if len(decision.best) == 1 else self._select(decision.best)
        decision.node_name = nodes.name(chosen)

    def run_post_filter_plugins(
        self, profile: Profile, decision: Decision, *, state: CycleState, nominated: NominatedPods
    ) -> None:
        """Let PostFilter plugins help the pod of *decision*, which fits nowhere (spec §2.8).

        To be called right after :meth:`find`, with the same arguments. What the plugins want is
        noted in *decision*; nothing is done about it.
        """
        status = decision.status
        if status is None or not status.is_rejected or decision.is_no_nodes:
            decision.nominated_node = ""
            return
        result = profile.run_post_filters(
            state,
            decision.pod,
            self.nodes,
            decision.diagnosis,
            FiltersWithNominatedPods(profile, nominated),
        )
        if result is None:
            decision.nominated_node = ""
            return
        decision.post_filter = result
        decision.nominated_node = result.nominated_node

    def _fitting_nominated_row(
        self,
        filters: FiltersWithNominatedPods,
        decision: Decision,
        state: CycleState,
        eligible: Mask,
        extender_result: ExtenderResult | None,
    ) -> int | None:
        """Return the pod's own nominated node if it fits; it short-circuits the rest (§2.4).

        Nodes that PreFilter left out are no exception: what is found out about them counts.
        """
        name = decision.pod.pod.status.nominated_node_name
        row = self.nodes.row_of.get(name) if name else None
        if row is None or (extender_result is not None and name not in extender_result.nodes):
            return None
        overlay = filters.overlay(state, decision.pod, self.nodes, [row])
        status = overlay.run_filters().status_of(0)
        if status is not None and status.is_rejected and not eligible[row]:
            decision.diagnosis.statuses[row] = status
        return row if status is None else None

    def _apply_extender_result(
        self, extender_result: ExtenderResult, decision: Decision, state: CycleState
    ) -> None:
        """Leave out the nodes that extenders do not want, and those that they were not asked about.

        The latter fit only since the extenders were asked. They have no status: nothing is known
        against them. Of a node that does not fit any more, our own filters say why.
        """
        nodes, diagnosis = self.nodes, decision.diagnosis
        for name, status in extender_result.statuses.items():
            row = nodes.row_of.get(name)
            if row is not None and state.feasible[row]:
                diagnosis.statuses[row] = status
        if extender_result.has_rejected:
            diagnosis.unschedulable_plugins.add(EXTENDER)
        state.feasible = state.feasible & nodes.rows_named(extender_result.nodes)

    def _candidates(
        self, decision: Decision, profile: Profile, *, sample: bool
    ) -> NDArray[np.intp]:
        """List the feasible rows, cut to kube-scheduler's sample if one is configured (§2.5)."""
        percentage = profile.percentage_of_nodes_to_score
        if percentage and sample:
            return self._sampled(decision, profile, percentage)
        return np.flatnonzero(decision.feasible)

    def _sampled(self, decision: Decision, profile: Profile, percentage: int) -> NDArray[np.intp]:
        """Take as many feasible rows as are wanted, in the order of the rotation over the nodes."""
        nodes, names = self.nodes, decision.pre_filter.node_names
        order = nodes.order
        if names is not None:
            order = order[nodes.rows_named(names)[order]]
        if not len(order):
            return order
        start = self.next_start_node_index % len(order)
        order = np.concatenate([order[start:], order[:start]])
        passed = decision.feasible[order]
        rows = order[passed]
        several = profile.scores or self._extenders_decide
        wanted = num_feasible_nodes_to_find(percentage, len(order)) if several else 1
        processed = len(order)
        if len(rows) > wanted:
            # kube-scheduler stops at the first feasible node too many.
            processed = int(np.flatnonzero(passed)[wanted])
            rows = rows[:wanted]
            decision.feasible = nodes.no_rows()
            decision.feasible[rows] = True
        self.next_start_node_index = (self.next_start_node_index + processed) % len(nodes)
        return rows


def _extender_scores(
    extender_result: ExtenderResult, nodes: NodeTable, rows: NDArray[np.intp]
) -> Ints:
    """Return what extenders give each of *rows*; out of int64 it wraps, as in Go."""
    scores = [extender_result.scores.get(name, 0) for name in nodes.names(rows)]
    return np.array([(score + 2**63) % 2**64 - 2**63 for score in scores], np.int64)


def _rejectors(outcome: PreFilterOutcome) -> set[str]:
    """Return who must change its mind when PreFilter rejects a pod (spec §2.3).

    Those that narrowed the nodes down count unless another ended PreFilter on its own: what it
    finds unresolvable is not for them to solve.
    """
    status = outcome.status
    assert status is not None, "only a rejection has rejectors"
    if status.plugin and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return {status.plugin}
    return {*outcome.plugins_with_nodes, *([status.plugin] if status.plugin else ())}


def _note_rejectors(diagnosis: Diagnosis) -> None:
    """Record which plugins an event must satisfy before the pod is worth another attempt."""
    for plugin, verdict in diagnosis.verdicts:
        pending = any(r.code is Code.PENDING for r in verdict.rejections)
        (diagnosis.pending_plugins if pending else diagnosis.unschedulable_plugins).add(plugin)
    for status in diagnosis.statuses.values():
        if status.plugin:
            diagnosis.unschedulable_plugins.add(status.plugin)
