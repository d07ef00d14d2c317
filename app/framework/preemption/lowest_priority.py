"""On which nodes is there anybody to evict at all?"""

import numpy as np

from app.framework.node_table import NodeTable
from app.framework.verdict import Ints

NOBODY = np.iinfo(np.int64).max
"""The lowest priority on a node without pods."""


class LowestPriorities:
    """The lowest priority of the pods on each row of one table, kept from question to question.

    Rows are looked at again when their generation moved, so that a cluster full of pods that
    nobody may evict costs one comparison.
    """

    def __init__(self) -> None:
        self._nodes: NodeTable | None = None
        self._lowest: Ints = np.empty(0, np.int64)
        self._seen: Ints = np.empty(0, np.int64)

    def of(self, nodes: NodeTable) -> Ints:
        """Return the lowest priority per row, :data:`NOBODY` where there are no pods."""
        if nodes is not self._nodes or nodes.size != len(self._seen):
            self._nodes = nodes
            self._lowest = np.full(nodes.size, NOBODY)
            self._seen = np.full(nodes.size, -1, np.int64)
        for row in np.flatnonzero(nodes.generation != self._seen).tolist():
            pods = nodes.pods[row].values()
            self._lowest[row] = min((pod.priority for pod in pods), default=NOBODY)
        self._seen = nodes.generation.copy()
        return self._lowest
