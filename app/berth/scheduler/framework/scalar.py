"""The simple form of Filter, Score and PreFilterExtensions: one node at a time.

Meant for plugin authors; in-tree plugins use columns. The cost is one Python call per surviving
node, so put cheap column plugins before a scalar one.
"""

from abc import abstractmethod
from collections.abc import Iterable

import numpy as np

from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import (
    FilterPlugin,
    PreFilterExtensions,
    ScorePlugin,
    Scores,
)
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Mask, Rejection, Rows, Verdict


class ScalarFilter(FilterPlugin):
    """A filter that answers for one node; called for nodes nobody has rejected yet.

    *state* is what :class:`ScalarPreFilterExtensions` have changed for that node, if they have.
    """

    @abstractmethod
    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        """Return None if *pod* may run on the node, else why not."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        statuses = (
            (row, self.filter_node(state.at(row), pod, NodeInfo(nodes, row)))
            for row in np.flatnonzero(state.feasible).tolist()
        )
        return _verdict(statuses, nodes)


class ScalarPreFilterExtensions(PreFilterExtensions):
    """Follows one pod on one node at a time, in the order in which they come and go.

    Each node is an independent hypothesis and has *state* to itself: a copy of what PreFilter left,
    made of values that offer ``clone()``. A filter that is no :class:`ScalarFilter` finds it with
    ``state.at(row)``.
    """

    @abstractmethod
    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status | None:
        """Count *added*, which was added to the node; return an error if that cannot be done."""

    @abstractmethod
    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status | None:
        """Count *removed*, which was removed from the node, or return an error."""

    def add_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> Verdict | None:
        return _verdict(
            (
                (row, self.add_pod(state.own(row), pod, added, NodeInfo(nodes, row)))
                for row, added in zip(rows.tolist(), pods, strict=True)
            ),
            nodes,
        )

    def remove_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> Verdict | None:
        return _verdict(
            (
                (row, self.remove_pod(state.own(row), pod, removed, NodeInfo(nodes, row)))
                for row, removed in zip(rows.tolist(), pods, strict=True)
            ),
            nodes,
        )


class ScalarScore(ScorePlugin):
    """A score for one node; called for nodes that passed all filters."""

    @abstractmethod
    def score_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> int | Status:
        """Return a score, within 0..100 unless ``normalize`` brings it there, or an error."""

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores | Status:
        scores = np.zeros(nodes.size, np.int64)
        for row in np.flatnonzero(state.feasible).tolist():
            score = self.score_node(state, pod, NodeInfo(nodes, row))
            if isinstance(score, Status):
                return score
            scores[row] = score
        return scores


def _verdict(statuses: Iterable[tuple[int, Status | None]], nodes: NodeTable) -> Verdict:
    """Put together what was said of single rows."""
    masks: dict[tuple[str, Code], Mask] = {}
    for row, status in statuses:
        if status is None:
            continue
        for reason in status.reasons or ("",):
            masks.setdefault((reason, status.code), nodes.no_rows())[row] = True
    return Verdict(tuple(Rejection(*key, where) for key, where in masks.items()))
