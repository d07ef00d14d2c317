"""Nominated pods: they wait for room on a node that pods of no higher priority must leave them."""

from collections.abc import Callable

from berth.framework.pod_info import PodInfo
from berth.objects.pod import Pod

PodLookup = Callable[[str], Pod | None]
"""The pod as the API server has it, by ``namespace/name``; None if there is none."""


class Nominator:
    """Nominated pods by node and by UID (spec §3.10)."""

    def __init__(self, pod_lookup: PodLookup) -> None:
        self._pod_lookup = pod_lookup
        self._node_of: dict[str, str] = {}
        self._by_node: dict[str, tuple[PodInfo, ...]] = {}
        """In order of nomination, as if they were on the node."""
        self.given_up = 0
        """How many nominations have ended so that the room may be free for others."""

    def add_nominated_pod(self, pod: PodInfo, *, node_name: str | None = None) -> None:
        """Nominate *pod* to *node_name*; None: to what its status says, "": to no node.

        This replaces an older nomination. A pod that is gone or bound is not nominated.
        """
        node = pod.pod.status.nominated_node_name if node_name is None else node_name
        current = self._pod_lookup(pod.key) if node else None
        if current is None or current.spec.node_name:
            self.delete_nominated_pod_if_exists(pod.uid)
            return
        self._remove(pod.uid, goes_to=node)
        self._node_of[pod.uid] = node
        self._by_node[node] = (*self._by_node.get(node, ()), pod.on_node(node))

    def update_nominated_pod(self, old: Pod, new: PodInfo) -> None:
        """Follow a changed pod.

        If neither object has a nomination, one in memory is kept: its patch is still under way.
        Otherwise the new object wins.
        """
        unmentioned = not old.status.nominated_node_name and not new.pod.status.nominated_node_name
        self.add_nominated_pod(new, node_name=self._node_of.get(new.uid) if unmentioned else None)

    def delete_nominated_pod_if_exists(self, uid: str) -> None:
        """Forget the nomination of a pod, if it has one."""
        self._remove(uid)

    def assumed(self, pod: PodInfo) -> None:
        """Forget the nomination of a pod that counts on its node from now on."""
        self._remove(pod.uid, goes_to=pod.node_name)

    def _remove(self, uid: str, *, goes_to: str = "") -> None:
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        if node != goes_to:
            self.given_up += 1
        left = tuple(pod for pod in self._by_node[node] if pod.uid != uid)
        if left:
            self._by_node[node] = left
        else:
            del self._by_node[node]

    def suspend(self, uid: str) -> Callable[[], None]:
        """Have a pod be nominated to no node; return what restores it as it was.

        Nothing may be awaited before that is called, and several are restored in reverse order.
        """
        node = self._node_of.get(uid)
        if node is None:
            return lambda: None
        in_order = self._by_node[node]
        self.delete_nominated_pod_if_exists(uid)

        def restore() -> None:
            self._node_of[uid], self._by_node[node] = node, in_order

        return restore

    def nominated_node(self, uid: str) -> str | None:
        """Return the node that the pod is nominated to."""
        return self._node_of.get(uid)

    def nominated_pods_for_node(self, node_name: str) -> tuple[PodInfo, ...]:
        """Return the pods nominated to a node, in order of nomination."""
        return self._by_node.get(node_name, ())

    def nominated_pods(self) -> dict[str, tuple[PodInfo, ...]]:
        """Return all nominated pods by node, in order of nomination."""
        return self._by_node.copy()

    def __len__(self) -> int:
        """The number of nominated pods."""
        return len(self._node_of)

    def check_invariants(self) -> None:
        """Raise AssertionError if the two views disagree; for tests and debugging."""
        by_node = {pod.uid: node for node, pods in self._by_node.items() for pod in pods}
        assert by_node == self._node_of
        assert all(self._by_node.values())
        assert len(by_node) == sum(map(len, self._by_node.values()))
