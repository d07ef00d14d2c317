"""Pods that wait for a change in the cluster: rejected ones, and gated ones (spec §3.1, §3.2)."""

from collections.abc import Iterable, Iterator

from app.framework.pod_info import QueuedPodInfo

Rejector = tuple[str, str]
"""Profile name and plugin name."""


class UnschedulablePods:
    """Waiting pods by key, and by who must change its mind for them to be tried again.

    That is any plugin that rejected the pod or, for a gated pod, the gating plugin alone. An event
    then looks only at pods that it may help. The rejectors of a pod must not change while it is
    here: take it out first.
    """

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPodInfo] = {}
        self._by_rejector: dict[Rejector, dict[str, QueuedPodInfo]] = {}
        self._gated = 0

    def add(self, queued: QueuedPodInfo) -> None:
        key = queued.key
        self._pods[key] = queued
        self._gated += bool(queued.gating_plugin)
        for rejector in _rejectors(queued):
            self._by_rejector.setdefault(rejector, {})[key] = queued

    def remove(self, key: str) -> QueuedPodInfo | None:
        queued = self._pods.pop(key, None)
        if queued is None:
            return None
        self._gated -= bool(queued.gating_plugin)
        for rejector in _rejectors(queued):
            pods = self._by_rejector[rejector]
            del pods[key]
            if not pods:
                del self._by_rejector[rejector]
        return queued

    def get(self, key: str) -> QueuedPodInfo | None:
        return self._pods.get(key)

    def rejected_by(self, rejectors: Iterable[Rejector]) -> list[QueuedPodInfo]:
        """Return the pods that wait for any of *rejectors*, each once."""
        found: dict[str, QueuedPodInfo] = {}
        for rejector in rejectors:
            found.update(self._by_rejector.get(rejector, ()))
        return list(found.values())

    def not_gated(self) -> list[QueuedPodInfo]:
        return [queued for queued in self._pods.values() if not queued.gating_plugin]

    @property
    def gated_count(self) -> int:
        return self._gated

    def __len__(self) -> int:
        """All pods here, gated ones included."""
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._pods.values())

    def check_invariants(self) -> None:
        """Raise AssertionError if pods and index disagree; for tests and debugging."""
        index: dict[Rejector, dict[str, QueuedPodInfo]] = {}
        for key, queued in self._pods.items():
            assert queued.key == key, (queued.key, key)
            assert queued.unschedulable_plugins or queued.pending_plugins, f"{key} waits for nobody"
            for rejector in _rejectors(queued):
                index.setdefault(rejector, {})[key] = queued
        assert self._by_rejector == index
        assert self._gated == sum(1 for queued in self if queued.gating_plugin)


def _rejectors(queued: QueuedPodInfo) -> list[Rejector]:
    profile = queued.pod.spec.scheduler_name
    if queued.gating_plugin:
        return [(profile, queued.gating_plugin)]
    return [(profile, plugin) for plugin in queued.unschedulable_plugins | queued.pending_plugins]
