"""One run: a policy schedules a workload, from one seed."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.profile.build import Registry
from berth.scheduler.schedule_pod import Select
from berth.tools.lab.chance import Chance
from berth.tools.lab.curves import RunResult
from berth.tools.lab.in_order import run_in_order
from berth.tools.lab.in_time import run_in_time
from berth.tools.lab.workload import Workload


@dataclass(frozen=True, slots=True)
class Policy:
    """A scheduler configuration under a name."""

    name: str
    config: KubeSchedulerConfiguration
    registry: Registry


def run(
    policy: Policy, workload: Workload, chance: Chance, *, seed: int, in_node_order: bool
) -> RunResult:
    """Run *workload*. Of several best nodes one is drawn or, *in_node_order*, the first is taken.

    That order is drawn from *chance*, as are pods.
    """
    began = time.process_time()
    arrivals = workload.arrivals(chance)
    chance.begin_nodes()
    select = None
    if in_node_order:
        names = (node.name for node in workload.nodes)
        order = chance.permutation(len(workload.nodes))
        select = _FirstInOrder(dict(zip(names, order, strict=True))).of
    kind = run_in_time if workload.is_timed else run_in_order
    result = asyncio.run(
        kind(policy.config, policy.registry, workload, arrivals, seed=seed, select=select)
    )
    return RunResult(
        policy=policy.name,
        seed=seed,
        cpu_seconds=round(time.process_time() - began, 2),
        **result,
    )


class _FirstInOrder:
    """Takes the node that comes first; the order goes by name."""

    def __init__(self, places: Mapping[str, int]) -> None:
        self._places = places

    def of(self, nodes: NodeTable) -> Select:
        def select(rows: Sequence[int]) -> int:
            places = nodes.kept(_FirstInOrder, lambda: self._by_row(nodes))
            return int(rows[int(places[np.asarray(rows)].argmin())])

        return select

    def _by_row(self, nodes: NodeTable) -> Any:
        last = len(self._places)
        names = (node.name if node else "" for node in nodes.nodes)
        return np.array([self._places.get(name, last) for name in names])
