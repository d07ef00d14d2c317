"""Signals of a node, as its stats give them (``makeSignalObservations``)."""

from collections.abc import Mapping
from typing import NamedTuple

from berth.cluster.kubelet.eviction.signals import Signal
from berth.cluster.kubelet.eviction.stats import NodeStats
from berth.cluster.kubelet.eviction.thresholds import Filesystems
from berth.cluster.kubelet.usage import INODES, PIDS
from berth.kube.objects.amounts import Amount
from berth.kube.objects.quantity import NANO
from berth.kube.objects.resources import EPHEMERAL_STORAGE, MEMORY


class Observation(NamedTuple):
    """What is left of what there is; negative only for processes, as there."""

    available: int
    capacity: int
    binary: bool = True
    """Whether it is written in powers of 1024."""

    def __str__(self) -> str:
        return str(Amount(self.available * NANO, self.binary))


Observations = Mapping[Signal, Observation]


def observe(stats: NodeStats) -> Observations:
    """Return the signals of a node; of what it has not got there is none."""
    found: dict[Signal, Observation] = {}
    memory, disk = stats.capacity.get(MEMORY, 0), stats.capacity.get(EPHEMERAL_STORAGE, 0)
    inodes, pids = stats.capacity.get(INODES, 0), stats.capacity.get(PIDS, 0)
    if memory:
        found[Signal.MEMORY_AVAILABLE] = _left(memory, stats.memory)
        of_pods = _left(stats.allocatable_memory, stats.of_pods.memory)
        found[Signal.ALLOCATABLE_MEMORY_AVAILABLE] = of_pods
    if disk:
        nodefs = _left(disk, stats.nodefs_bytes)
        nodefs_inodes = _left(inodes, stats.nodefs_inodes, binary=False)
        imagefs, imagefs_inodes = nodefs, nodefs_inodes
        if stats.filesystems is not Filesystems.SHARED:
            imagefs = _left(stats.imagefs_capacity, stats.imagefs_bytes)
            imagefs_inodes = _left(inodes, stats.imagefs_inodes, binary=False)
        has_layers = stats.filesystems is Filesystems.IMAGEFS
        found[Signal.NODEFS_AVAILABLE] = nodefs
        found[Signal.NODEFS_INODES_FREE] = nodefs_inodes
        found[Signal.IMAGEFS_AVAILABLE] = imagefs
        found[Signal.IMAGEFS_INODES_FREE] = imagefs_inodes
        found[Signal.CONTAINERFS_AVAILABLE] = imagefs if has_layers else nodefs
        found[Signal.CONTAINERFS_INODES_FREE] = imagefs_inodes if has_layers else nodefs_inodes
    if pids:
        found[Signal.PID_AVAILABLE] = Observation(pids - stats.pids, pids, binary=False)
    return found


def _left(capacity: int, used: int, *, binary: bool = True) -> Observation:
    return Observation(max(capacity - used, 0), capacity, binary)
