"""The cost of a pod group that preempts as one, on a cluster full of lesser pods."""

import asyncio
import gc
from collections.abc import AsyncIterator, Mapping
from typing import Final

from berth.runtime.clock import Clock
from berth.scheduler.profile.build import Registry
from berth.tools.bench.groups import Cluster
from berth.tools.bench.preemption import HIGH, VICTIMS_PER_NODE, full_nodes
from berth.tools.bench.results import Figure, figure, used_figure
from berth.tools.bench.usage import Meter, Usage, metered
from berth.tools.bench.workloads import Spec, requests

ASKED: Final[Mapping[str, tuple[Spec, ...]]] = {
    "alike": (requests(1_000, 256),),
    "of two kinds": (requests(1_000, 256), requests(1_500, 256)),
    "too large": (requests(1_000_000, 256),),
}
"""What the pods of a gang ask for: equally many each."""


async def measure(
    registry: Registry, *, clock: Clock, num_nodes: int = 5_000, size: int = 256
) -> AsyncIterator[Figure]:
    """Measure one attempt for a gang of *size* pods by *clock*, best one that counts CPU time.

    An attempt is all between the queue and the order to evict the victims. The longest block is
    the longest time in it during which no other task had its turn.
    """
    for name, specs in ASKED.items():
        cluster = Cluster(registry, "WorkloadAwarePreemption", num_nodes=0)
        for node, running in full_nodes(num_nodes):
            cluster.api.put(node)
            for pod in running:
                cluster.api.put(pod)
        cluster.put_gang("gang", cluster.gang("gang", size, *specs), priority=HIGH)
        with metered(clock) as meter:
            took, longest = await _attempt(cluster, meter)
        pending = cluster.core.preemptions.take()
        evicted = len(pending.victims) if pending else 0
        yield used_figure(
            f"gang of {size} preempts, pods {name}",
            took,
            "ms",
            outcome=f"{evicted}/{num_nodes * VICTIMS_PER_NODE} evicted",
        )
        yield figure(f"gang of {size} preempts, pods {name}, longest block", longest * 1e3, "ms")


async def _attempt(cluster: Cluster, meter: Meter) -> tuple[Usage, float]:
    """Make one attempt; return what it used, and the seconds of the longest turn in it."""
    turns = []
    gc.collect()
    gc.disable()
    attempt = asyncio.create_task(cluster.core.schedule_next(), name="attempt")
    before = last = meter.used()
    while not attempt.done():
        await asyncio.sleep(0)
        now = meter.used()
        turns.append(now.cpu - last.cpu)
        last = now
    gc.enable()
    await attempt
    return last.since(before), max(turns)
