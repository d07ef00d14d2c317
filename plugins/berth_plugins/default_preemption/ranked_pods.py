"""Pods on a node, the most important first (spec §6.4)."""

from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_batch import PodBatch, Templates
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import ranges
from berth.scheduler.framework.preemption.importance import importance
from berth.scheduler.framework.verdict import Ints, Rows

NOBODY = np.iinfo(np.int64).max
"""The lowest priority on a node without pods."""

MOST_GARBAGE: Final = 4_096


class Ranked(NamedTuple):
    """Pods of some nodes, node by node, the most important of each first."""

    pods: PodBatch
    node_of: Rows
    """By pod, which of the nodes it is on, counted from 0."""
    priorities: Ints
    starts: NDArray[np.float64]
    """In unix seconds; inf: it has not started yet."""


class RankedPods:
    """The pods on each row of one table, kept from attempt to attempt as columns.

    A row is looked at again when its generation has moved: where nothing changes, neither a cluster
    full of pods that nobody may evict nor one full of victims costs much. The pods of a row are
    ranked when they are asked for, and written behind all others.
    """

    def __init__(self, *, most_garbage: int = MOST_GARBAGE) -> None:
        """So many pods, or as many as are of use, may be kept for nothing."""
        self._most_garbage = most_garbage
        self._nodes: NodeTable | None = None
        self._seen = self._lowest = np.empty(0, np.int64)
        self._first = self._count = np.empty(0, np.intp)
        self._forget_pods()

    def _forget_pods(self) -> None:
        self._pods: list[PodInfo] = []
        self._templates = Templates()
        self._template_of = np.empty(0, np.intp)
        self._priorities = np.empty(0, np.int64)
        self._starts = np.empty(0, np.float64)
        self._first = np.full(len(self._seen), -1, np.intp)
        """By row: where its pods begin; -1: they have not been ranked yet."""
        self._count = np.zeros(len(self._seen), np.intp)

    def lowest_priorities(self, nodes: NodeTable) -> Ints:
        """Return the lowest priority on each row, :data:`NOBODY` where there are no pods."""
        if nodes is not self._nodes:
            self._nodes = nodes
            self._seen = self._lowest = np.empty(0, np.int64)
            self._forget_pods()
        new = nodes.size - len(self._seen)
        if new:
            self._seen = np.concatenate([self._seen, np.full(new, -1, np.int64)])
            self._lowest = np.concatenate([self._lowest, np.zeros(new, np.int64)])
            self._first = np.concatenate([self._first, np.full(new, -1, np.intp)])
            self._count = np.concatenate([self._count, np.zeros(new, np.intp)])
        changed = (nodes.generation != self._seen).nonzero()[0]
        for row in changed.tolist():
            pods = nodes.pods[row].values()
            self._lowest[row] = min((pod.priority for pod in pods), default=NOBODY)
        self._first[changed], self._count[changed] = -1, 0
        self._seen[changed] = nodes.generation[changed]
        return self._lowest

    def below(self, priority: int, nodes: NodeTable, rows: Rows) -> Ranked:
        """Return the pods of lower priority on *rows*.

        :meth:`lowest_priorities` must have been asked about the table as it is now.
        """
        self._rank(nodes, rows)
        counts = self._count[rows]
        at = ranges(self._first[rows], counts)
        node_of = np.repeat(np.arange(len(rows)), counts)
        is_lower = self._priorities[at] < priority
        at, node_of = at[is_lower], node_of[is_lower]
        pods = PodBatch.some_of(
            self._pods, at, templates=self._templates, template_of=self._template_of[at]
        )
        return Ranked(pods, node_of, self._priorities[at], self._starts[at])

    def _rank(self, nodes: NodeTable, rows: Rows) -> None:
        """Rank the pods of those of *rows* that are new or have changed."""
        in_use = int(self._count.sum())
        if len(self._pods) - in_use > max(self._most_garbage, in_use):
            self._forget_pods()
        missing = rows[self._first[rows] < 0].tolist()
        if not missing:
            return
        by_importance: list[tuple[tuple[int, float], PodInfo]] = []
        for row in missing:
            ranked = [(importance(pod), pod) for pod in nodes.pods[row].values()]
            ranked.sort(key=itemgetter(0))
            self._first[row] = len(self._pods) + len(by_importance)
            self._count[row] = len(ranked)
            by_importance += ranked
        pods = [pod for _, pod in by_importance]
        keys = np.array([key for key, _ in by_importance], np.float64).reshape(-1, 2)
        self._pods.extend(pods)
        self._template_of = np.concatenate([self._template_of, self._templates.numbers(pods)])
        self._priorities = np.concatenate([self._priorities, -keys[:, 0].astype(np.int64)])
        self._starts = np.concatenate([self._starts, keys[:, 1]])
