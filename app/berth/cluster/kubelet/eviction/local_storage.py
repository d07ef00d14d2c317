"""Pods that use more local storage than their own limits allow (``localStorageEviction``)."""

from berth.cluster.kubelet.eviction.stats import PodStats
from berth.cluster.kubelet.eviction.thresholds import Filesystems
from berth.kube.objects.amounts import Amount, amount
from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import NANO, parse
from berth.kube.objects.resources import EPHEMERAL_STORAGE, pod_limits


def excess(stats: PodStats, filesystems: Filesystems) -> str | None:
    """Return why a pod is evicted for what it stores; None: it keeps to its limits."""
    return _volume(stats) or _pod(stats) or _container(stats, filesystems)


def _volume(stats: PodStats) -> str | None:
    for name, limit in stats.size_limits.items():
        most = amount(limit)
        if 0 < most.nanos < stats.volumes.get(name, 0) * NANO:
            return f'Usage of EmptyDir volume "{name}" exceeds the limit "{most}". '
    return None


def _pod(stats: PodStats) -> str | None:
    limits = pod_limits(stats.pod)
    if EPHEMERAL_STORAGE not in limits:
        return None
    limit = limits[EPHEMERAL_STORAGE]
    if (stats.used.ephemeral_storage + stats.local_volumes) * NANO <= limit:
        return None
    written = _as_written(stats.pod, limit)
    return f"Pod ephemeral local storage usage exceeds the total limit of containers {written}. "


def _container(stats: PodStats, filesystems: Filesystems) -> str | None:
    """Return which container writes too much. With an imagefs of its own, nobody looks at it."""
    if filesystems is Filesystems.IMAGEFS:
        return None
    for container in stats.pod.spec.containers:
        limit = parse(container.resources.limits.get(EPHEMERAL_STORAGE, 0))
        usage = stats.containers.get(container.name)
        if not limit or usage is None:
            continue
        if usage.ephemeral_storage * NANO > limit:
            most = amount(container.resources.limits[EPHEMERAL_STORAGE])
            return (
                f'Container {container.name} exceeded its local ephemeral storage limit "{most}". '
            )
    return None


def _as_written(pod: Pod, nanos: int) -> Amount:
    """Return an amount in the notation of the first container that has a limit."""
    for each in (*pod.spec.containers, *pod.spec.init_containers):
        limit = each.resources.limits.get(EPHEMERAL_STORAGE)
        if limit is not None:
            return Amount(nanos, amount(limit).binary)
    return Amount(nanos)
