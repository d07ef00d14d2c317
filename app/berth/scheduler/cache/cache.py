"""The scheduler cache: the one writer of the live node table."""

import logging
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import group_of
from berth.kube.objects.sharing import NODE_PARTS, share
from berth.scheduler.cache.node_tree import NodeTree
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_groups import PodGroups
from berth.scheduler.framework.pod_info import PodInfo

log = logging.getLogger(__name__)


class CacheError(Exception):
    """The caller's view of a pod or node contradicts the cache's."""


class Cache:
    """Nodes and pods by name and uid, mirrored into :attr:`table` at every change.

    Every method is synchronous and leaves cache and table consistent. A pod may be on a node that
    is not known (yet, or any more): such a ghost node has pods but no row (spec §4.1).
    """

    def __init__(self, pod_groups: PodGroups | None = None) -> None:
        """*pod_groups* are told which pods are on nodes; None: nobody asks for groups."""
        self.table = NodeTable()
        self._pod_groups = pod_groups
        self._tree = NodeTree()
        self._order_is_stale = False
        self._pods: dict[str, PodInfo] = {}
        self.assumed: set[str] = set()
        """The UIDs of the pods that are assumed. For reading only."""
        self._ghosts: dict[str, dict[str, PodInfo]] = {}
        self._is_batching = False
        self._batch: list[tuple[int, PodInfo]] = []
        """Pods that the table is still to count, each with its row."""

    # Nodes.

    def add_node(self, node: Node) -> None:
        """Take in a node; one that is known already is updated."""
        name = node.metadata.name
        if name in self.table.row_of:
            self.update_node(node)
            return
        row = self.table.add_node(node, self._ghosts.pop(name, None))
        self._tree.add(node, row)
        self._order_is_stale = True

    def update_node(self, node: Node) -> None:
        """Take over a new version of a node; an unknown one is added.

        A changed zone takes effect in the order of nodes only when a node is next added or
        removed, as in kube-scheduler (spec §4.2).
        """
        row = self.table.row_of.get(node.metadata.name)
        if row is None:
            self.add_node(node)
            return
        old = self.table.nodes[row]
        assert old is not None, node.metadata.name
        share(old, node, NODE_PARTS)
        self._tree.update(old, node)
        self.table.set_node(row, node)

    def remove_node(self, name: str) -> None:
        """Forget a node; pods still on it live on under a ghost of that name."""
        row = self.table.row_of.get(name)
        if row is None:
            raise CacheError(f"node {name!r} is not in the cache")
        node = self.table.nodes[row]
        assert node is not None, name
        self._tree.remove(node)
        pods = self.table.remove_node(row)
        if pods:
            self._ghosts[name] = pods
        self._order_is_stale = True

    def refresh_order(self) -> None:
        """Bring ``table.order`` up to date; called at the start of every scheduling cycle."""
        if self._order_is_stale:
            self.table.order = np.array(self._tree.rows(), np.intp)
            self._order_is_stale = False

    def go_round(self, names: Iterable[str]) -> None:
        """Take it that the nodes came in the order of *names*, which are all of them."""
        self._tree = NodeTree()
        for name in names:
            row = self.table.row_of[name]
            node = self.table.nodes[row]
            assert node is not None, name
            self._tree.add(node, row)
        self._order_is_stale = True

    # Pods.

    def assume_pod(self, pod: PodInfo) -> None:
        """Count *pod* on ``pod.node_name`` before the API knows; CacheError if it is known."""
        if pod.uid in self._pods:
            raise CacheError(f"pod {pod.key} ({pod.uid}) is in the cache, it cannot be assumed")
        self._put(pod)
        self.assumed.add(pod.uid)

    def forget_pod(self, pod: PodInfo) -> None:
        """Undo :meth:`assume_pod`; nothing happens if the pod is not known.

        CacheError if it was confirmed meanwhile or is assumed on another node.
        """
        known = self._pods.get(pod.uid)
        if known is None:
            return
        if known.node_name != pod.node_name:
            raise CacheError(
                f"pod {pod.key} was assumed on {pod.node_name!r} but is on {known.node_name!r}"
            )
        if pod.uid not in self.assumed:
            raise CacheError(f"pod {pod.key} was not assumed, it cannot be forgotten")
        self._take(known)

    def add_pod(self, pod: PodInfo) -> None:
        """Take in a bound pod; confirms an assumed one, wherever it was assumed to be."""
        known = self._pods.get(pod.uid)
        if known is not None:
            if pod.uid not in self.assumed:
                raise CacheError(f"pod {pod.key} was already added")
            if known.node_name != pod.node_name:
                log.warning(
                    "pod was bound to another node than assumed",
                    extra={"pod": pod.key, "assumed": known.node_name, "node": pod.node_name},
                )
            self._replace(known, pod)
        else:
            self._put(pod)

    def update_pod(self, pod: PodInfo) -> None:
        """Take over a new version of a bound pod; CacheError if it is unknown or only assumed."""
        known = self._pods.get(pod.uid)
        if known is None or pod.uid in self.assumed:
            raise CacheError(f"pod {pod.key} was not added, it cannot be updated")
        self._replace(known, pod)

    def remove_pod(self, pod: Pod) -> None:
        """Forget a pod that is gone, assumed or not; CacheError if it is unknown."""
        known = self._pods.get(pod.metadata.uid)
        if known is None:
            raise CacheError(f"pod {pod.key} is not in the cache")
        self._take(known)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Have the table count the pods that are added in the block at its end, all at once.

        For many pods at a fraction of the cost. Nothing may be awaited in the block, and nothing
        be decided by the table.
        """
        if self._is_batching:
            yield
            return
        self._is_batching = True
        try:
            yield
        finally:
            self._is_batching = False
            self._count_batch()

    def _count_batch(self) -> None:
        if self._batch:
            rows, pods = zip(*self._batch, strict=True)
            self._batch.clear()
            self.table.add_pods(rows, pods)

    @contextmanager
    def without(self, uid: str) -> Iterator[None]:
        """Have everything counted as if there were no pod of that uid, until the end of the block.

        Nothing may be awaited in the block, and no pod be changed.
        """
        known = self._pods.get(uid)
        if known is None:
            yield
            return
        is_assumed = uid in self.assumed
        self._take(known)
        try:
            yield
        finally:
            self._put(known)
            if is_assumed:
                self.assumed.add(uid)

    @contextmanager
    def without_all(self, pods: Iterable[PodInfo]) -> Iterator[None]:
        """Have no node and no group count *pods*, until the end of the block.

        For thousands of pods at a fraction of the cost of :meth:`without`. Pods that are gone, or
        on a ghost node, make no difference. Nothing may be awaited in the block, and none of the
        pods be changed.
        """
        rows, known = [], []
        for pod in pods:
            cached = self._pods.get(pod.uid)
            row = None if cached is None else self.table.row_of.get(cached.node_name)
            if cached is not None and row is not None:
                rows.append(row)
                known.append(cached)
        groups = self._pod_groups
        in_groups = [pod for pod in known if groups is not None and group_of(pod.pod) is not None]
        self.table.remove_pods(rows, known)
        for pod in in_groups:
            assert groups is not None
            groups.take(pod)
        try:
            yield
        finally:
            self.table.add_pods(rows, known)
            for pod in in_groups:
                assert groups is not None
                groups.put(pod)

    def is_assumed(self, uid: str) -> bool:
        return uid in self.assumed

    def pod(self, uid: str) -> PodInfo | None:
        """Return the pod as the cache counts it, or None."""
        return self._pods.get(uid)

    def pods(self) -> Collection[PodInfo]:
        """Return all pods that count, assumed ones and those on ghost nodes too."""
        return self._pods.values()

    def ghosts(self) -> dict[str, list[PodInfo]]:
        """Return the pods on nodes that are not known, by name of the node."""
        return {name: list(pods.values()) for name, pods in self._ghosts.items()}

    def counts(self) -> dict[str, int]:
        """Sizes for metrics: nodes (ghosts included), pods, assumed pods (spec §4.7)."""
        return {
            "nodes": len(self.table) + len(self._ghosts),
            "pods": len(self._pods),
            "assumed_pods": len(self.assumed),
        }

    def _put(self, pod: PodInfo) -> None:
        if not pod.uid:
            raise CacheError(f"pod {pod.key} has no uid")
        self._pods[pod.uid] = pod
        if self._pod_groups is not None:
            self._pod_groups.put(pod)
        row = self.table.row_of.get(pod.node_name)
        if row is None:
            self._ghosts.setdefault(pod.node_name, {})[pod.uid] = pod
        elif self._is_batching:
            _ = pod.template.is_large  # what cannot be counted fails here, not for all of the batch
            self._batch.append((row, pod))
        else:
            self.table.add_pod(row, pod)

    def _replace(self, known: PodInfo, pod: PodInfo) -> None:
        self._count_batch()
        row = self.table.row_of.get(pod.node_name)
        if row is None or known.node_name != pod.node_name:
            self._take(known)
            self._put(pod)
            return
        self._pods[pod.uid] = pod
        self.assumed.discard(pod.uid)
        if self._pod_groups is not None:
            self._pod_groups.put(pod)
        self.table.update_pod(row, pod)

    def _take(self, known: PodInfo) -> None:
        self._count_batch()
        del self._pods[known.uid]
        self.assumed.discard(known.uid)
        if self._pod_groups is not None:
            self._pod_groups.take(known)
        row = self.table.row_of.get(known.node_name)
        if row is not None:
            self.table.remove_pod(row, known)
            return
        ghost = self._ghosts[known.node_name]
        del ghost[known.uid]
        if not ghost:
            del self._ghosts[known.node_name]

    def check_invariants(self) -> None:
        """Raise AssertionError if cache and table disagree; linear in the number of pods."""
        assert self.assumed <= self._pods.keys()
        assert sorted(self._tree.rows()) == sorted(self.table.row_of.values())
        on_nodes = {
            uid: name for name, row in self.table.row_of.items() for uid in self.table.pods[row]
        }
        on_ghosts = {uid: name for name, pods in self._ghosts.items() for uid in pods}
        assert all(self._ghosts.values()), "a ghost without pods"
        assert not self._ghosts.keys() & self.table.row_of.keys()
        where = {uid: pod.node_name for uid, pod in self._pods.items()}
        assert on_nodes | on_ghosts == where
        recount = NodeTable()
        for name, row in self.table.row_of.items():
            node = self.table.nodes[row]
            assert node is not None, name
            twin = recount.add_node(node, dict(self.table.pods[row]))
            for resource, index in self.table.resources.items():
                again = recount.resource_rows(resource)
                counted = self.table.requested[index, row]
                assert counted == (again[1][twin] if again else 0), (name, resource)
            assert self.table.pod_count[row] == recount.pod_count[twin], name
            assert (
                self.table.non_zero_requested[:, row] == recount.non_zero_requested[:, twin]
            ).all(), name
