"""The page of a scheduler in process that has as many nodes as one likes, and nothing to do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from berth.scheduler.framework.pod_info import PodInfo
from berth.service.ui.local_page import local_page
from tests.builders import node, pod, taint
from tests.harness import Harness
from tests.service.server.scheduler.debug.world import application

ZONES: Final = 6
CPUS: Final = (8, 16, 32)


def large_harness(nodes: int) -> Harness:
    """Return a scheduler with *nodes* nodes in ZONES zones, with up to three pods on each.

    Every ninth node is tainted, every hundredth not ready. One pod is too large for all of them.
    """
    harness = Harness()
    for number in range(nodes):
        name = f"node-{number}"
        taints = [taint("dedicated", "batch")] if number % 9 == 0 else []
        if number % 100 == 50:
            taints.append(taint("node.kubernetes.io/not-ready", effect="NoExecute"))
        harness.cache.add_node(
            node(
                name,
                cpu=CPUS[number * 7919 % len(CPUS)],
                memory="64Gi",
                zone=f"zone-{number * 104_729 % ZONES}",
                taints=taints,
            )
        )
        for index in range(number * 31 % 4):
            running = pod(f"p-{number}-{index}", cpu=2, memory=f"{4 + index}Gi", node=name)
            harness.cache.add_pod(PodInfo(running))
    harness.put(pod("too-large", cpu=64))
    return harness


@asynccontextmanager
async def page_with(nodes: int) -> AsyncIterator[str]:
    """Serve the page of such a scheduler; yield the link that opens it."""
    said: list[str] = []
    endpoints = application(large_harness(nodes))
    async with local_page(endpoints, port=0, program="the test", say=said.append):
        yield said[0].removeprefix("page at ")
