"""How long a large gang holds the event loop: a number of docs/groups.md.

Run it as ``python -m tests.scheduler.pod_group.longest_turn``.
"""

import asyncio
import time
from itertools import count, pairwise
from random import Random
from typing import Final

from msgspec.structs import replace

from berth.kube.objects.pod import Pod
from berth.runtime.terminal import say
from tests.harness import Harness
from tests.scheduler.pod_group.building import group
from tests.scheduler.pod_group.topologies import GATES, planted

RACKS: Final = 10
NODES: Final = (16, 64)
"""Of each rack."""
PODS: Final = 512


async def longest_turn(nodes: int, *, unlike: bool) -> tuple[float, float]:
    """Return the seconds of CPU of the longest turn of the event loop, and of all."""
    topology = planted(Random(3), racks=RACKS, nodes=nodes, pods=PODS, slack=1.0)
    gates = dict.fromkeys(GATES, True)
    harness = Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "featureGates": gates,
        }
    )
    harness.put(*topology.objects(), group(min_count=PODS, topology="rack"))
    harness.put(*(_unlike(pod, i) if unlike else pod for i, pod in enumerate(topology.members())))
    ends: list[float] = []

    async def note() -> None:
        for _ in count():
            ends.append(time.process_time())
            await asyncio.sleep(0)

    noting = asyncio.create_task(note())
    await asyncio.sleep(0)
    await harness.until_idle()
    noting.cancel()
    turns = (end - begin for begin, end in pairwise(ends))
    return max(turns), ends[-1] - ends[0]


def _unlike(pod: Pod, number: int) -> Pod:
    """Return the pod with a label of its own, so that no answer about another one holds for it."""
    labels = {**pod.metadata.labels, "number": str(number)}
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


async def main() -> None:
    for unlike in (False, True):
        for nodes in NODES:
            longest, total = await longest_turn(nodes, unlike=unlike)
            say(
                f"{PODS} {'unlike' if unlike else 'alike'} pods, {RACKS} racks of {nodes} nodes:"
                f" longest turn {longest * 1e3:.0f} ms of {total * 1e3:.0f} ms"
            )


if __name__ == "__main__":
    asyncio.run(main())
