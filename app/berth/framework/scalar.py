"""The simple form of Filter and Score: judge one node at a time.

Meant for plugin authors; in-tree plugins use columns. The cost is one Python call per surviving
node, so put cheap column plugins before a scalar one.
"""

from abc import abstractmethod

import numpy as np

from berth.framework.cycle_state import CycleState
from berth.framework.interface import FilterPlugin, ScorePlugin, Scores
from berth.framework.node_info import NodeInfo
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.status import Code, Status
from berth.framework.verdict import Mask, Rejection, Verdict


class ScalarFilter(FilterPlugin):
    """A filter that answers for one node; called for nodes nobody has rejected yet."""

    @abstractmethod
    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        """Return None if *pod* may run on the node, else why not."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        masks: dict[tuple[str, Code], Mask] = {}
        for row in np.flatnonzero(state.feasible).tolist():
            status = self.filter_node(state, pod, NodeInfo(nodes, row))
            if status is None:
                continue
            for reason in status.reasons or ("",):
                masks.setdefault((reason, status.code), nodes.no_rows())[row] = True
        return Verdict(tuple(Rejection(*key, where) for key, where in masks.items()))


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
