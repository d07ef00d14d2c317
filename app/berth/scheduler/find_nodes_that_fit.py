"""Feasible nodes: PreFilter, the nominated node, Filter over the table (spec §2.3-2.5).

Named after the functions of kube-scheduler's ``schedule_one.go``.
"""

from functools import cached_property
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Mask
from berth.scheduler.profile.results import PreFilterOutcome, eligible_rows
from berth.scheduler.sampling import Sampling

NO_ROWS: Final = np.empty(0, np.intp)


class FeasibleNodes(msgspec.Struct, frozen=True, dict=True):
    """Which nodes can take a pod, and why the others cannot. Rows are those of the table."""

    diagnosis: Diagnosis
    feasible: Mask
    """The rows that passed everything."""
    sample: NDArray[np.intp] | None = None
    """The rows to choose from, in the order of the search; None: all that are feasible."""
    pre_filter: PreFilterOutcome = msgspec.field(default_factory=PreFilterOutcome)
    is_nominated: bool = False
    """The pod's nominated node passed, and is the only candidate (spec §2.4)."""
    error: Status | None = None
    """Why the search could not be finished; there are no candidates then."""

    @property
    def candidates(self) -> NDArray[np.intp]:
        """The rows to choose from, in the order of the search; fewer than feasible if sampled."""
        return np.flatnonzero(self.feasible) if self.sample is None else self.sample

    @cached_property
    def num_feasible(self) -> int:
        """How many rows passed everything."""
        return int(np.count_nonzero(self.feasible))

    @classmethod
    def nowhere(cls, diagnosis: Diagnosis) -> "FeasibleNodes":
        """Make what stands for a search that was not made, or has to be made again."""
        return cls(diagnosis, np.empty(0, bool), NO_ROWS)

    def status_of(self, row: int) -> Status | None:
        """Return why the node in *row* cannot take the pod; None if it can."""
        if self.feasible[row]:
            return None
        return self.diagnosis.status_of(row) or self.diagnosis.absent or self.pre_filter.status


def find_nodes_that_fit_pod(
    cycle: Cycle, sampling: Sampling | None = None, *, nominated_first: bool = True
) -> FeasibleNodes:
    """Find the nodes that can take the pod of *cycle*; changes nothing but the rotation.

    As in kube-scheduler, no other node is looked at if the nominated one fits. Without *sampling*,
    or if the profile does not ask for it, all nodes that fit are candidates. *nominated_first*
    false: the nominated node is a node like any other.
    """
    nodes, state, profile = cycle.nodes, cycle.state, cycle.profile
    diagnosis = Diagnosis(cycle.num_nodes)
    pre_filter, eligible = _run_pre_filter_plugins(cycle, diagnosis)
    if eligible is None:
        return _none(cycle, diagnosis, pre_filter)
    if nominated_first:
        row = evaluate_nominated_node(cycle, diagnosis, eligible)
        if row is not None:
            state.feasible = _only(cycle, row)
            rows = np.array([row], np.intp)
            return FeasibleNodes(diagnosis, state.feasible, rows, pre_filter, is_nominated=True)
    feasible = find_nodes_that_pass_filters(cycle, diagnosis, eligible)
    error = _error(cycle, diagnosis)
    if error is not None:
        return FeasibleNodes(diagnosis, feasible, NO_ROWS, pre_filter, error=error)
    if sampling is None or not profile.percentage_of_nodes_to_score:
        return FeasibleNodes(diagnosis, feasible, feasible.nonzero()[0], pre_filter)
    names = pre_filter.node_names
    rows = sampling.sample(nodes, feasible, profile=profile, eligible=names)
    state.feasible = nodes.no_rows()
    state.feasible[rows] = True
    return FeasibleNodes(diagnosis, state.feasible, rows, pre_filter)


def evaluate_all_nodes(cycle: Cycle) -> FeasibleNodes:
    """Find the same candidates, and evaluate every node even if the nominated one fits.

    Nothing is sampled. For those who want to know about each node.
    """
    state = cycle.state
    diagnosis = Diagnosis(cycle.num_nodes)
    pre_filter, eligible = _run_pre_filter_plugins(cycle, diagnosis)
    if eligible is None:
        return _none(cycle, diagnosis, pre_filter)
    row = evaluate_nominated_node(cycle, diagnosis, eligible)
    feasible = find_nodes_that_pass_filters(cycle, diagnosis, eligible)
    error = _error(cycle, diagnosis)
    if error is not None:
        return FeasibleNodes(
            diagnosis, feasible, NO_ROWS, pre_filter, is_nominated=row is not None, error=error
        )
    if row is None:
        return FeasibleNodes(diagnosis, feasible, feasible.nonzero()[0], pre_filter)
    state.feasible = _only(cycle, row)
    rows = np.array([row], np.intp)
    return FeasibleNodes(diagnosis, feasible, rows, pre_filter, is_nominated=True)


def evaluate_nominated_node(cycle: Cycle, diagnosis: Diagnosis, eligible: Mask) -> int | None:
    """Return the row of the pod's own nominated node if the pod fits there (spec §2.4).

    Nodes that PreFilter left out are no exception: what is found out about them counts.
    """
    pod, nodes = cycle.pod, cycle.nodes
    name = pod.pod.status.nominated_node_name
    row = nodes.row_of.get(name) if name else None
    if row is None or (cycle.placement.rows is not None and not cycle.placement.rows[row]):
        return None
    status = cycle.filters.overlay(cycle.state, pod, nodes, [row]).run_filters().status_of(0)
    if status is not None and status.is_rejected and not eligible[row]:
        diagnosis.statuses[row] = status
    return row if status is None else None


def find_nodes_that_pass_filters(cycle: Cycle, diagnosis: Diagnosis, eligible: Mask) -> Mask:
    """Return the *eligible* rows that pass, beside nominated pods and without them (spec §2.5).

    Why the others do not, and which plugins an event must satisfy before the pod is worth another
    attempt, is added to *diagnosis*.
    """
    state, profile = cycle.state, cycle.profile
    state.feasible = eligible.copy()
    with profile.filtering(diagnosis):
        cycle.filters.run_filters(state, cycle.pod, cycle.nodes, diagnosis)
    for plugin, verdict in diagnosis.verdicts:
        pending = any(r.code is Code.PENDING for r in verdict.rejections)
        (diagnosis.pending_plugins if pending else diagnosis.unschedulable_plugins).add(plugin)
    for status in diagnosis.statuses.values():
        if status.plugin:
            diagnosis.unschedulable_plugins.add(status.plugin)
    return state.feasible


def _run_pre_filter_plugins(
    cycle: Cycle, diagnosis: Diagnosis
) -> tuple[PreFilterOutcome, Mask | None]:
    """Return what PreFilter said, and the rows it leaves; None if that ends the cycle (§2.3)."""
    nodes, state = cycle.nodes, cycle.state
    if not diagnosis.num_all_nodes:
        return PreFilterOutcome(), None
    state.feasible = nodes.exists.copy()
    outcome = cycle.profile.run_pre_filter(state, cycle.pod, nodes)
    status = outcome.status
    if status is not None:
        if status.is_rejected:
            diagnosis.absent = status
            diagnosis.pre_filter_message = status.message
            diagnosis.unschedulable_plugins |= _rejectors(outcome, status)
        return outcome, None
    eligible, diagnosis.absent = eligible_rows(outcome, nodes)
    if outcome.node_names is not None:
        diagnosis.unschedulable_plugins |= set(outcome.plugins_with_nodes)
    if cycle.placement.rows is not None:
        eligible = eligible & cycle.placement.rows
    return outcome, eligible


def _error(cycle: Cycle, diagnosis: Diagnosis) -> Status | None:
    """Return what ends the attempt; asking about the nominated node may have taken its time."""
    error = diagnosis.error(cycle.nodes, naming_for=cycle.profile.plugins_by_others)
    return error or cycle.out_of_time


def _rejectors(outcome: PreFilterOutcome, status: Status) -> set[str]:
    """Return which plugins must change their mind when PreFilter rejects a pod (spec §2.3).

    Those that narrowed the nodes down count unless another ended PreFilter on its own: what it
    finds unresolvable is not for them to solve.
    """
    if status.plugin and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return {status.plugin}
    return {*outcome.plugins_with_nodes, *([status.plugin] if status.plugin else ())}


def _none(cycle: Cycle, diagnosis: Diagnosis, pre_filter: PreFilterOutcome) -> FeasibleNodes:
    status = pre_filter.status
    error = status if status is not None and not status.is_rejected else None
    return FeasibleNodes(diagnosis, cycle.nodes.no_rows(), NO_ROWS, pre_filter, error=error)


def _only(cycle: Cycle, row: int) -> Mask:
    rows = cycle.nodes.no_rows()
    rows[row] = True
    return rows
