"""Checks a cluster from its API's own view: who has no node, and which nodes are over-full."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from berth.kube.client.api import Api
from berth.kube.objects.meta import ListHead
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import parse
from berth.kube.objects.resources import pod_requests
from berth.scheduler.framework.words import counted

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Verification:
    """What the API says about pods and nodes."""

    placed: int
    unplaced: Sequence[str]
    """Pods without a node that no scheduling gate holds back."""
    gated: int
    overcommitted: Sequence[str]
    """One line per node and resource that more is requested of than there is."""

    @property
    def is_good(self) -> bool:
        return not self.unplaced and not self.overcommitted

    def lines(self) -> list[str]:
        """Tell it in lines for people."""
        lines = [
            f"checked through the API: {counted(self.placed, 'pod')} placed, {self.gated} gated"
        ]
        if self.unplaced:
            shown = ", ".join(self.unplaced[:5]) + (", ..." if len(self.unplaced) > 5 else "")
            lines.append(f"{counted(len(self.unplaced), 'pod')} without a node: {shown}")
        lines += self.overcommitted or ["no node is over its allocatable"]
        return lines


async def verify(client: Api) -> Verification:
    """List pods and nodes and add up, independently of any scheduler's books."""
    nodes = await _all(client, "/api/v1/nodes", Node)
    pods = [pod for pod in await _all(client, "/api/v1/pods", Pod) if not pod.is_terminated]
    used: dict[tuple[str, str], int] = {}
    for pod in pods:
        if pod.spec.node_name:
            requests = pod_requests(pod, use_status=False, pod_level=True)
            for name, amount in {**requests, "pods": parse(1)}.items():
                key = (pod.spec.node_name, name)
                used[key] = used.get(key, 0) + amount
    room = {(n.name, key): parse(q) for n in nodes for key, q in n.status.allocatable.items()}
    return Verification(
        placed=sum(bool(pod.spec.node_name) for pod in pods),
        unplaced=[p.key for p in pods if not p.spec.node_name and not p.spec.scheduling_gates],
        gated=sum(bool(p.spec.scheduling_gates) for p in pods),
        overcommitted=[
            f"node {node} is over its allocatable {name}: {amount / 10**9:g} requested"
            f" of {room.get((node, name), 0) / 10**9:g}"
            for (node, name), amount in sorted(used.items())
            if amount > room.get((node, name), 0)
        ],
    )


async def _all(client: Api, path: str, kind: type[T]) -> list[T]:
    head = msgspec.json.decode(await client.request("GET", path), type=ListHead)
    return [msgspec.json.decode(item, type=kind) for item in head.items]
