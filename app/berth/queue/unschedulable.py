"""Pods that wait for a change in the cluster: rejected ones, and gated ones (spec §3.1, §3.2)."""

from collections.abc import Callable, Hashable, Iterable, Iterator

import msgspec

from berth.framework.pod_info import QueuedPodInfo
from berth.framework.pod_signature import PodSignature

Rejector = tuple[str, str]
"""Profile name and plugin name."""

SignatureOf = Callable[[QueuedPodInfo], PodSignature | None]
"""The signature of a pod; None: no other pod has the same."""


class SignatureGroup(msgspec.Struct, eq=False):
    """Waiting pods, at least one, of one signature and with the same rejectors.

    An event helps all of them or none; of gated ones those that their gate lets in.
    """

    key: Hashable
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
    at pods that it may help, and at one pod of each signature. The rejectors and the signature of
    a pod must not change while it is here: take it out first.
    """

    def __init__(
        self,
        signature_of: SignatureOf = lambda _queued: None,
        signature_for_hints: SignatureOf = lambda _queued: None,
    ) -> None:
        """*signature_for_hints* is that of gated pods."""
        self._signature_of = signature_of
        self._signature_for_hints = signature_for_hints
        self._pods: dict[str, tuple[QueuedPodInfo, SignatureGroup]] = {}
        self._groups: dict[Hashable, SignatureGroup] = {}
        self._by_rejector: dict[Rejector, dict[Hashable, SignatureGroup]] = {}
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
            group = self._groups[key] = SignatureGroup(key, _rejectors(queued), signature, gate)
            for rejector in group.rejectors:
                self._by_rejector.setdefault(rejector, {})[key] = group
        return group

    def remove(self, key: str) -> SignatureGroup | None:
        """Take out the pod of *key*; return what is left of its group."""
        found = self._pods.pop(key, None)
        if found is None:
            return None
        queued, group = found
        self._gated -= bool(queued.gating_plugin)
        del group.pods[key]
        group.to_ask.pop(key, None)
        if not group.pods:
            del self._groups[group.key]
            for rejector in group.rejectors:
                of_rejector = self._by_rejector[rejector]
                del of_rejector[group.key]
                if not of_rejector:
                    del self._by_rejector[rejector]
        return group

    def gate_may_open(self, key: str) -> None:
        """Have the gate of a pod asked about it, if it is gated."""
        queued, group = self._pods.get(key, (None, None))
        if queued is not None and group is not None and group.gate:
            group.to_ask[key] = queued

    def get(self, key: str) -> QueuedPodInfo | None:
        found = self._pods.get(key)
        return None if found is None else found[0]

    def rejected_by(self, rejectors: Iterable[Rejector]) -> list[SignatureGroup]:
        """Return the pods that wait for any of *rejectors*, each once."""
        if not self._by_rejector:  # as while the nodes are listed
            return []
        found: dict[Hashable, SignatureGroup] = {}
        for rejector in rejectors:
            found.update(self._by_rejector.get(rejector, ()))
        return list(found.values())

    def not_gated(self) -> list[QueuedPodInfo]:
        return [queued for queued in self if not queued.gating_plugin]

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
        found: dict[Hashable, set[str]] = {}
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
            found.setdefault(group.key, set()).add(key)
        assert {key: set(group.pods) for key, group in self._groups.items()} == found
        index: dict[Rejector, dict[Hashable, SignatureGroup]] = {}
        for group in self._groups.values():
            for rejector in group.rejectors:
                index.setdefault(rejector, {})[group.key] = group
        assert self._by_rejector == index
        assert self._gated == sum(1 for queued in self if queued.gating_plugin)


def _rejectors(queued: QueuedPodInfo) -> tuple[Rejector, ...]:
    profile = queued.pod.spec.scheduler_name
    if queued.gating_plugin:
        return ((profile, queued.gating_plugin),)
    rejected = queued.unschedulable_plugins | queued.pending_plugins
    return tuple((profile, plugin) for plugin in rejected)
