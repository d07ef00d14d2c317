"""GpuClustering: pods go to nodes whose pods want GPUs in the same way."""

import numpy as np

from berth.plugin import CycleState, NodeTable, PodInfo, ScorePlugin, Scores, everywhere

from ._gpu_sharing import Demand, GpuSharing

ONLY, AMONG, NO_OTHERS = 75, 50, 25
"""For nodes that have only pods of the same class, these and others, or no pods with GPUs."""


class GpuClustering(GpuSharing, ScorePlugin):
    """Classes are: to share a GPU, and to have so many whole ones. Fuller nodes are better."""

    NAME = "GpuClustering"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        demand, gpus = Demand.of(pod), self.gpus(nodes)
        if not demand.gpus:
            return everywhere(0, nodes.size)
        own, max_gpu = 1 << demand.class_, self.args.max_gpu_milli
        base = np.select(
            [gpus.classes == own, gpus.classes & own != 0, gpus.classes == 0],
            [ONLY, AMONG, NO_OTHERS],
        )
        scores: Scores = NO_OTHERS * (max_gpu - gpus.left.sum(axis=1)) // max_gpu + base
        return scores
