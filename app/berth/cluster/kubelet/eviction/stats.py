"""Use and capacity of pods and a node, as in a kubelet's summary API.

Bytes, numbers of inodes and processes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from berth.cluster.kubelet.eviction.thresholds import Filesystems
from berth.cluster.kubelet.usage import NOTHING, Usage, total
from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import Quantity, value
from berth.kube.objects.resources import EPHEMERAL_STORAGE, MEMORY, pod_requests

SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000
CONFIG_SOURCE: Final = "kubernetes.io/config.source"
CONFIG_MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True)
class PodStats:
    """What one pod uses now."""

    pod: Pod
    containers: Mapping[str, Usage]
    """By name, of those that run."""
    volumes: Mapping[str, int] = field(default_factory=dict)
    """By name: bytes in ``emptyDir`` volumes."""
    size_limits: Mapping[str, Quantity] = field(default_factory=dict)
    """By name: the ``sizeLimit`` of those ``emptyDir`` volumes that have one."""
    qos_class: str = "BestEffort"

    @cached_property
    def used(self) -> Usage:
        return total(self.containers.values())

    @cached_property
    def local_volumes(self) -> int:
        """Bytes in volumes on nodefs."""
        return sum(self.volumes.values())

    @cached_property
    def requests(self) -> Mapping[str, int]:
        """What the pod requests, by resource."""
        nanos = pod_requests(self.pod, use_status=False, pod_level=True)
        return {name: value(nanos.get(name, 0)) for name in (MEMORY, EPHEMERAL_STORAGE)}

    @property
    def is_critical(self) -> bool:
        """Whether it is static, a mirror, or of a system priority (``types.IsCriticalPod``)."""
        return is_critical(self.pod)


def is_critical(pod: Pod) -> bool:
    """Tell whether a kubelet never evicts *pod*, and takes it also under pressure."""
    annotations = pod.metadata.annotations
    is_static = annotations.get(CONFIG_SOURCE, "api") != "api"
    return is_static or CONFIG_MIRROR in annotations or pod.priority >= SYSTEM_CRITICAL_PRIORITY


@dataclass(frozen=True)
class NodeStats:
    """What a node has, and what is used of it at one moment."""

    capacity: Mapping[str, int]
    """By resource, in the units of :class:`~berth.cluster.kubelet.usage.Usage`."""
    allocatable_memory: int
    """What all pods together may use: the capacity without what is reserved for the system."""
    system: Usage
    pods: Sequence[PodStats]
    """Those that are active: not finished."""
    dead: Usage = NOTHING
    """What containers that have ended still hold on disk."""
    images: int = 0
    """Bytes."""
    filesystems: Filesystems = Filesystems.SHARED
    imagefs_capacity: int = 0
    """Bytes; 0: images are in nodefs."""

    def without(self, containers: Iterable[tuple[PodStats, str]]) -> "NodeStats":
        """Return the same with *containers* ended, which are of its pods."""
        ended: dict[str, set[str]] = {}
        for stats, name in containers:
            ended.setdefault(stats.pod.key, set()).add(name)
        pods = [
            replace(pod, containers={k: v for k, v in pod.containers.items() if k not in gone})
            if (gone := ended.get(pod.pod.key))
            else pod
            for pod in self.pods
        ]
        return replace(self, pods=pods)

    @cached_property
    def of_pods(self) -> Usage:
        return total(pod.used for pod in self.pods)

    @property
    def memory(self) -> int:
        return self.system.memory + self.of_pods.memory

    @property
    def pids(self) -> int:
        return self.system.pids + self.of_pods.pids

    @property
    def layers(self) -> Usage:
        """What writable layers and logs hold, also those of containers that have ended."""
        return self.of_pods.plus(self.dead)

    @property
    def nodefs_bytes(self) -> int:
        """Bytes used of nodefs."""
        used = self.system.ephemeral_storage + sum(pod.local_volumes for pod in self.pods)
        if self.filesystems is not Filesystems.IMAGEFS:
            used += self.layers.ephemeral_storage
        return used if self.filesystems is not Filesystems.SHARED else used + self.images

    @property
    def nodefs_inodes(self) -> int:
        used = self.system.inodes
        return used if self.filesystems is Filesystems.IMAGEFS else used + self.layers.inodes

    @property
    def imagefs_bytes(self) -> int:
        """Bytes used of imagefs, where it is one of its own."""
        if self.filesystems is Filesystems.SPLIT:
            return self.images
        return self.images + self.layers.ephemeral_storage

    @property
    def imagefs_inodes(self) -> int:
        return 0 if self.filesystems is Filesystems.SPLIT else self.layers.inodes
