"""Which of the nodes that can take a pod is best: scores, then one of the highest (spec §2.6)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from berth.framework.node_table import NodeTable
from berth.framework.status import Status
from berth.framework.verdict import Ints
from berth.profile.profile import ScoreTable
from berth.scheduler.cycle import Cycle

Select = Callable[[Sequence[int]], int]
"""Picks one of several rows that have the highest total."""


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
    best = np.flatnonzero(scores.total == scores.total.max())
    rows = scores.rows[best].data  # often thousands
    return (rows[0] if len(rows) == 1 else select(rows)), best


def smallest_name(nodes: NodeTable) -> Select:
    """Return a *select* that takes the node with the smallest name: always the same one."""

    def ranks() -> list[int]:
        found = [0] * nodes.size
        for rank, name in enumerate(sorted(nodes.row_of)):
            found[nodes.row_of[name]] = rank
        return found

    return lambda rows: min(rows, key=nodes.kept(smallest_name, ranks).__getitem__)


def _in_rows(scores: Mapping[str, int], nodes: NodeTable, rows: NDArray[np.intp]) -> Ints:
    """Return *scores* row by row; out of int64 they wrap, as in Go."""
    of_rows = [scores.get(name, 0) for name in nodes.names(rows)]
    return np.array([(score + 2**63) % 2**64 - 2**63 for score in of_rows], np.int64)
