"""The order of evictions (``rankMemoryPressure``, ``rankDiskPressureFunc``...)."""

from collections.abc import Callable, Iterable

from berth.cluster.kubelet.eviction.signals import RESOURCES, Signal
from berth.cluster.kubelet.eviction.stats import PodStats
from berth.cluster.kubelet.eviction.thresholds import Filesystems
from berth.cluster.kubelet.usage import INODES, PIDS
from berth.kube.objects.resources import EPHEMERAL_STORAGE

Measure = Callable[[PodStats], int]

_NODEFS = (Signal.NODEFS_AVAILABLE, Signal.NODEFS_INODES_FREE)
_IMAGEFS = (Signal.IMAGEFS_AVAILABLE, Signal.IMAGEFS_INODES_FREE)


def ranked(
    pods: Iterable[PodStats], signal: Signal, filesystems: Filesystems = Filesystems.SHARED
) -> list[PodStats]:
    """Return *pods* in the order in which they are evicted because *signal* is too low.

    First those that use more than they request; of these and of the others, by priority, lowest
    first; of the same priority, by how much they use above their request. Nothing is requested of
    inodes. With processes only priority counts, then how many there are.
    """
    resource = RESOURCES[signal]
    if resource == PIDS:
        return sorted(pods, key=lambda each: (each.pod.priority, -each.used.pids))
    measure = _measure(signal, filesystems)
    # As in Kubernetes, inodes are compared with the request for storage in the last step.
    compared = EPHEMERAL_STORAGE if resource == INODES else resource

    def order(each: PodStats) -> tuple[bool, int, int]:
        used = measure(each)
        within = used <= each.requests.get(resource, 0)
        return within, each.pod.priority, each.requests.get(compared, 0) - used

    return sorted(pods, key=order)


def _measure(signal: Signal, filesystems: Filesystems) -> Measure:
    """Return what counts as a pod's use of what *signal* is about."""
    match RESOURCES[signal]:
        case "memory":
            return lambda each: each.used.memory
        case "inodes":
            has_layers = _has_layers(signal, filesystems)
            return lambda each: each.used.inodes if has_layers else 0
    has_layers = _has_layers(signal, filesystems)
    has_volumes = _has_volumes(signal, filesystems)

    def disk(each: PodStats) -> int:
        used = each.used.ephemeral_storage if has_layers else 0
        return used + each.local_volumes if has_volumes else used

    return disk


def _has_layers(signal: Signal, filesystems: Filesystems) -> bool:
    """Whether writable layers are on the file system of *signal*."""
    match filesystems:
        case Filesystems.SHARED:
            return True
        case Filesystems.IMAGEFS:
            return signal not in _NODEFS
        case Filesystems.SPLIT:
            return signal not in _IMAGEFS


def _has_volumes(signal: Signal, filesystems: Filesystems) -> bool:
    """Whether local volumes are on the file system of *signal*."""
    match filesystems:
        case Filesystems.SHARED:
            return True
        case Filesystems.IMAGEFS:
            return signal in _NODEFS
        case Filesystems.SPLIT:
            return signal not in _IMAGEFS
