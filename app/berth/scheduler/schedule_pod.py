"""The scheduling algorithm: find the nodes that fit, score them, select one (spec §2.3-2.6)."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import (
    FeasibleNodes,
    evaluate_all_nodes,
    find_nodes_that_fit_pod,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import Ints
from berth.scheduler.outcome import Failed, Outcome, Placed, Unschedulable
from berth.scheduler.profile.results import ScoreTable
from berth.scheduler.sampling import Sampling

Select = Callable[[Sequence[int]], int]
"""Picks one of several rows that have the highest total."""


def schedule_pod(cycle: Cycle, *, select: Select, sampling: Sampling | None = None) -> Outcome:
    """Decide where the pod of *cycle* goes; changes nothing but the rotation of *sampling*.

    PostFilter is not run.
    """
    return place_on_a_candidate(cycle, find_nodes_that_fit_pod(cycle, sampling), select=select)


def evaluate_pod(cycle: Cycle, *, select: Select) -> Outcome:
    """Decide the same, and find out about every node: all are filtered, all candidates scored."""
    feasible_nodes = evaluate_all_nodes(cycle)
    if len(feasible_nodes.candidates) == 1:
        return place_on_best(cycle, feasible_nodes, select=select)
    return place_on_a_candidate(cycle, feasible_nodes, select=select)


def place_on_a_candidate(
    cycle: Cycle,
    feasible_nodes: FeasibleNodes,
    *,
    select: Select,
    extender_scores: Mapping[str, int] | None = None,
) -> Outcome:
    """Take one of the candidates; as in kube-scheduler, a single one is not scored."""
    pod, profile, candidates = cycle.pod, cycle.profile.name, feasible_nodes.candidates
    if feasible_nodes.error is not None:
        return Failed(pod, profile, feasible_nodes, feasible_nodes.error)
    if not len(candidates):
        return Unschedulable(pod, profile, feasible_nodes)
    if len(candidates) == 1:
        return Placed(pod, profile, feasible_nodes, cycle.nodes.name(int(candidates[0])))
    return place_on_best(cycle, feasible_nodes, select=select, extender_scores=extender_scores)


def place_on_best(
    cycle: Cycle,
    feasible_nodes: FeasibleNodes,
    *,
    select: Select,
    extender_scores: Mapping[str, int] | None = None,
) -> Placed | Failed:
    """Score the candidates and take one of those with the highest total."""
    pod, profile = cycle.pod, cycle.profile.name
    scores = prioritize_nodes(cycle, feasible_nodes.candidates, extender_scores=extender_scores)
    if isinstance(scores, Status):
        return Failed(pod, profile, feasible_nodes, scores)
    row, best = select_host(scores, select)
    return Placed(pod, profile, feasible_nodes, cycle.nodes.name(row), scores, best)


def prioritize_nodes(
    cycle: Cycle, rows: NDArray[np.intp], *, extender_scores: Mapping[str, int] | None = None
) -> ScoreTable | Status:
    """Score *rows*, which ``state.feasible`` marks; return the error of a plugin that fails.

    *extender_scores*, by name of the node, are added to the totals.
    """
    scores = cycle.profile.run_scores(cycle.state, cycle.pod, cycle.nodes, rows)
    if extender_scores is None or isinstance(scores, Status):
        return scores
    extenders = _in_rows(extender_scores, cycle.nodes, rows)
    return replace(scores, total=scores.total + extenders, extenders=extenders)


def select_host(scores: ScoreTable, select: Select) -> tuple[int, NDArray[np.intp]]:
    """Return the row to take, and where in *scores* all with the highest total are.

    Of several *select* takes one, where kube-scheduler takes the first of its list.
    """
    (best,) = (scores.total == scores.total[scores.total.argmax()]).nonzero()
    rows = scores.rows[best].data  # often thousands
    return (rows[0] if len(rows) == 1 else select(rows)), best


def smallest_name(nodes: NodeTable) -> Select:
    """Return a *select* that takes the node with the smallest name: always the same one."""
    return lambda rows: nodes.row_of[min(nodes.names(rows))]


def _in_rows(scores: Mapping[str, int], nodes: NodeTable, rows: NDArray[np.intp]) -> Ints:
    """Return *scores* row by row; out of int64 they wrap, as in Go."""
    of_rows = [scores.get(name, 0) for name in nodes.names(rows)]
    return np.array([(score + 2**63) % 2**64 - 2**63 for score in of_rows], np.int64)
