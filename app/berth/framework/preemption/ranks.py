"""Who is on a node, the most important pod first (spec §6.4)."""

from collections.abc import Sequence

import numpy as np

from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.preemption.importance import importance
from berth.framework.verdict import Ints

NOBODY = np.iinfo(np.int64).max
"""The lowest priority on a node without pods."""


class Ranks:
    """The pods on each row of one table by importance, kept from attempt to attempt.

    A row is looked at again when its generation moved: where nothing changes, neither a cluster
    full of pods that nobody may evict nor one full of victims costs much.
    """

    def __init__(self) -> None:
        self._nodes: NodeTable | None = None
        self._lowest: Ints = np.empty(0, np.int64)
        self._seen: Ints = np.empty(0, np.int64)
        self._ranked: dict[int, Sequence[PodInfo]] = {}

    def lowest_priorities(self, nodes: NodeTable) -> Ints:
        """Return the lowest priority on each row, :data:`NOBODY` where there are no pods."""
        if nodes is not self._nodes:
            self._nodes = nodes
            self._seen = np.empty(0, np.int64)
            self._ranked.clear()
        if nodes.size != len(self._seen):
            grown = np.full(nodes.size, -1, np.int64)
            grown[: len(self._seen)] = self._seen
            self._seen = grown
            self._lowest = np.resize(self._lowest, nodes.size)
        for row in np.flatnonzero(nodes.generation != self._seen).tolist():
            pods = nodes.pods[row].values()
            self._lowest[row] = min((pod.priority for pod in pods), default=NOBODY)
            self._ranked.pop(row, None)
        self._seen = nodes.generation.copy()
        return self._lowest

    def below(self, priority: int, nodes: NodeTable, row: int) -> Sequence[PodInfo]:
        """Return the pods on *row* of lower priority, the most important first.

        :meth:`lowest_priorities` must have been asked about the table as it is now.
        """
        ranked = self._ranked.get(row)
        if ranked is None:
            ranked = self._ranked[row] = sorted(nodes.pods[row].values(), key=importance)
        if not ranked or ranked[0].priority < priority:
            return ranked
        return [pod for pod in ranked if pod.priority < priority]
