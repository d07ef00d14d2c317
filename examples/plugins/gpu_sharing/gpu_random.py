"""GpuRandom: any node that fits, and any of its GPUs, as a policy to compare others with."""

from collections.abc import Sequence

import numpy as np

from berth.plugin import CycleState, Ints, NodeTable, PodInfo, ScorePlugin, Scores

from ._gpu_sharing import WHOLE, Demand, GpuSharing, tightest


class GpuRandom(GpuSharing, ScorePlugin):
    NAME = "GpuRandom"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        scores = np.zeros(nodes.size, np.int64)
        scores[self.handle.rng.choice(np.flatnonzero(state.feasible).tolist())] = 100
        return scores

    def choose(self, state: CycleState, pod: PodInfo, row: int, left: Ints) -> Sequence[int]:
        demand = Demand.of(pod)
        if demand.milli == WHOLE:
            return tightest(demand, left)
        return [self.handle.rng.choice(np.flatnonzero(left >= demand.milli).tolist())]
