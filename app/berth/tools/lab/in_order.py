"""Runs in which each pod is tried once in its turn; who has a node keeps it."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.simulated_cluster import SimulatedCluster, SimulationOptions
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.profile.build import Registry
from berth.tools.lab.curves import Curves
from berth.tools.lab.measures import Measures
from berth.tools.lab.meters import Meters
from berth.tools.lab.setup import lab_plugins, main_reason, put_all
from berth.tools.lab.workload import Arrival, Workload


async def run_in_order(
    config: KubeSchedulerConfiguration,
    registry: Registry,
    workload: Workload,
    arrivals: Iterable[Arrival],
    *,
    seed: int,
    select: Any,
    meters: Meters,
    progress: Callable[[float], None],
) -> dict[str, Any]:
    """Return what was measured after each pod; nobody is preempted, and nobody waits."""
    cluster = SimulatedCluster(
        config,
        registry,
        SimulationOptions(
            preempts=False, gates=False, select=select, sort_key=_first_come_first_served
        ),
    )
    cluster.rng.seed(seed)
    put_all(cluster, workload)
    nodes = cluster.cache.table
    measures = Measures(nodes, workload.pods, lab_plugins(cluster), meters)
    capacity = nodes.resource_rows(workload.resource)
    whole = int(capacity[0].sum()) if capacity else 0
    curves, reasons, arrived, last = Curves(), Counter[str](), 0, -1
    arrivals = list(arrivals)
    for number, arrival in enumerate(arrivals, start=1):
        arrived += _amount(PodInfo(arrival.pod), workload.resource)
        cluster.put(arrival.pod)
        for record in await cluster.schedule_next() or ():
            if not record.node:
                reasons[main_reason(record)] += 1
                cluster.put_aside(arrival.pod)
        place = 100 * arrived / max(whole, 1)
        curves.add(place, measures.now())
        if round(place) != last:
            last = round(place)
            curves.add(place, measures.seldom())
            progress(number / len(arrivals))
    means = curves.means()
    return {
        "axis": f"{workload.resource} requested so far, % of capacity",
        "curves": means,
        "pods": len(arrivals),
        "unplaced": reasons.total(),
        "unplaced_by_reason": dict(reasons.most_common()),
        "preempted": 0,
        "waited": [],
        "totals": {
            **{name: curve[max(curve)] for name, curve in means.items()},
            "unplaced pods": reasons.total(),
        },
    }


def _amount(pod: PodInfo, resource: str) -> int:
    requested = pod.template.requested
    native = {"cpu": requested.milli_cpu, "memory": requested.memory}
    return native.get(resource, requested.scalars.get(resource, 0))


def _first_come_first_served(_queued: QueuedPodInfo) -> int:
    return 0
