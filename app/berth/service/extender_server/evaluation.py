"""Evaluation of a pod and some nodes by a profile, in the terms of the extender API."""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.scheduler.extender.wire import MetaPod, MetaVictims
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.scheduler.framework.preemption.importance import importance
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Ints, Mask, Verdict
from berth.scheduler.profile.nominated_pods import FiltersWithNominatedPods, NominatedPods
from berth.scheduler.profile.profile import Profile
from berth.scheduler.profile.results import eligible_rows
from berth.service.extender_server.candidate_nodes import NO_ROW, CandidateNodes

MAX_PRIORITY: Final = 10
"""The best that an extender can say of a node."""
NOT_KNOWN: Final = Status.unresolvable("node(s) not known to the extender")


class FilterOutcome(NamedTuple):
    """Which nodes fit, a flag per candidate, and why the others do not."""

    fits: Mask
    failed: dict[str, str]
    """Evicting pods may help."""
    unresolvable: dict[str, str]
    error: str = ""
    """Why the filters could not run; then the rest says nothing."""

    def only(self, place: str, names: Sequence[str]) -> "FilterOutcome":
        """Return this for a pod that goes to *place* already; *names* are the candidates.

        If it does not fit there, this is returned as it is: should the pod be refused there, it may
        go elsewhere.
        """
        there = np.fromiter((name == place for name in names), bool, len(names))
        if not (self.fits & there).any():
            return self
        others = compress(names, (self.fits & ~there).tolist())
        reason = f"pod is being bound to node {place}"
        return self._replace(fits=there, failed={**self.failed, **dict.fromkeys(others, reason)})


class PriorityOutcome(NamedTuple):
    """A score from 0 to 10 per candidate."""

    scores: list[int]
    error: str = ""
    """Why the score plugins could not run; then all are 0."""


def filter_nodes(
    profile: Profile, pod: PodInfo, asked: CandidateNodes, *, nominated: NominatedPods
) -> FilterOutcome:
    """Say which of the nodes can take *pod*."""
    nodes = asked.table
    none = np.zeros(len(asked.names), bool)
    state = CycleState(nodes.exists.copy())
    outcome = profile.run_pre_filter(state, pod, nodes)
    diagnosis = Diagnosis(len(nodes))
    if outcome.status is not None:
        if not outcome.status.is_rejected:
            return FilterOutcome(none, {}, {}, outcome.status.message)
        diagnosis.absent = outcome.status
        return FilterOutcome(none, *_reasons(asked, none, diagnosis))
    eligible, diagnosis.absent = eligible_rows(outcome, nodes)
    state.feasible = eligible & asked.mask
    FiltersWithNominatedPods(profile, nominated).run_filters(state, pod, nodes, diagnosis)
    error = diagnosis.error()
    if error is not None:
        return FilterOutcome(none, {}, {}, error.message)
    known = asked.rows != NO_ROW
    fits = none
    fits[known] = state.feasible[asked.rows[known]]
    return FilterOutcome(fits, *_reasons(asked, fits, diagnosis))


def _reasons(
    asked: CandidateNodes, fits: Mask, diagnosis: Diagnosis
) -> tuple[dict[str, str], dict[str, str]]:
    """Return why nodes do not fit, where evictions may help and where not."""
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    out = np.flatnonzero(~fits)
    if not len(out):
        return failed, unresolvable
    of_row = _causes(diagnosis)
    absent = _Cause.of(diagnosis.absent or NOT_KNOWN)
    names = asked.names
    for i, row in zip(out.tolist(), asked.rows[out].tolist(), strict=True):
        cause = _UNKNOWN if row == NO_ROW else of_row.get(row, absent)
        (unresolvable if cause.is_unresolvable else failed)[names[i]] = cause.message
    return failed, unresolvable


class _Cause(NamedTuple):
    """A status in words; many nodes share it."""

    message: str
    is_unresolvable: bool

    @classmethod
    def of(cls, status: Status) -> "_Cause":
        return cls(status.message, status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


_UNKNOWN: Final = _Cause.of(NOT_KNOWN)


def _causes(diagnosis: Diagnosis) -> dict[int, _Cause]:
    """Put into words why rows were rejected, each distinct set of reasons once."""
    causes: dict[int, _Cause] = {}
    for _, verdict in diagnosis.verdicts:
        rejected = verdict.rejected()
        if rejected is not None:
            causes.update(_causes_of(verdict, np.flatnonzero(rejected)))
    causes.update((row, _Cause.of(status)) for row, status in diagnosis.statuses.items())
    return causes


def _causes_of(verdict: Verdict, rows: NDArray[np.intp]) -> dict[int, _Cause]:
    """Return the cause of each of *rows*, which *verdict* rejects."""
    if len(verdict.rejections) == 1:  # as of most plugins; to compare rows takes ten times as long
        return dict.fromkeys(rows.tolist(), _cause_on(verdict, int(rows[0]))) if len(rows) else {}
    masks = np.array([rejection.where[rows] for rejection in verdict.rejections])
    _, first, kind_of = np.unique(
        np.packbits(masks, axis=0), axis=1, return_index=True, return_inverse=True
    )
    causes = [_cause_on(verdict, row) for row in rows[first].tolist()]
    return dict(zip(rows.tolist(), map(causes.__getitem__, kind_of.ravel().tolist()), strict=True))


def _cause_on(verdict: Verdict, row: int) -> _Cause:
    status = verdict.status_of(row)
    assert status is not None, "a rejected row has reasons"
    return _Cause.of(status)


def prioritize_nodes(profile: Profile, pod: PodInfo, asked: CandidateNodes) -> PriorityOutcome:
    """Rank the nodes for *pod*, whether or not it fits them."""
    nodes = asked.table
    scores = [0] * len(asked.names)
    wanted = asked.mask
    if not wanted.any():
        return PriorityOutcome(scores)
    state = CycleState(nodes.exists.copy())
    outcome = profile.run_pre_filter(state, pod, nodes)  # Score plugins may count on it
    if outcome.status is not None:
        return PriorityOutcome(scores, "" if outcome.status.is_rejected else outcome.status.message)
    state.feasible = wanted
    rows = np.flatnonzero(wanted)
    said = profile.run_scores(state, pod, nodes, rows)
    if isinstance(said, Status):
        return PriorityOutcome(scores, said.message)
    priorities = np.zeros(nodes.size + 1, np.int64)  # the last one is NO_ROW's
    priorities[rows] = _priorities(said.total)
    return PriorityOutcome(priorities[asked.rows].tolist())


def _priorities(totals: Ints) -> Ints:
    """Stretch totals to 0..10: ``(total - worst) * 10 // (best - worst)``; 0 if all are equal."""
    above = totals - totals.min()
    stretched: Ints = above * MAX_PRIORITY // max(int(above.max()), 1)
    return stretched


def preempt(
    profile: Profile,
    pod: PodInfo,
    nodes: NodeTable,
    *,
    victims: Mapping[str, Sequence[str]],
    nominated: NominatedPods,
    budgets: DisruptionBudgets,
) -> dict[str, MetaVictims]:
    """Return the nodes that take *pod* once their *victims* (uids) are gone, with all of these.

    None is spared, even if *pod* would fit beside it here: the other scheduler has reasons of its
    own. Victims that are gone already stay in the answer. Nodes without victims, and
    those where the filters fail, are left out.
    """
    state = CycleState(nodes.exists.copy())
    outcome = profile.run_pre_filter(state, pod, nodes)
    if outcome.status is not None and outcome.status.code is not Code.UNSCHEDULABLE:
        return {}
    eligible, _ = eligible_rows(outcome, nodes)
    rows = [
        row
        for name in victims
        if victims[name] and (row := nodes.row_of.get(name)) is not None and eligible[row]
    ]
    names = list(nodes.names(rows))
    leaving = [_present(nodes, row, victims[name]) for name, row in zip(names, rows, strict=True)]
    overlay = FiltersWithNominatedPods(profile, nominated).overlay(state, pod, nodes, rows)
    overlay.remove_pods(
        [i for i, pods in enumerate(leaving) for _ in pods],
        [victim for pods in leaving for victim in pods],
    )
    fits = ~overlay.run_filters().rejected(overlay.nodes)
    agreed: dict[str, MetaVictims] = {}
    for name, pods in compress(zip(names, leaving, strict=True), fits.tolist()):
        violations = len(budgets.filter_pods_with_pdb_violation(sorted(pods, key=importance)))
        agreed[name] = MetaVictims([MetaPod(uid) for uid in victims[name]], violations)
    return agreed


def _present(nodes: NodeTable, row: int, uids: Sequence[str]) -> list[PodInfo]:
    on_node = nodes.pods[row]
    return [on_node[uid] for uid in dict.fromkeys(uids) if uid in on_node]
