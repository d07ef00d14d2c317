"""Pods and nodes that use what a test says."""

from collections.abc import Sequence
from typing import Any

import msgspec

from berth.cluster.kubelet.eviction.manager import EvictionManager, Reclaim, Synchronization
from berth.cluster.kubelet.eviction.stats import NodeStats, PodStats
from berth.cluster.kubelet.eviction.thresholds import Threshold, parse_thresholds
from berth.cluster.kubelet.usage import NOTHING, Usage
from berth.kube.objects.pod import Pod

MI = 2**20
GI = 2**30


def pod_stats(
    name: str = "p",
    *,
    memory: int = 0,
    disk: int = 0,
    inodes: int = 0,
    pids: int = 0,
    request: str = "",
    limit: str = "",
    priority: int = 0,
    qos: str = "",
    volumes: dict[str, int] | None = None,
    size_limits: dict[str, str] | None = None,
    resource: str = "memory",
    **metadata: Any,
) -> PodStats:
    """A pod of one container ``c``; *request* and *limit* are of *resource*."""
    resources: dict[str, Any] = {}
    if request:
        resources["requests"] = {resource: request}
    if limit:
        resources["limits"] = {resource: limit}
    guessed = "BestEffort" if not request else "Guaranteed" if limit == request else "Burstable"
    body = {
        "metadata": {"name": name, "namespace": "default", "uid": name, **metadata},
        "spec": {
            "priority": priority,
            "containers": [{"name": "c", "image": "i", "resources": resources}],
        },
    }
    return PodStats(
        msgspec.convert(body, Pod),
        {"c": Usage(0, memory, disk, inodes, pids)},
        volumes or {},
        size_limits or {},
        qos or guessed,
    )


def node_stats(
    *pods: PodStats,
    memory: int = 10 * GI,
    disk: int = 100 * GI,
    inodes: int = 1000,
    pids: int = 1000,
    system: Usage = NOTHING,
    allocatable: int = 0,
    **more: Any,
) -> NodeStats:
    """A node with so much in all."""
    capacity = {"memory": memory, "ephemeral-storage": disk, "inodes": inodes, "pids": pids}
    return NodeStats(capacity, allocatable or memory, system, pods, **more)


class Machine:
    """A node with an eviction manager, and what it can free."""

    def __init__(self, thresholds: Sequence[Threshold], stats: NodeStats, **more: Any) -> None:
        self.manager = EvictionManager(thresholds, filesystems=stats.filesystems, **more)
        self.stats = stats
        self.freed: list[str] = []
        self.after: dict[str, NodeStats] = {}
        """What the stats are once ``containers`` or ``images`` are freed."""

    def look(self, now: float = 0.0) -> Synchronization:
        reclaim = Reclaim(lambda: self._free("containers"), lambda: self._free("images"))
        return self.manager.synchronize(lambda: self.stats, reclaim, now=now)

    def evicted(self, now: float = 0.0) -> list[str]:
        """Return the names of the pods that are evicted in a look."""
        return [eviction.pod.metadata.name for eviction in self.look(now).evictions]

    def _free(self, what: str) -> None:
        self.freed.append(what)
        self.stats = self.after.get(what, self.stats)


def hard(**thresholds: str) -> tuple[Threshold, ...]:
    """Return hard thresholds; ``memory_available`` for ``memory.available``."""
    return parse_thresholds(
        hard={name.replace("_", "."): text for name, text in thresholds.items()},
        soft={},
        soft_grace_periods={},
        minimum_reclaim={},
        enforces_allocatable=False,
    )


def soft(signal: str, text: str, *, grace: str, reclaim: str = "") -> tuple[Threshold, ...]:
    return parse_thresholds(
        hard={},
        soft={signal: text},
        soft_grace_periods={signal: grace},
        minimum_reclaim={signal: reclaim} if reclaim else {},
    )
