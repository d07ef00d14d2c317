"""Eviction signals: what a kubelet watches, of which resource, and what it reports of it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from berth.cluster.kubelet.usage import INODES, PIDS
from berth.kube.objects.resources import EPHEMERAL_STORAGE, MEMORY

MEMORY_PRESSURE: Final = "MemoryPressure"
DISK_PRESSURE: Final = "DiskPressure"
PID_PRESSURE: Final = "PIDPressure"


class Signal(StrEnum):
    """``k8s.io/kubernetes/pkg/kubelet/eviction/api``."""

    MEMORY_AVAILABLE = "memory.available"
    NODEFS_AVAILABLE = "nodefs.available"
    NODEFS_INODES_FREE = "nodefs.inodesFree"
    IMAGEFS_AVAILABLE = "imagefs.available"
    IMAGEFS_INODES_FREE = "imagefs.inodesFree"
    CONTAINERFS_AVAILABLE = "containerfs.available"
    CONTAINERFS_INODES_FREE = "containerfs.inodesFree"
    ALLOCATABLE_MEMORY_AVAILABLE = "allocatableMemory.available"
    PID_AVAILABLE = "pid.available"


MEMORY_SIGNALS: Final = frozenset({Signal.MEMORY_AVAILABLE, Signal.ALLOCATABLE_MEMORY_AVAILABLE})

RESOURCES: Final[Mapping[Signal, str]] = {
    Signal.MEMORY_AVAILABLE: MEMORY,
    Signal.ALLOCATABLE_MEMORY_AVAILABLE: MEMORY,
    Signal.NODEFS_AVAILABLE: EPHEMERAL_STORAGE,
    Signal.IMAGEFS_AVAILABLE: EPHEMERAL_STORAGE,
    Signal.CONTAINERFS_AVAILABLE: EPHEMERAL_STORAGE,
    Signal.NODEFS_INODES_FREE: INODES,
    Signal.IMAGEFS_INODES_FREE: INODES,
    Signal.CONTAINERFS_INODES_FREE: INODES,
    Signal.PID_AVAILABLE: PIDS,
}
"""What is short when a signal is too low."""

CONDITIONS: Final[Mapping[str, str]] = {
    MEMORY: MEMORY_PRESSURE,
    EPHEMERAL_STORAGE: DISK_PRESSURE,
    INODES: DISK_PRESSURE,
    PIDS: PID_PRESSURE,
}
"""By resource: the condition of a node that is short of it."""


def condition_of(signal: Signal) -> str:
    return CONDITIONS[RESOURCES[signal]]
