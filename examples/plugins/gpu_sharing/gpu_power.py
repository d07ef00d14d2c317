"""GpuPower: pods go where they add least to the power that nodes draw ("PWR").

After "Power- and Fragmentation-aware Online Scheduling for GPU Datacenters" (arXiv 2412.17484): a
GPU draws all of its power as soon as a pod has a part of it, and so does a CPU with a core of it.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from berth.plugin import (
    CPU,
    CycleState,
    Handle,
    Ints,
    LabPlugin,
    NodeTable,
    PluginArgs,
    PodInfo,
    ScorePlugin,
    Scores,
    default_normalize,
    everywhere,
)

from ._fragmentation import MODEL_LABEL
from ._gpu_sharing import WHOLE, Demand, GpuColumns


class Watts(PluginArgs):
    """What a GPU or a CPU draws."""

    idle: int = Field(ge=0)
    busy: int = Field(ge=0)


MODELS: Final = {
    "P100": Watts(idle=25, busy=250),
    "T4": Watts(idle=10, busy=70),
    "V100M16": Watts(idle=30, busy=300),
    "V100M32": Watts(idle=30, busy=300),
    "A10": Watts(idle=30, busy=150),
    "G2": Watts(idle=30, busy=150),  # not disclosed: taken for an A10
    "G3": Watts(idle=50, busy=400),  # not disclosed: taken for an A100
}


class GpuPowerArgs(PluginArgs):
    """The power that hardware draws: what its makers say, and guesses where the trace is silent."""

    gpus: Mapping[str, Watts] = MODELS
    """By model, the value of the label ``example.com/gpu-model``."""
    other_gpu: Watts = Watts(idle=30, busy=250)
    cpu: Watts = Watts(idle=15, busy=120)
    cpu_milli: int = Field(default=32_000, gt=0)
    """What one CPU package offers to pods: 16 cores of two threads, as a Xeon E5-2682 v4."""
    measures_only: bool = False
    """Whether all nodes get the same score: to tell the power of other policies in the lab."""


class _Hardware(NamedTuple):
    """What nodes have, by row."""

    packages: Ints
    idle: Ints
    """Watts of an idle GPU."""
    busy: Ints


class GpuPower(GpuColumns, ScorePlugin, LabPlugin):
    """Only scores: enable it beside a plugin that gives out GPUs, such as GpuFragmentation."""

    NAME = "GpuPower"
    ARGS = GpuPowerArgs

    def __init__(self, args: GpuPowerArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args: GpuPowerArgs = args

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        """Return by how many watts each node would draw more."""
        if self.args.measures_only:
            return everywhere(0, nodes.size)
        demand, left = Demand.of(pod), self.gpus(nodes).left
        hardware: _Hardware = nodes.kept((GpuPower, id(self)), lambda: self._hardware(nodes))
        more = self._busy_packages(nodes, pod.template.requested.milli_cpu)
        watts = (more - self._busy_packages(nodes, 0)) * (self.args.cpu.busy - self.args.cpu.idle)
        if demand.gpus:
            in_use = ((left < WHOLE) & (left >= demand.milli)).any(axis=1)
            woken = np.where(in_use, 0, demand.gpus)
            watts += woken * (hardware.busy - hardware.idle)
        scores: Scores = watts
        return scores

    def normalize(self, _state: CycleState, _pod: PodInfo, scores: Scores) -> Scores:
        return default_normalize(scores, reverse=True)

    def _busy_packages(self, nodes: NodeTable, milli_cpu: int) -> Ints:
        busy: Ints = -(-(nodes.requested[CPU] + milli_cpu) // self.args.cpu_milli)
        return busy

    def _hardware(self, nodes: NodeTable) -> _Hardware:
        models = [node.labels.get(MODEL_LABEL, "") if node else "" for node in nodes.nodes]
        watts = [self.args.gpus.get(model, self.args.other_gpu) for model in models]
        return _Hardware(
            -(-nodes.allocatable[CPU] // self.args.cpu_milli),
            np.array([of.idle for of in watts], np.int64),
            np.array([of.busy for of in watts], np.int64),
        )

    # The lab's.

    def measure(self) -> Mapping[str, float]:
        """Tell what all nodes draw."""
        nodes = self.handle.nodes
        gpus = self.gpus(nodes)
        hardware: Any = nodes.kept((GpuPower, id(self)), lambda: self._hardware(nodes))
        busy: NDArray[np.int64] = gpus.number - np.count_nonzero(gpus.left == WHOLE, axis=1)
        of_gpus = busy * hardware.busy + (gpus.number - busy) * hardware.idle
        packages = np.minimum(self._busy_packages(nodes, 0), hardware.packages)
        of_cpus = packages * self.args.cpu.busy
        of_cpus += (hardware.packages - packages) * self.args.cpu.idle
        total = int((of_gpus + of_cpus)[nodes.exists].sum())
        return {"power in kW": total / 1000}
