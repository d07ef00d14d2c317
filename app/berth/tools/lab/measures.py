"""Measures of a cluster in every run, beside those of plugins."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from berth.insight.whatif.typical_pods import TypicalPods, fragmented
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.lab_plugin import LabPlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.tools.lab.meters import COST_PER_HOUR, POWER, Meters

NODES_USED: Final = "nodes used"
WAITING: Final = "waiting pods"
PREEMPTED: Final = "preempted pods"
UNITS: Final = {NODES_USED: "", WAITING: "", PREEMPTED: "", POWER: ", W", COST_PER_HOUR: ""}
"""What follows the names of measures that are no percentages."""
BALANCED: Final = ("cpu", "memory")


class Measures:
    """Measures one cluster; resources in percent.

    Allocation is the share of a resource that pods have requested. Imbalance is the standard
    deviation of that share over nodes. Fragmentation is the share of a resource that is free on
    nodes where a pod, drawn from the typical ones, does not fit.
    """

    def __init__(
        self,
        nodes: NodeTable,
        pods: Iterable[Pod],
        plugins: Iterable[LabPlugin],
        meters: Meters,
    ) -> None:
        """*pods* are those that are typical, more or less."""
        infos = [PodInfo(pod) for pod in pods]
        self._nodes, self._plugins, self._meters = nodes, [*plugins], meters
        for plugin in self._plugins:
            plugin.learn(infos)
        self._typical = TypicalPods(infos)

    def now(self) -> dict[str, float]:
        """Measure what is cheap to measure."""
        measured: dict[str, float] = {}
        for name, (allocatable, requested) in self._resources():
            measured[f"allocation of {name}"] = 100 * int(requested.sum()) / int(allocatable.sum())
        measured[NODES_USED] = int(np.count_nonzero(self._nodes.pod_count))
        measured |= self._meters.rates(self._nodes)
        for plugin in self._plugins:
            measured |= plugin.measure()
        return measured

    def seldom(self) -> dict[str, float]:
        """Measure what takes longer, and changes little from one pod to the next."""
        measured = {}
        resources = dict(self._resources())
        for name in BALANCED:
            if name in resources:
                allocatable, requested = resources[name]
                shares = requested[allocatable > 0] / allocatable[allocatable > 0]
                measured[f"imbalance of {name}"] = 100 * float(shares.std())
        unfit = self._typical.unfit(resources, self._nodes.size)
        for name, free in fragmented(resources, unfit).items():
            measured[f"fragmentation of {name}"] = 100 * free / int(resources[name][0].sum())
        return measured

    def _resources(self) -> Iterable[tuple[str, tuple["np.ndarray", "np.ndarray"]]]:
        """Yield the resources that nodes have, with what is allocatable and requested by row."""
        for name in self._nodes.resources:
            rows = self._nodes.resource_rows(name)
            if rows is not None and rows[0].any():
                yield name, rows
