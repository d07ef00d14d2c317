"""GpuDotProduct: pods go where what they request and what is left have the smallest dot product."""

import numpy as np

from berth.plugin import CycleState, NodeTable, PodInfo, ScorePlugin, Scores

from ._gpu_sharing import Demand, GpuSharing


class GpuDotProduct(GpuSharing, ScorePlugin):
    """All GPUs of a node count as one dimension, CPU as the other."""

    NAME = "GpuDotProduct"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        max_cpu, max_gpu = self.args.max_cpu_milli, self.args.max_gpu_milli
        cpu = self.cpu_left(nodes) / max_cpu * (pod.template.requested.milli_cpu / max_cpu)
        gpu = self.gpus(nodes).left.sum(axis=1) / max_gpu * (Demand.of(pod).total / max_gpu)
        scores: Scores = (100 * (1 - (cpu + gpu) / 2)).astype(np.int64)
        return scores
