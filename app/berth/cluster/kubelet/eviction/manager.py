"""The eviction manager of one node (``managerImpl.synchronize``)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from berth.cluster.kubelet.eviction import local_storage
from berth.cluster.kubelet.eviction.messages import eviction_message
from berth.cluster.kubelet.eviction.observations import Observations, observe
from berth.cluster.kubelet.eviction.ranking import ranked
from berth.cluster.kubelet.eviction.signals import (
    MEMORY_SIGNALS,
    RESOURCES,
    Signal,
    condition_of,
)
from berth.cluster.kubelet.eviction.stats import NodeStats, PodStats
from berth.cluster.kubelet.eviction.thresholds import Filesystems, Threshold, in_force
from berth.cluster.kubelet.usage import PIDS
from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import NANO
from berth.kube.objects.resources import MEMORY

log = logging.getLogger(__name__)

IMMEDIATE_GRACE_SECONDS: Final = 1
"""What a pod that is evicted at once is given (``immediateEvictionGracePeriodSeconds``)."""

_NODEFS: Final = frozenset({Signal.NODEFS_AVAILABLE, Signal.NODEFS_INODES_FREE})
_IMAGEFS: Final = frozenset({Signal.IMAGEFS_AVAILABLE, Signal.IMAGEFS_INODES_FREE})


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that is to be evicted now."""

    pod: Pod
    message: str
    grace_seconds: int = IMMEDIATE_GRACE_SECONDS
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the event."""
    is_disruption: bool = False
    """Whether the pod gets the condition ``DisruptionTarget``: it has done nothing wrong."""


@dataclass(frozen=True, slots=True)
class Synchronization:
    """What comes of one look at a node."""

    evictions: Sequence[Eviction] = ()
    reclaimed: str = ""
    """The resource that there was too little of; empty: nothing was to be reclaimed."""


@dataclass(frozen=True, slots=True)
class Reclaim:
    """What a node can free before pods are evicted. Each may be called at any time."""

    delete_unused_containers: Callable[[], None]
    delete_unused_images: Callable[[], object]


class EvictionManager:
    """Remembers since when thresholds of one node are not kept."""

    def __init__(
        self,
        thresholds: Sequence[Threshold],
        *,
        filesystems: Filesystems = Filesystems.SHARED,
        pressure_transition_seconds: float = 300.0,
        max_pod_grace_seconds: int = 0,
        isolates_local_storage: bool = True,
    ) -> None:
        """*thresholds* are those of the configuration.

        A condition is reported until its thresholds were kept for *pressure_transition_seconds*.
        A pod that is evicted by a soft threshold gets *max_pod_grace_seconds*. With
        *isolates_local_storage* pods are evicted that exceed their own limits of storage.
        """
        self._thresholds, ignored = in_force(thresholds, filesystems)
        for signal in ignored:
            log.warning("threshold ignored: containerfs follows its file system",
                        extra={"signal": str(signal)})  # fmt: skip
        self._filesystems = filesystems
        self._pressure_transition_seconds = pressure_transition_seconds
        self._max_pod_grace_seconds = max_pod_grace_seconds
        self._isolates_local_storage = isolates_local_storage
        self.conditions: tuple[str, ...] = ()
        """The conditions of the node that are True, as of the last synchronization."""
        self._first_observed: dict[Threshold, float] = {}
        self._last_observed: dict[str, float] = {}
        """By condition."""
        self._met: Sequence[Threshold] = ()
        """Those that were not kept for their grace period, and are not resolved yet."""

    @property
    def is_calm(self) -> bool:
        """Whether nothing is remembered that another look could change by itself."""
        return not (self.conditions or self._first_observed or self._met)

    def synchronize(
        self, read: Callable[[], NodeStats], reclaim: Reclaim, *, now: float
    ) -> Synchronization:
        """Look at the node and return what is to be done.

        *read* returns the stats of the moment; it is called again after something was freed.
        *now* is any clock's, in seconds. At most one pod is evicted for the sake of the node.
        """
        stats = read()
        observations = observe(stats)
        exceeded = self._exceeded(observations, now)
        excess = [
            Eviction(pod.pod, message)
            for pod in stats.pods
            if self._isolates_local_storage
            and not pod.is_critical
            and (message := local_storage.excess(pod, self._filesystems)) is not None
        ]
        if excess or not exceeded:
            return Synchronization(excess)
        target = exceeded[0]
        resource = RESOURCES[target.signal]
        if self._reclaim_node_level_resources(target.signal, read, reclaim):
            return Synchronization(reclaimed=resource)
        for each in ranked(stats.pods, target.signal, self._filesystems):
            if each.is_critical:
                continue
            eviction = self._eviction(each, target, exceeded, observations)
            return Synchronization([eviction], resource)
        return Synchronization(reclaimed=resource)

    def _exceeded(self, observations: Observations, now: float) -> list[Threshold]:
        """Return the thresholds to act on, most urgent first, and note since when it is so."""
        low = _met(self._thresholds, observations)
        for each in _met(self._met, observations, with_min_reclaim=True):
            if each not in low:
                low.append(each)
        self._first_observed = {each: self._first_observed.get(each, now) for each in low}
        self._last_observed |= {condition_of(each.signal): now for each in low}
        self._last_observed = {
            condition: last
            for condition, last in self._last_observed.items()
            if now - last < self._pressure_transition_seconds
        }
        self.conditions = tuple(sorted(self._last_observed))
        self._met = [
            each
            for each, since in self._first_observed.items()
            if now - since >= each.grace_seconds
        ]
        return sorted(self._met, key=lambda each: each.signal not in MEMORY_SIGNALS)

    def _eviction(
        self,
        stats: PodStats,
        target: Threshold,
        exceeded: Sequence[Threshold],
        observations: Observations,
    ) -> Eviction:
        grace = IMMEDIATE_GRACE_SECONDS
        if not target.is_hard:
            grace = max(grace, self._max_pod_grace_seconds)
        message = eviction_message(RESOURCES[target.signal], stats, exceeded, observations)
        return Eviction(stats.pod, message.text, grace, message.annotations, is_disruption=True)

    def _reclaim_node_level_resources(
        self, signal: Signal, read: Callable[[], NodeStats], reclaim: Reclaim
    ) -> bool:
        """Free what is no pod's; return whether that was enough for all thresholds."""
        functions = _reclaim_functions(signal, self._filesystems, reclaim)
        for function in functions:
            function()
        if not functions:
            return False
        return not _met(self._thresholds, observe(read()), with_min_reclaim=True)


def _met(
    thresholds: Sequence[Threshold], observations: Observations, *, with_min_reclaim: bool = False
) -> list[Threshold]:
    """Return those that are not kept; *with_min_reclaim* they are higher by so much."""
    found = []
    for threshold in thresholds:
        observed = observations.get(threshold.signal)
        if observed is None:
            continue
        nanos = threshold.value.of(observed.capacity).nanos
        if with_min_reclaim and threshold.min_reclaim is not None:
            nanos += threshold.min_reclaim.of(observed.capacity).nanos
        if observed.available * NANO < nanos:
            found.append(threshold)
    return found


def _reclaim_functions(
    signal: Signal, filesystems: Filesystems, reclaim: Reclaim
) -> list[Callable[[], object]]:
    """Return what may free what *signal* is about, in order."""
    containers, images = reclaim.delete_unused_containers, reclaim.delete_unused_images
    if RESOURCES[signal] in (MEMORY, PIDS):
        return []
    match filesystems:
        case Filesystems.SHARED:
            return [containers, images]
        case Filesystems.IMAGEFS:
            return [] if signal in _NODEFS else [containers, images]
        case Filesystems.SPLIT:
            return [images] if signal in _IMAGEFS else [containers]
