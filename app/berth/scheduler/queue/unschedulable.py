"""Pods that wait for a change in the cluster: rejected ones, and gated ones (spec §3.1, §3.2)."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import msgspec

from berth.scheduler.framework.events import HintIndex
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.pod_signature import PodSignature
from berth.scheduler.queue.hints import EventHints, representatives
from berth.scheduler.queue.rejected_pods import RejectedPods, Rejector

SignatureOf = Callable[[QueuedPodInfo], PodSignature | None]
"""The signature of a pod; None: no other pod has the same."""


class SignatureGroup(msgspec.Struct, eq=False):
    """Waiting pods, at least one, of one signature and with the same rejectors.

    An event helps all of them or none; of gated ones those that their gate lets in.
    """

    key: Hashable
    number: int
    """Counts up from the first group."""
    rejectors: tuple[Rejector, ...]
    signature: PodSignature | None
    """None also for gated pods, which were not all tried."""
    gate: str
    """The plugin that gates all of them; empty if they are not gated."""
    pods: dict[str, QueuedPodInfo] = msgspec.field(default_factory=dict)
    to_ask: dict[str, QueuedPodInfo] = msgspec.field(default_factory=dict)
    """The gated pods that the gate may let in; it is known to refuse the others."""


class UnschedulablePods:
    """Waiting pods by key, and by the plugins whose answer must change first.

    These are all plugins that rejected the pod, or the gating plugin alone. So an event looks only
    at pods that it may help, as far as the indexes of hints say, and at one pod of each signature.
    The rejectors, the signature and the template of a pod must not change while it is here: take it
    out first.
    """

    def __init__(
        self,
        signature_of: SignatureOf = lambda _queued: None,
        signature_for_hints: SignatureOf = lambda _queued: None,
        indexes_of: Callable[[Rejector], Iterable[HintIndex]] = lambda _rejector: (),
    ) -> None:
        """*signature_for_hints* is that of gated pods.

        *indexes_of* says what finds the pods that a plugin rejected. When it says something else,
        every event of the plugin finds those that wait already.
        """
        self._signature_of = signature_of
        self._signature_for_hints = signature_for_hints
        self._pods: dict[str, tuple[QueuedPodInfo, SignatureGroup]] = {}
        self._groups: dict[Hashable, SignatureGroup] = {}
        self._by_rejector: dict[Rejector, RejectedPods[SignatureGroup]] = {}
        self._indexes_of = indexes_of
        self._groups_ever = 0
        self._gated = 0

    def add(self, queued: QueuedPodInfo) -> SignatureGroup:
        """Let *queued* wait; return its group."""
        group = self._group_of(queued)
        group.pods[queued.key] = queued
        if group.gate:
            group.to_ask[queued.key] = queued
        self._pods[queued.key] = queued, group
        self._gated += bool(queued.gating_plugin)
        return group

    def _group_of(self, queued: QueuedPodInfo) -> SignatureGroup:
        gate = queued.gating_plugin
        known = self._signature_for_hints(queued) if gate else self._signature_of(queued)
        signature = None if gate else known
        key: Hashable = queued.key
        if known is not None:
            rejectors = frozenset(queued.unschedulable_plugins), frozenset(queued.pending_plugins)
            key = known, gate, *rejectors
        group = self._groups.get(key)
        if group is None:
            self._groups_ever += 1
            group = self._groups[key] = SignatureGroup(
                key, self._groups_ever, _rejectors(queued), signature, gate
            )
            pod = _found_by_rejectors(queued)
            for rejector in group.rejectors:
                rejected = self._by_rejector.get(rejector)
                if rejected is None:
                    rejected = RejectedPods(rejector, self._indexes_of(rejector))
                    self._by_rejector[rejector] = rejected
                rejected.add(group, pod)
        return group

    def remove(self, key: str) -> SignatureGroup | None:
        """Take out the pod of *key*; return what is left of its group."""
        entry = self._pods.pop(key, None)
        if entry is None:
            return None
        queued, group = entry
        self._gated -= bool(queued.gating_plugin)
        del group.pods[key]
        group.to_ask.pop(key, None)
        if not group.pods:
            del self._groups[group.key]
            for rejector in group.rejectors:
                rejected = self._by_rejector[rejector]
                rejected.remove(group)
                if not rejected:
                    del self._by_rejector[rejector]
        return group

    def gate_may_open(self, key: str) -> None:
        """Have the gate of a pod asked about it, if it is gated."""
        queued, group = self._pods.get(key, (None, None))
        if queued is not None and group is not None and group.gate:
            group.to_ask[key] = queued

    def get(self, key: str) -> QueuedPodInfo | None:
        entry = self._pods.get(key)
        return None if entry is None else entry[0]

    def that_may_be_helped(self, hints: EventHints, *, old: Any, new: Any) -> list[SignatureGroup]:
        """Return the pods whose hints are to be asked about an event, each once, oldest first."""
        if not self._by_rejector:  # as while the nodes are listed
            return []
        groups: set[SignatureGroup] = set()
        for rejector, indexes in hints.by_rejector.items():
            rejected = self._by_rejector.get(rejector)
            if rejected is not None:
                groups.update(rejected.found_by(indexes, old, new))
        return sorted(groups, key=_number)

    def not_gated(self) -> list[QueuedPodInfo]:
        if not self._gated:
            return [queued for queued, _ in self._pods.values()]
        return [queued for queued in self if not queued.gating_plugin]

    def gated(self) -> list[QueuedPodInfo]:
        return [queued for queued in self if queued.gating_plugin] if self._gated else []

    @property
    def gated_count(self) -> int:
        return self._gated

    def __len__(self) -> int:
        """All pods here, gated ones included."""
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (queued for queued, _ in self._pods.values())

    def check_invariants(self) -> None:
        """Raise AssertionError if pods and index disagree; for tests and debugging."""
        keys_of_groups: dict[Hashable, set[str]] = {}
        for key, (queued, group) in self._pods.items():
            assert queued.key == key, (queued.key, key)
            assert queued.unschedulable_plugins or queued.pending_plugins, (
                f"{key} waits for no plugin"
            )
            assert group is self._group_of(queued), f"{key} has changed"
            assert group.pods[key] is queued, key
            assert set(group.rejectors) == set(_rejectors(queued)), key
            assert group.gate == queued.gating_plugin, key
            assert group.gate or not group.to_ask, key
            assert group.to_ask.items() <= group.pods.items(), key
            keys_of_groups.setdefault(group.key, set()).add(key)
        assert {key: set(group.pods) for key, group in self._groups.items()} == keys_of_groups
        by_rejector: dict[Rejector, set[SignatureGroup]] = {}
        for group in self._groups.values():
            for rejector in group.rejectors:
                by_rejector.setdefault(rejector, set()).add(group)
        assert by_rejector == {
            rejector: set(rejected.found_by(None, None, None))
            for rejector, rejected in self._by_rejector.items()
        }
        assert self._gated == sum(1 for queued in self if queued.gating_plugin)


def _rejectors(queued: QueuedPodInfo) -> tuple[Rejector, ...]:
    profile = queued.pod.spec.scheduler_name
    if queued.gating_plugin:
        return ((profile, queued.gating_plugin),)
    rejected = queued.unschedulable_plugins | queued.pending_plugins
    return tuple((profile, plugin) for plugin in rejected)


def _found_by_rejectors(queued: QueuedPodInfo) -> PodInfo | None:
    """Return the pod by which the indexes of its rejectors find *queued*; None: all events do.

    A gated pod waits for events of its gate, but the hints of all who rejected it are asked then.
    Of a group, one pod stands for the others if they are alike.
    """
    gate = queued.gating_plugin
    if gate and (queued.unschedulable_plugins | queued.pending_plugins) != {gate}:
        return None
    pods = representatives(queued)
    return pods[0] if len(pods) == 1 else None


def _number(group: SignatureGroup) -> int:
    return group.number
