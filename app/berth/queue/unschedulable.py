"""Pods that wait for a change in the cluster: rejected ones, and gated ones (spec §3.1, §3.2)."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from berth.framework.pod_class import PodClass
from berth.framework.pod_info import QueuedPodInfo

Rejector = tuple[str, str]
"""Profile name and plugin name."""

Classify = Callable[[QueuedPodInfo], PodClass | None]
"""The class of a pod; None: it is like no other."""


@dataclass(slots=True, eq=False)
class Alike:
    """Waiting pods, at least one, that every event helps or none: one class, same rejectors."""

    key: Hashable
    rejectors: tuple[Rejector, ...]
    pod_class: PodClass | None
    pods: dict[str, QueuedPodInfo] = field(default_factory=dict)


class UnschedulablePods:
    """Waiting pods by key, and by who must change its mind for them to be tried again.

    That is any plugin that rejected the pod or, for a gated pod, the gating plugin alone. An event
    then looks only at pods that it may help, and of those that are alike at one. The rejectors of a
    pod must not change while it is here, nor its class: take it out first.
    """

    def __init__(self, classify: Classify = lambda _queued: None) -> None:
        self._classify = classify
        self._pods: dict[str, tuple[QueuedPodInfo, Alike]] = {}
        self._alike: dict[Hashable, Alike] = {}
        self._by_rejector: dict[Rejector, dict[Hashable, Alike]] = {}
        self._gated = 0

    def add(self, queued: QueuedPodInfo) -> Alike:
        """Let *queued* wait; return it with those that are alike."""
        alike = self._alike_of(queued)
        alike.pods[queued.key] = queued
        self._pods[queued.key] = queued, alike
        self._gated += bool(queued.gating_plugin)
        return alike

    def _alike_of(self, queued: QueuedPodInfo) -> Alike:
        key: Hashable = queued.key
        pod_class = None if queued.gating_plugin else self._classify(queued)
        if pod_class is not None:
            rejectors = frozenset(queued.unschedulable_plugins), frozenset(queued.pending_plugins)
            key = pod_class, *rejectors
        alike = self._alike.get(key)
        if alike is None:
            alike = self._alike[key] = Alike(key, _rejectors(queued), pod_class)
            for rejector in alike.rejectors:
                self._by_rejector.setdefault(rejector, {})[key] = alike
        return alike

    def remove(self, key: str) -> Alike | None:
        """Take out the pod of *key*; return who is left of those that are alike."""
        found = self._pods.pop(key, None)
        if found is None:
            return None
        queued, alike = found
        self._gated -= bool(queued.gating_plugin)
        del alike.pods[key]
        if not alike.pods:
            del self._alike[alike.key]
            for rejector in alike.rejectors:
                of_rejector = self._by_rejector[rejector]
                del of_rejector[alike.key]
                if not of_rejector:
                    del self._by_rejector[rejector]
        return alike

    def get(self, key: str) -> QueuedPodInfo | None:
        found = self._pods.get(key)
        return None if found is None else found[0]

    def rejected_by(self, rejectors: Iterable[Rejector]) -> list[Alike]:
        """Return the pods that wait for any of *rejectors*, each once."""
        found: dict[Hashable, Alike] = {}
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
        for key, (queued, alike) in self._pods.items():
            assert queued.key == key, (queued.key, key)
            assert queued.unschedulable_plugins or queued.pending_plugins, f"{key} waits for nobody"
            assert alike is self._alike_of(queued), f"{key} has changed"
            assert alike.pods[key] is queued, key
            assert set(alike.rejectors) == set(_rejectors(queued)), key
            found.setdefault(alike.key, set()).add(key)
        assert {key: set(alike.pods) for key, alike in self._alike.items()} == found
        index: dict[Rejector, dict[Hashable, Alike]] = {}
        for alike in self._alike.values():
            for rejector in alike.rejectors:
                index.setdefault(rejector, {})[alike.key] = alike
        assert self._by_rejector == index
        assert self._gated == sum(1 for queued in self if queued.gating_plugin)


def _rejectors(queued: QueuedPodInfo) -> tuple[Rejector, ...]:
    profile = queued.pod.spec.scheduler_name
    if queued.gating_plugin:
        return ((profile, queued.gating_plugin),)
    rejected = queued.unschedulable_plugins | queued.pending_plugins
    return tuple((profile, plugin) for plugin in rejected)
