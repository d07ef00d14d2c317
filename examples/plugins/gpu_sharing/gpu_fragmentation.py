"""GpuFragmentation: pods go where fragmentation grows least, or falls most ("FGD")."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from berth.plugin import CycleState, Handle, Ints, NodeTable, PodInfo, ScorePlugin, Scores

from ._gpu_sharing import WHOLE, Demand, GpuSharing, GpuSharingArgs, tightest


class GpuFragmentation(GpuSharing, ScorePlugin):
    """A pod that shares a GPU gets the one that gave its node the score."""

    NAME = "GpuFragmentation"

    def __init__(self, args: GpuSharingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._known: dict[tuple[int, Demand], tuple[Ints, int]] = {}
        """By what pods request: the scores, shape (rows, GPUs), and when they were computed."""
        self._known_by = self._fragmentation

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        if self._known_by is not self.fragmentation:
            self._known_by = self._fragmentation
            self._known.clear()
        kind, left = (pod.template.requested.milli_cpu, Demand.of(pod)), self.gpus(nodes).left
        known, generation = self._known.get(kind, (left, -1))
        rows: Any = nodes.rows_changed_since(generation)
        if generation < 0 or known.shape != left.shape:
            known, rows = np.zeros(left.shape, np.int64), range(nodes.size)
        if len(rows):
            known[rows] = self._scores(nodes, rows, self.cpu_left(nodes)[rows], left[rows], *kind)
        self._known[kind] = known, nodes.last_generation
        scores: Scores = known.max(axis=1, initial=0)
        return scores

    def choose(self, state: CycleState, pod: PodInfo, row: int, left: Ints) -> Sequence[int]:
        cpu, demand, nodes = pod.template.requested.milli_cpu, Demand.of(pod), self.handle.nodes
        if demand.milli == WHOLE:
            return tightest(demand, left)
        before = self.cpu_left(nodes)[[row]] + (cpu if pod.uid in nodes.pods[row] else 0)
        return [int(self._scores(nodes, [row], before, left[np.newaxis], cpu, demand).argmax())]

    def _scores(
        self, nodes: NodeTable, rows: Any, cpu_left: Ints, left: Ints, cpu: int, demand: Demand
    ) -> Ints:
        """Return the score of each GPU, -1 for those too full; without sharing, of the node."""
        idle, before = left == WHOLE, left[:, np.newaxis]
        after = before - demand.milli * np.eye(left.shape[1], dtype=np.int64)
        if demand.milli in (0, WHOLE):
            taken = idle & (np.cumsum(idle, axis=1) <= demand.gpus)
            after = np.where(taken, 0, left)[:, np.newaxis]
        tables = np.concatenate((before, after), axis=1)
        cpu_of = np.tile(cpu_left[:, np.newaxis] - cpu, tables.shape[1])
        cpu_of[:, 0] = cpu_left
        may_use = np.repeat(self.fragmentation.may_use(nodes)[rows], tables.shape[1], axis=0)
        flat = tables.reshape(cpu_of.size, -1)
        fragmented = self.fragmentation.measure(may_use, cpu_of.ravel(), flat).reshape(cpu_of.shape)
        scores = 100 / (1 + np.exp((fragmented[:, 1:] - fragmented[:, :1]) / 1000))
        return np.where(left >= demand.milli, scores.astype(np.int64), -1)
