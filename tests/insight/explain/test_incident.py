"""What an operator asks in an incident: the first line of the answer, which goes into a channel."""

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from berth.kube.objects.pod import Pod
from berth.runtime.clock import rfc3339
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import FilterPlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import Verdict
from tests import device_builders as devices
from tests import volume_builders as volumes
from tests.builders import (
    claim_volume,
    node,
    node_affinity,
    pod,
    requirement,
    selector,
    spread,
    taint,
    term,
)
from tests.harness import Harness, with_plugins
from tests.insight.explain.asking import explain

ZONE = "topology.kubernetes.io/zone"
WAITED = 754.0
"""Seconds from the creation of the pod to the question."""


def in_zones(*zones: str, cpu: str = "4") -> list[object]:
    return [
        node(f"n{i}", cpu=cpu, labels={ZONE: zone, "kubernetes.io/hostname": f"n{i}"})
        for i, zone in enumerate(zones, 1)
    ]


async def ask(harness: Harness, waiting: Pod) -> str:
    """Have *waiting* come, be tried, and be asked about by somebody who has waited a while."""
    created = rfc3339(harness.clock.now())
    meta = msgspec.structs.replace(waiting.metadata, creation_timestamp=created)
    harness.put(msgspec.structs.replace(waiting, metadata=meta))
    await harness.until_idle()
    harness.clock.advance(WAITED)
    return explain(harness, waiting.key).summary


async def cpu() -> str:
    harness = Harness()
    harness.put(
        node("cp", taints=[taint("node-role.kubernetes.io/control-plane")]),
        node("n1", cpu=4),
        node("n2", cpu=4),
        node("n3", cpu=1),
        pod("api", ns="shop", cpu="3700m", node="n1"),
        pod("db", ns="shop", cpu="3680m", node="n2"),
    )
    return await ask(harness, pod("web", ns="shop", cpu="1500m"))


async def taints() -> str:
    harness = Harness()
    harness.put(
        node("n1", taints=[taint("dedicated", "batch")]),
        node("n2", taints=[taint("dedicated", "batch"), taint("spot")]),
        node("n3", taints=[taint("node.kubernetes.io/not-ready")]),
    )
    return await ask(harness, pod("web", ns="shop", cpu=1))


async def affinity() -> str:
    harness = Harness()
    harness.put(*in_zones("zone-a", "zone-b", "zone-b"))  # type: ignore[arg-type]
    wanted = node_affinity(required=[term(requirement(ZONE, "In", "zone-c"))])
    return await ask(harness, pod("web", ns="shop", cpu=1, affinity=wanted))


async def spreading() -> str:
    harness = Harness()
    web = {"app": "web"}
    harness.put(*in_zones("zone-a", "zone-a", "zone-b"))  # type: ignore[arg-type]
    harness.put(
        pod("web-1", ns="shop", labels=web, node="n1"),
        pod("web-2", ns="shop", labels=web, node="n2"),
        pod("web-3", ns="shop", labels=web, node="n3"),
        pod("db", ns="shop", cpu="3800m", node="n3"),
    )
    constraint = spread(ZONE, selector=selector(web))
    return await ask(harness, pod("web-4", ns="shop", labels=web, cpu="500m", spread=[constraint]))


async def volume_zone() -> str:
    harness = Harness()
    harness.put(*in_zones("zone-a", "zone-b", "zone-b"))  # type: ignore[arg-type]
    data = volumes.claim("data", ns="shop", bound_to="pv-7")
    volumes.add(
        harness.cluster.listers,
        data,
        volumes.volume("pv-7", labels={ZONE: "zone-a"}, claim=data),
        volumes.storage_class("local"),
    )
    harness.put(pod("other", ns="shop", cpu=3, node="n1"))
    return await ask(harness, pod("db", ns="shop", cpu=2, volumes=[claim_volume("data")]))


async def device() -> str:
    harness = Harness()
    harness.put(
        *(node(f"n{i}") for i in range(1, 5)),
        devices.device_class("gpu"),
        devices.resource_slice("s1", devices.device("gpu-0"), devices.device("gpu-1"), node="n1"),
        devices.resource_slice("s2", devices.device("gpu-0"), devices.device("gpu-1"), node="n2"),
        devices.claim("wanted", devices.exactly(2), ns="ml"),
        devices.claim(
            "a",
            ns="ml",
            allocated=devices.allocation("gpu-0", "gpu-1", node="n1"),
            users=["train-a"],
        ),
        devices.claim(
            "b",
            ns="ml",
            allocated=devices.allocation("gpu-1", pool="n2", node="n2"),
            users=["train-b"],
        ),
    )
    return await ask(harness, devices.with_claims(pod("train", ns="ml"), "wanted"))


async def ports() -> str:
    harness = Harness()
    harness.put(
        *(node(f"n{i}") for i in range(1, 4)),
        *(pod(f"proxy-{i}", ns="edge", ports=[8080], node=f"n{i}") for i in range(1, 4)),
    )
    return await ask(harness, pod("web", ns="shop", ports=[8080]))


async def gated() -> str:
    harness = Harness()
    harness.put(node("n1"))
    return await ask(harness, pod("web", ns="shop", gates=["example.com/quota"]))


async def preemption() -> str:
    harness = Harness()
    harness.cluster.lets_victims_linger = True
    harness.put(node("n1", cpu=1), node("n2", cpu=1))
    harness.put(pod("old", ns="batch", cpu=1, node="n1"))
    harness.put(pod("vital", ns="shop", cpu=1, node="n2", priority=9))
    return await ask(harness, pod("web", ns="shop", cpu=1, priority=5))


class Broken(FilterPlugin):
    """Has a bug."""

    NAME = "Broken"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        raise KeyError("rack")


async def plugin_error() -> str:
    harness = with_plugins(Broken)
    harness.put(node("n1"), node("n2"), node("n3", taints=[taint("a")]))
    return await ask(harness, pod("web", ns="shop", cpu=1))


QUESTIONS: dict[Callable[[], Awaitable[str]], str] = {
    cpu: (
        "shop/web has been pending for 12m: 0/4 nodes are available: 3 Insufficient cpu, 1 "
        "node(s) had untolerated taint(s); nearest is n2: free 1180m more cpu"
    ),
    taints: (
        "shop/web has been pending for 12m: 0/3 nodes are available: 3 node(s) had "
        "untolerated taint(s); nearest is n1: remove taint dedicated=batch:NoSchedule, or "
        "tolerate it"
    ),
    affinity: (
        "shop/web has been pending for 12m: 0/3 nodes are available: 3 node(s) didn't match "
        "Pod's node affinity/selector; no node has topology.kubernetes.io/zone=zone-c"
    ),
    spreading: (
        "shop/web-4 has been pending for 12m: 0/3 nodes are available: 2 node(s) didn't match"
        " pod topology spread constraints, 1 Insufficient cpu; nearest is n3: free 300m more "
        "cpu"
    ),
    volume_zone: (
        "shop/db has been pending for 12m: 0/3 nodes are available: 2 node(s) had no "
        "available volume zone, 1 Insufficient cpu; volume pv-7 (claim data) is in zone-a, "
        "where 1 of 3 nodes is; nearest is n1: free 1000m more cpu"
    ),
    device: (
        "ml/train has been pending for 12m: 0/4 nodes are available: 4 cannot allocate all "
        "claims; claim ml/wanted asks for 2 devices of class gpu: 4 devices on 2 nodes match,"
        " 1 free, the others held by ml/train-a and ml/train-b; nearest is n2: free 1 device "
        "for claim ml/wanted, held by ml/train-b; that may not be enough"
    ),
    ports: (
        "shop/web has been pending for 12m: 0/3 nodes are available: 3 node(s) didn't have "
        "free ports for the requested pod ports; port 8080/TCP is taken on 3 nodes by "
        "edge/proxy-1, edge/proxy-2 and edge/proxy-3; nearest is n1: free port 8080/TCP, "
        "which edge/proxy-1 has, or use another"
    ),
    gated: (
        "shop/web has been pending for 12m: gated by SchedulingGates: waiting for scheduling "
        "gates: [example.com/quota]; whoever has set a gate must remove it; now it would go "
        "to n1, the only node that fits"
    ),
    preemption: (
        "shop/web has been pending for 12m: 0/2 nodes are available: 2 Insufficient cpu; "
        "preemption makes room on n1, which batch/old must leave first"
    ),
    plugin_error: (
        'shop/web has been pending for 12m: a plugin failed: running "Broken" filter plugin: '
        "KeyError('rack'); 2 of 3 nodes were not evaluated; the scheduler's log has the trace, "
        "the pod is retried"
    ),
}


@pytest.mark.parametrize(
    ("question", "line"),
    [pytest.param(question, line, id=question.__name__) for question, line in QUESTIONS.items()],
)
async def test_the_first_line_says_it_all(
    question: Callable[[], Awaitable[str]], line: str
) -> None:
    assert await question() == line
