"""GpuBestFit: pods go where least would be left."""

import numpy as np

from berth.plugin import CycleState, NodeTable, PodInfo, ScorePlugin, Scores

from ._gpu_sharing import Demand, GpuSharing


class GpuBestFit(GpuSharing, ScorePlugin):
    """All GPUs of a node count as one dimension, CPU as the other, with equal weights."""

    NAME = "GpuBestFit"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        cpu_left = self.cpu_left(nodes) - pod.template.requested.milli_cpu
        gpu_left = self.gpus(nodes).left.sum(axis=1) - Demand.of(pod).total
        cpu, gpu = cpu_left / self.args.max_cpu_milli, gpu_left / self.args.max_gpu_milli
        scores: Scores = ((1 - (cpu * 0.5 + gpu * 0.5)) * 100).astype(np.int64)
        return np.clip(scores, 0, 100)
