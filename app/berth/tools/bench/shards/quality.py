"""Where several replicas put pods, compared with one scheduler."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from functools import partial
from statistics import mean, pstdev
from typing import Final

from berth.kube.objects.pod import Pod
from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop
from berth.tools.bench.results import Figure, figure
from berth.tools.bench.shards.world import NODE_PODS, START, ZONES, World, pod_of

FILLS: Final = (50, 80, 95)
"""Percent of the room for pods."""
MIX: Final = ("plain", "plain", "plain", "spread", "apart")
APP_PODS: Final = 12
PATIENCE: Final = 60.0


async def measure(nodes: int, replicas: Sequence[int]) -> AsyncIterator[Figure]:
    """Yield for each fill and number of replicas what is pending, and how even the rest is."""
    for fill in FILLS:
        for number in replicas:
            pods = await asyncio.to_thread(partial(_placed, nodes, fill, number))
            placed = [pod for pod in pods if pod.spec.node_name]
            per_node = Counter(pod.spec.node_name for pod in placed)
            apps: defaultdict[str, Counter[int]] = defaultdict(Counter)
            for pod in placed:
                apps[pod.metadata.labels["app"]][int(pod.spec.node_name[5:]) % ZONES] += 1
            skews = [max(c.values()) - min(c[zone] for zone in range(ZONES)) for c in apps.values()]
            yield figure(
                "pods left pending",
                len(pods) - len(placed),
                "pods",
                outcome=f"{len(per_node)} nodes used, {pstdev(per_node.values()):.2f} pods standard"
                f" deviation per node, {mean(skews):.2f} mean skew of zones",
                fill=fill,
                replicas=number,
            )


def _placed(nodes: int, fill: int, replicas: int) -> list[Pod]:
    """Return all pods once those that fit have nodes."""
    clock = VirtualClock(START)

    async def run() -> list[Pod]:
        async with World(clock, slots=32) as world:
            await world.create_nodes(nodes)
            for _ in range(replicas):
                world.start_replica()
            await clock.sleep(30.0)
            for count in range(nodes * NODE_PODS * fill // 100):
                app = count // APP_PODS
                kind = MIX[app % len(MIX)]
                await world.create_pod(pod_of(kind, f"{kind}-{app}", f"{kind}-{count}"))
                await clock.sleep(0.005)
            await world.until_all_have_nodes(PATIENCE)
            return await world.pods()

    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(run())
