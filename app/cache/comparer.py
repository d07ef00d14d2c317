"""Whether the cache holds what the API says (spec §4.7)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.cache.cache import Cache
from app.objects.node import Node
from app.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Comparison:
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
        found = (
            ("nodes missing in the cache", self.missing_nodes),
            ("nodes only in the cache", self.redundant_nodes),
            ("pods missing in the cache", self.missing_pods),
            ("pods only in the cache", self.redundant_pods),
            ("pods on another node", self.misplaced_pods),
        )
        return [f"{what}: {', '.join(names)}" for what, names in found if names]


def compare(cache: Cache, *, nodes: Iterable[Node], pods: Iterable[Pod]) -> Comparison:
    """Compare *cache* with all *nodes* and *pods* of the API.

    A pod is the one of its uid, so that one recreated under its name is both missing and redundant.
    An assumed pod may be ahead of the API, which then has it unbound; finished pods count nowhere.
    """
    there = {pod.metadata.uid: pod for pod in pods if not pod.is_terminated}
    bound = {uid: pod for uid, pod in there.items() if pod.spec.node_name}
    counted = {pod.uid: pod for pod in cache.pods()}
    known_nodes, nodes_there = set(cache.table.row_of), {node.metadata.name for node in nodes}
    return Comparison(
        missing_nodes=tuple(sorted(nodes_there - known_nodes)),
        redundant_nodes=tuple(sorted(known_nodes - nodes_there)),
        missing_pods=tuple(sorted(pod.key for uid, pod in bound.items() if uid not in counted)),
        redundant_pods=tuple(
            sorted(
                pod.key
                for uid, pod in counted.items()
                if uid not in bound and not (uid in there and cache.is_assumed(uid))
            )
        ),
        misplaced_pods=tuple(
            sorted(
                f"{pod.key} is on {pod.spec.node_name}, not on {counted[uid].node_name}"
                for uid, pod in bound.items()
                if uid in counted and counted[uid].node_name != pod.spec.node_name
            )
        ),
    )
