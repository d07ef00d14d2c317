"""Nominated pods: they wait for room on a node that pods of no higher priority must leave them."""

from collections.abc import Callable
from functools import partial

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.nominations import Nominations
from berth.scheduler.framework.pod_info import PodInfo

PodLookup = Callable[[str], Pod | None]
"""The pod as the API server has it, by ``namespace/name``; None if there is none."""


class Nominator:
    """Nominated pods by node and by UID (spec §3.10)."""

    def __init__(self, pod_lookup: PodLookup) -> None:
        self._pod_lookup = pod_lookup
        self.nominations = Nominations()
        """To be read only."""
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
        if self.nominations.node_of(pod.uid) != node:
            self._remove(pod.uid, goes_to=node)
        others = tuple(o for o in self.nominations.get(node, ()) if o.uid != pod.uid)
        self.nominations.put(node, (*others, pod))

    def update_nominated_pod(self, old: Pod, new: PodInfo) -> None:
        """Follow a changed pod.

        If neither object has a nomination, one in memory is kept: its patch is still under way.
        Otherwise the new object wins.
        """
        unmentioned = not old.status.nominated_node_name and not new.pod.status.nominated_node_name
        self.add_nominated_pod(
            new, node_name=self.nominations.node_of(new.uid) if unmentioned else None
        )

    def delete_nominated_pod_if_exists(self, uid: str) -> None:
        """Forget the nomination of a pod, if it has one."""
        self._remove(uid)

    def assumed(self, pod: PodInfo) -> None:
        """Forget the nomination of a pod that counts on its node from now on."""
        self._remove(pod.uid, goes_to=pod.node_name)

    def _remove(self, uid: str, *, goes_to: str = "") -> None:
        node = self.nominations.node_of(uid)
        if node is None:
            return
        if node != goes_to:
            self.given_up += 1
        self.nominations.put(node, tuple(pod for pod in self.nominations[node] if pod.uid != uid))

    def suspend(self, uid: str) -> Callable[[], None]:
        """Have a pod be nominated to no node; return what restores it as it was.

        Nothing may be awaited before that is called, and several are restored in reverse order.
        """
        node = self.nominations.node_of(uid)
        if node is None:
            return lambda: None
        in_order = self.nominations[node]
        self.delete_nominated_pod_if_exists(uid)
        return partial(self.nominations.put, node, in_order)

    def nominated_node(self, uid: str) -> str | None:
        """Return the node that the pod is nominated to."""
        return self.nominations.node_of(uid)

    def nominated_nodes(self) -> dict[str, str]:
        """Return the nodes that pods are nominated to, by UID."""
        return {pod.uid: node for node, pods in self.nominations.items() for pod in pods}

    def nominated_pods_for_node(self, node_name: str) -> tuple[PodInfo, ...]:
        """Return the pods nominated to a node, in order of nomination."""
        return self.nominations.get(node_name, ())

    def nominated_pods(self) -> Nominations:
        """Return all nominated pods as they are now, by node in order of nomination."""
        return self.nominations.copy()

    def __len__(self) -> int:
        """The number of nominated pods."""
        return self.nominations.num_pods

    def check_invariants(self) -> None:
        """Raise AssertionError if two views disagree; for tests and debugging."""
        self.nominations.check_invariants()
