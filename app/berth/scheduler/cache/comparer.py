"""The comparison of the cache with the API (spec §4.7)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from berth.kube.objects.pod import Pod
from berth.scheduler.cache.view import CacheView
from berth.scheduler.framework.pod_info import PodInfo


class Placed(NamedTuple):
    """What is compared of a pod of the API; no node: it waits for one."""

    uid: str
    key: str
    node_name: str


class Counted(msgspec.Struct, frozen=True):
    """What a cache counted at one moment; does not follow it, so any thread may look."""

    nodes: frozenset[str]
    pods: Mapping[str, PodInfo]
    """By UID."""
    assumed: frozenset[str]
    """UIDs of pods that may be ahead of the API."""

    @classmethod
    def by(cls, cache: CacheView) -> "Counted":
        pods = {pod.uid: pod for pod in cache.pods()}
        return cls(frozenset(cache.table.row_of), pods, frozenset(filter(cache.is_assumed, pods)))


class Comparison(msgspec.Struct, frozen=True):
    """How cache and API differ; everything is sorted, and empty when they agree."""

    missing_nodes: Sequence[str] = ()
    """Nodes of the API that the cache does not know."""
    redundant_nodes: Sequence[str] = ()
    """Nodes that only the cache knows."""
    missing_pods: Sequence[str] = ()
    """Bound pods of the API that the cache does not count."""
    redundant_pods: Sequence[str] = ()
    """Pods that the cache counts on a node and the API does not."""
    misplaced_pods: Sequence[str] = ()
    """Pods that the API has on another node than the cache, and which."""

    @property
    def is_clean(self) -> bool:
        return self == Comparison()

    def lines(self) -> list[str]:
        """Tell the differences in lines for people."""
        differences = (
            ("nodes missing in the cache", self.missing_nodes),
            ("nodes only in the cache", self.redundant_nodes),
            ("pods missing in the cache", self.missing_pods),
            ("pods only in the cache", self.redundant_pods),
            ("pods on another node", self.misplaced_pods),
        )
        return [f"{what}: {', '.join(names)}" for what, names in differences if names]


def placed(pods: Iterable[Pod]) -> list[Placed]:
    """Return what is to be compared of *pods*: finished ones count nowhere."""
    return [
        Placed(pod.metadata.uid, pod.key, pod.spec.node_name)
        for pod in pods
        if not pod.is_terminated
    ]


def compare(counted: Counted, *, nodes: Iterable[str], pods: Iterable[Placed]) -> Comparison:
    """Compare what is *counted* with all *nodes*, by name, and *pods* of the API.

    A pod is the one of its uid, so that one recreated under its name is both missing and redundant.
    An assumed pod may be ahead of the API, which then has it unbound.
    """
    there = {pod.uid: pod for pod in pods}
    bound = {uid: pod for uid, pod in there.items() if pod.node_name}
    known, nodes_there = counted.pods, set(nodes)
    return Comparison(
        missing_nodes=tuple(sorted(nodes_there - counted.nodes)),
        redundant_nodes=tuple(sorted(counted.nodes - nodes_there)),
        missing_pods=tuple(sorted(pod.key for uid, pod in bound.items() if uid not in known)),
        redundant_pods=tuple(
            sorted(
                pod.key
                for uid, pod in known.items()
                if uid not in bound and not (uid in there and uid in counted.assumed)
            )
        ),
        misplaced_pods=tuple(
            sorted(
                f"{pod.key} is on {pod.node_name}, not on {known[uid].node_name}"
                for uid, pod in bound.items()
                if uid in known and known[uid].node_name != pod.node_name
            )
        ),
    )
