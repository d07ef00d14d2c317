"""GpuPacking: pods go to GPUs in use, then to idle ones beside these, then to idle nodes."""

import numpy as np

from berth.plugin import CycleState, NodeTable, PodInfo, ScorePlugin, Scores, everywhere

from ._gpu_sharing import WHOLE, Demand, GpuSharing


class GpuPacking(GpuSharing, ScorePlugin):
    """Nodes with GPUs in use score above 50 if the pod needs no idle GPU there, else from 33 on."""

    NAME = "GpuPacking"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        demand, gpus = Demand.of(pod), self.gpus(nodes)
        if not demand.gpus:
            return everywhere(0, nodes.size)
        idle = np.count_nonzero(gpus.left == WHOLE, axis=1)
        # The tightest GPUs with enough left come first; those without, last.
        order = np.where(gpus.left >= demand.milli, gpus.left, 2 * WHOLE)
        chosen = np.sort(order, axis=1)[:, : demand.gpus]
        num_idle = np.count_nonzero(chosen == WHOLE, axis=1)
        left = (chosen * 100 // WHOLE).sum(axis=1)
        scores: Scores = np.select(
            [idle == gpus.number, num_idle > 0],
            [np.maximum(33 - idle, idle), np.maximum(50 - num_idle, 33)],
            np.maximum(100 - left // 10, 50),
        )
        return scores
