"""Reactions of hollow nodes to too little memory, disk, inodes or processes.

One eviction manager for each node that needs one (:mod:`berth.cluster.kubelet.eviction` decides),
the kernel's out-of-memory killer, and the garbage collection of images. Synchronous; whoever drives
it calls :meth:`NodePressure.step` for nodes that it has scheduled.

With the default thresholds, only what annotations say can bring a node under pressure. So nothing
is computed for nodes without such annotations, on themselves or on a pod of theirs. With thresholds
of one's own, all nodes are looked at.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from berth.cluster.events.correlator import Reference
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kubelet import node_events
from berth.cluster.kubelet.configuration import KubeletConfiguration
from berth.cluster.kubelet.eviction import out_of_memory
from berth.cluster.kubelet.eviction.admission import EVICTED
from berth.cluster.kubelet.eviction.manager import Eviction, EvictionManager, Reclaim
from berth.cluster.kubelet.eviction.observations import observe
from berth.cluster.kubelet.eviction.signals import Signal
from berth.cluster.kubelet.eviction.stats import NodeStats, PodStats
from berth.cluster.kubelet.eviction.thresholds import Filesystems
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.pod_events import reference
from berth.cluster.kubelet.pod_lifecycles import PodLifecycles
from berth.cluster.kubelet.usage import (
    NOTHING,
    Usage,
    capacity_of,
    is_told,
    running_containers,
    total,
    usage_of_containers,
    usage_of_system,
    usage_of_volumes,
)
from berth.cluster.pods.kubelet import KubeletPod
from berth.kube.objects.quantity import check_quantity, parse, value
from berth.kube.objects.resources import MEMORY
from berth.runtime.clock import Clock

MONITORING_SECONDS: Final = 10.0
"""Between two looks at a node (``evictionMonitoringPeriod``)."""
CLEANUP_SECONDS: Final = 30.0
"""How long the end of evicted pods is waited for (``podCleanupTimeout``)."""
CLEANUP_POLL_SECONDS: Final = 1.0
OOM_SECONDS: Final = 1.0
"""After which it is seen whether containers that were killed have come back."""
IMAGE_GC_SECONDS: Final = 300.0
"""Between two garbage collections of images (``ImageGCPeriod``)."""

OOM_KILLED: Final = "OOMKilled"
OOM_EXIT: Final = 137

IMAGEFS: Final = "berth.dev/imagefs-capacity"
"""Annotation of a Node: it has a file system of its own for images and writable layers, of so many
bytes."""
SPLIT: Final = "berth.dev/imagefs-images-only"
"""Annotation of a Node: ``true`` leaves writable layers in nodefs (``KubeletSeparateDiskGC``)."""


@dataclass(slots=True)
class _Watched:
    """What is known of a node that is looked at."""

    manager: EvictionManager
    filesystems: Filesystems
    """As the manager knows them."""
    next_look: float
    """Monotonic."""
    next_image_gc: float
    """Monotonic."""
    is_idle: bool = False
    """Whether nothing can bring the node under pressure any more."""
    evicting: set[str] = field(default_factory=set)
    """Keys of pods whose end is waited for."""
    wait_until: float = 0.0
    """Monotonic."""
    image_gc_failed: bool = False
    reclaimed: set[str] = field(default_factory=set)
    """Uids of finished pods whose containers were removed."""


class NodePressure:
    """The eviction managers of all nodes."""

    def __init__(
        self,
        nodes: Mapping[str, HollowNode],
        pods: PodLifecycles,
        configuration: KubeletConfiguration,
        *,
        clock: Clock,
        schedule: Callable[[str, float], None],
        report: Callable[[str], None],
        recorder_of: Callable[[str], EventRecorder],
    ) -> None:
        """*schedule* has a node looked at in so many seconds; *report* has its status reported."""
        self._nodes = nodes
        self._pods = pods
        self._configuration = configuration
        self._clock = clock
        self._schedule = schedule
        self._report = report
        self._recorder_of = recorder_of
        self._watched: dict[str, _Watched] = {}
        self._out_of_memory: set[str] = set()
        """Nodes whose memory is to be looked at now, whatever their managers do."""

    def node_changed(self, node: HollowNode) -> None:
        """Note that the Node has changed, or is known now."""
        annotations = node.node.metadata.annotations if node.node is not None else {}
        watched = self._watched.get(node.name)
        if watched is not None and watched.filesystems is not _filesystems(node)[0]:
            del self._watched[node.name]
        if watched is not None or self._configuration.has_thresholds or is_told(annotations):
            self._look(node.name)

    def pod_changed(self, pod: KubeletPod) -> None:
        """Note that a pod has come to its node, or has changed."""
        if pod.metadata.annotations and is_told(pod.metadata.annotations):
            self._look(pod.spec.node_name)

    def forget_node(self, name: str) -> None:
        self._watched.pop(name, None)
        self._out_of_memory.discard(name)

    def step(self, name: str) -> None:
        """Look at a node, and do what is to be done about it."""
        node, watched = self._nodes.get(name), self._watched.get(name)
        if node is None or watched is None:
            return
        now = self._clock.monotonic()
        if node.failure is not None:
            watched.next_look = now + MONITORING_SECONDS
        else:
            if name in self._out_of_memory and self._free_memory(node, watched):
                # What was killed uses nothing for a moment, even if it is restarted at once.
                watched.next_look = max(watched.next_look, now + OOM_SECONDS)
            if now >= watched.next_look:
                watched.next_look = now + self._delay(node, watched, now)
            if watched.is_idle:
                del self._watched[name]
                return
        delay = watched.next_look - now
        is_killing = name in self._out_of_memory
        self._schedule(name, min(delay, OOM_SECONDS) if is_killing else delay)

    def _look(self, name: str) -> None:
        """Have the memory of a node looked at now, and from now on all of it."""
        node = self._nodes.get(name)
        if node is None:
            return
        if name not in self._watched:
            self._watched[name] = self._new_watched(node)
        self._out_of_memory.add(name)
        self._schedule(name, 0.0)

    def _new_watched(self, node: HollowNode) -> _Watched:
        filesystems, _ = _filesystems(node)
        configuration, now = self._configuration, self._clock.monotonic()
        manager = EvictionManager(
            configuration.thresholds,
            filesystems=filesystems,
            pressure_transition_seconds=configuration.pressure_transition_seconds,
            max_pod_grace_seconds=configuration.eviction_max_pod_grace_period,
            isolates_local_storage=configuration.local_storage_capacity_isolation,
        )
        return _Watched(manager, filesystems, next_look=now, next_image_gc=now + IMAGE_GC_SECONDS)

    def _delay(self, node: HollowNode, watched: _Watched, now: float) -> float:
        """Look at all that a node may be short of; return the seconds to the next time."""
        watched.evicting = {each for each in watched.evicting if self._pods.is_running(each)}
        if watched.evicting and now < watched.wait_until:
            return CLEANUP_POLL_SECONDS
        watched.evicting.clear()
        if now >= watched.next_image_gc:
            watched.next_image_gc = now + IMAGE_GC_SECONDS
            self._collect_images(node, watched)
        reclaim = Reclaim(
            lambda: self._delete_unused_containers(node, watched),
            lambda: self._delete_images(node, self._unused_images(node)),
        )
        found = watched.manager.synchronize(lambda: self._stats(node, watched), reclaim, now=now)
        self._tell_conditions(node, watched.manager.conditions)
        if found.reclaimed:
            message = f"Attempting to reclaim {found.reclaimed}"
            self._record(node, reason="EvictionThresholdMet", message=message)
        for eviction in found.evictions:
            self._evict(eviction)
            watched.evicting.add(eviction.pod.key)
        watched.is_idle = watched.manager.is_calm and not self._is_told(node)
        if not found.evictions:
            return MONITORING_SECONDS
        watched.wait_until = now + CLEANUP_SECONDS
        return CLEANUP_POLL_SECONDS

    def _is_told(self, node: HollowNode) -> bool:
        """Whether what a node uses can change without anybody saying so here."""
        annotations = node.node.metadata.annotations if node.node is not None else {}
        return (
            self._configuration.has_thresholds
            or is_told(annotations)
            or any(is_told(pod.metadata.annotations) for pod, _ in self._pods.active_on(node.name))
        )

    def _evict(self, eviction: Eviction) -> None:
        pod, grace = eviction.pod, float(eviction.grace_seconds)
        self._recorder_of(pod.spec.node_name).event(
            reference(pod, None),
            type="Warning",
            reason=EVICTED,
            message=eviction.message,
            annotations=eviction.annotations,
        )
        self._pods.evict(
            pod.key,
            reason=EVICTED,
            message=eviction.message,
            grace_seconds=grace,
            is_disruption=eviction.is_disruption,
        )

    def _free_memory(self, node: HollowNode, watched: _Watched) -> bool:
        """Kill containers that exceed their limit, and others while the node has no memory left.

        Each at most once; those that are restarted are looked at a moment later. Returns whether
        any was killed.
        """
        self._out_of_memory.discard(node.name)
        stats = self._stats(node, watched)
        killed = [over_limit for pod in stats.pods for over_limit in out_of_memory.over_limits(pod)]
        stats = stats.without(killed)
        while (victim := out_of_memory.victim(stats)) is not None:
            message = f"System OOM encountered, victim process: {victim.container}, pid: 0"
            self._record(node, reason="SystemOOM", message=message)
            killed.append(victim)
            stats = stats.without([victim])
        for pod, container in killed:
            self._pods.kill_container(pod.pod.key, container, reason=OOM_KILLED, exit_code=OOM_EXIT)
        if killed:
            self._out_of_memory.add(node.name)
        return bool(killed)

    def _tell_conditions(self, node: HollowNode, conditions: tuple[str, ...]) -> None:
        if conditions == node.pressure:
            return
        recorder = self._recorder_of(node.name)
        for condition in sorted(set(conditions) ^ set(node.pressure)):
            node_events.pressure(node.name, recorder, condition, is_under=condition in conditions)
        node.pressure = conditions
        self._report(node.name)

    def _record(self, node: HollowNode, *, reason: str, message: str) -> None:
        about = Reference("v1", "Node", "", node.name, node.name)
        recorder = self._recorder_of(node.name)
        recorder.event(about, type="Warning", reason=reason, message=message)

    def _stats(self, node: HollowNode, watched: _Watched) -> NodeStats:
        quantities = node.node.status.capacity if node.node is not None else {}
        annotations = node.node.metadata.annotations if node.node is not None else {}
        capacity = capacity_of(quantities)
        filesystems, imagefs_capacity = _filesystems(node)
        return NodeStats(
            capacity,
            max(capacity.get(MEMORY, 0) - self._configuration.reserved(MEMORY), 0),
            usage_of_system(annotations, capacity),
            [_pod_stats(*each) for each in self._pods.active_on(node.name)],
            dead=total(
                _left_on_disk(each)
                for each in self._pods.finished_on(node.name)
                if each.metadata.uid not in watched.reclaimed
            ),
            images=sum(node.images.values()),
            filesystems=filesystems,
            imagefs_capacity=imagefs_capacity,
        )

    def _delete_unused_containers(self, node: HollowNode, watched: _Watched) -> None:
        """Remove the containers of pods that have finished, and what they have written."""
        watched.reclaimed = {each.metadata.uid for each in self._pods.finished_on(node.name)}

    def _unused_images(self, node: HollowNode) -> list[str]:
        """Return the images that no pod of the node has, in the order in which they were pulled."""
        used = {
            container.image
            for pod, _ in self._pods.active_on(node.name)
            for container in (*pod.spec.init_containers, *pod.spec.containers)
        }
        return [image for image in node.images if image not in used]

    def _delete_images(self, node: HollowNode, images: Iterable[str]) -> int:
        """Delete *images*; return the bytes that this frees."""
        freed = sum(node.images.pop(image) for image in list(images))
        if freed:
            self._report(node.name)
        return freed

    def _collect_images(self, node: HollowNode, watched: _Watched) -> None:
        """Delete unused images if the disk is too full (``realImageGCManager.GarbageCollect``)."""
        configuration, signals = self._configuration, observe(self._stats(node, watched))
        disk = signals.get(Signal.IMAGEFS_AVAILABLE)
        if disk is None:
            return
        used = 100 - disk.available * 100 // disk.capacity
        if used < configuration.image_gc_high_threshold_percent:
            return
        low = configuration.image_gc_low_threshold_percent
        wanted = disk.capacity * (100 - low) // 100 - disk.available
        unused = self._unused_images(node)
        found, chosen = 0, []
        for each in unused:
            if found >= wanted:
                break
            found += node.images[each]
            chosen.append(each)
        self._delete_images(node, chosen)
        if found < wanted:
            message = (
                "Failed to garbage collect required amount of images. "
                f"Attempted to free {wanted} bytes, but only found {found} bytes eligible to free."
            )
            self._record(node, reason="FreeDiskSpaceFailed", message=message)
            if watched.image_gc_failed:
                self._record(node, reason="ImageGCFailed", message=message)
        watched.image_gc_failed = found < wanted


def _filesystems(node: HollowNode) -> tuple[Filesystems, int]:
    """Return the file systems of a node, and the bytes of imagefs if that is one of its own."""
    annotations = node.node.metadata.annotations if node.node is not None else {}
    text = annotations.get(IMAGEFS)
    if text is None:
        return Filesystems.SHARED, 0
    try:
        check_quantity(text)
    except ValueError:
        return Filesystems.SHARED, 0
    capacity = value(parse(text))
    if not capacity:
        return Filesystems.SHARED, 0
    split = annotations.get(SPLIT) == "true"
    return (Filesystems.SPLIT if split else Filesystems.IMAGEFS), capacity


def _pod_stats(pod: KubeletPod, running: Collection[str]) -> PodStats:
    """Return what a pod uses whose containers *running* run."""
    annotations = pod.metadata.annotations
    usages = usage_of_containers(annotations, running_containers(pod.spec))
    sources = {
        volume.name: volume.empty_dir for volume in pod.spec.volumes if volume.empty_dir is not None
    }
    stored = usage_of_volumes(annotations) if annotations else {}
    return PodStats(
        pod,
        {name: usage for name, usage in usages.items() if name in running},
        {name: size for name, size in stored.items() if name in sources},
        {name: each.size_limit for name, each in sources.items() if each.size_limit is not None},
        pod.status.qos_class or "BestEffort",
    )


def _left_on_disk(pod: KubeletPod) -> Usage:
    """Return what the containers of a pod that has finished still hold."""
    if pod.status.reason == EVICTED:  # a kubelet removes those at once
        return NOTHING
    usages = usage_of_containers(pod.metadata.annotations, running_containers(pod.spec))
    used = total(usages.values())
    return Usage(ephemeral_storage=used.ephemeral_storage, inodes=used.inodes)


class PodHandler:
    """The handler of the pod watch: lives of pods, and then what nodes make of them."""

    def __init__(self, pods: PodLifecycles, pressure: NodePressure) -> None:
        self._pods = pods
        self._pressure = pressure
        self.on_delete = pods.on_delete

    def on_add(self, obj: KubeletPod) -> None:
        self._pods.on_add(obj)
        self._pressure.pod_changed(obj)

    def on_update(self, old: KubeletPod, new: KubeletPod) -> None:
        self._pods.on_update(old, new)
        self._pressure.pod_changed(new)
