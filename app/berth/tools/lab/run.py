"""One run: a policy schedules a workload, from one seed."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from berth.tools.lab.meters import Meters
from berth.tools.lab.workload import Workload


@dataclass(frozen=True, slots=True)
class Policy:
    """A scheduler configuration under a name."""

    name: str
    config: KubeSchedulerConfiguration
    registry: Registry


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for all runs that are compared."""

    in_node_order: bool = False
    """Of several best nodes the first is taken, in an order that is drawn; if not, one is drawn."""
    meters: Meters = field(default_factory=Meters)
    waiting_by: str = ""
    """The label of pods by which waiting is told apart; empty: their priority."""


def run(
    policy: Policy,
    workload: Workload,
    chance: Chance,
    terms: Terms,
    *,
    seed: int,
    progress: Callable[[float], None] = lambda share: None,
) -> RunResult:
    """Run *workload*, and call *progress* now and then with how much of it is done, from 0 to 1.

    Pods and the order of nodes are drawn from *chance*.
    """
    began = time.process_time()
    arrivals = workload.arrivals(chance)
    chance.begin_nodes()
    select = None
    if terms.in_node_order:
        names = (node.name for node in workload.nodes)
        order = chance.permutation(len(workload.nodes))
        select = _FirstInOrder(dict(zip(names, order, strict=True))).of
    common = (policy.config, policy.registry, workload, arrivals)
    how: dict[str, Any] = {
        "seed": seed, "select": select, "meters": terms.meters, "progress": progress,
    }  # fmt: skip
    if workload.is_timed:
        result = asyncio.run(run_in_time(*common, **how, waiting_by=terms.waiting_by))
    else:
        result = asyncio.run(run_in_order(*common, **how))
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
