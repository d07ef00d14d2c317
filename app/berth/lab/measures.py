"""What is measured of a cluster in every run, beside what plugins measure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from berth.framework.lab_plugin import LabPlugin
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.objects.pod import Pod

TYPICAL: Final = 0.95
"""Of all pods; the templates that make up so many are typical."""
BALANCED: Final = ("cpu", "memory")


class Measures:
    """Measures one cluster, in percent.

    Allocation is the share of a resource that pods have requested. Imbalance is the standard
    deviation of that share over nodes. Fragmentation is the share of a resource that is free on
    nodes where a pod, drawn from the typical ones, does not fit.
    """

    def __init__(self, nodes: NodeTable, pods: Iterable[Pod], plugins: Iterable[LabPlugin]) -> None:
        """*pods* are those that are typical, more or less."""
        infos = [PodInfo(pod) for pod in pods]
        self._nodes, self._plugins = nodes, [*plugins]
        for plugin in self._plugins:
            plugin.learn(infos)
        self._typical = _typical(infos)

    def now(self) -> dict[str, float]:
        """Measure what is cheap to measure."""
        measured = {}
        for name, (allocatable, requested) in self._resources():
            measured[f"allocation of {name}"] = 100 * int(requested.sum()) / int(allocatable.sum())
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
        unfit = self._unfit(resources)
        for name, (allocatable, requested) in resources.items():
            free = float(((allocatable - requested) * unfit).sum())
            measured[f"fragmentation of {name}"] = 100 * free / int(allocatable.sum())
        return measured

    def _resources(self) -> Iterable[tuple[str, tuple["np.ndarray", "np.ndarray"]]]:
        """Yield the resources that nodes have, with what is allocatable and requested by row."""
        for name in self._nodes.resources:
            found = self._nodes.resource_rows(name)
            if found is not None and found[0].any():
                yield name, found

    def _unfit(self, resources: Mapping[str, tuple["np.ndarray", "np.ndarray"]]) -> "np.ndarray":
        """Return how likely it is by row that a typical pod does not fit."""
        unfit = np.zeros(self._nodes.size)
        for probability, requests in self._typical:
            fits = np.ones(self._nodes.size, bool)
            for name, amount in requests.items():
                if name in resources:
                    allocatable, requested = resources[name]
                    fits &= allocatable - requested >= amount
                else:
                    fits[:] = False
            unfit += probability * ~fits
        return unfit


def _typical(pods: Sequence[PodInfo]) -> list[tuple[float, dict[str, int]]]:
    """Return what typical pods request, with the probability of each."""
    counts: Counter[tuple[tuple[str, int], ...]] = Counter()
    for pod in pods:
        amounts = pod.template.requested
        requests = {"cpu": amounts.milli_cpu, "memory": amounts.memory, **amounts.scalars}
        counts[tuple(sorted((name, amount) for name, amount in requests.items() if amount))] += 1
    taken: dict[tuple[tuple[str, int], ...], int] = {}
    for kind, count in counts.most_common():
        if sum(taken.values()) >= TYPICAL * len(pods):
            break
        taken[kind] = count
    return [(count / sum(taken.values()), dict(kind)) for kind, count in taken.items()]
