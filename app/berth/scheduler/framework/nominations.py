"""Nominations of pods: by node, and by row for those who must leave them room."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import Ints

KEPT: Final = 4
"""Priorities for which it is kept who is beside."""

_versions = count(1)


class Beside(NamedTuple):
    """The nominated pods that a pod must leave room for; valid in an attempt."""

    pods: dict[int, tuple[PodInfo, ...]]
    """By row, as if they were there."""
    version: Ints
    """By row, a number that stays while its pods do, and never comes again; 0: there are none.

    It is about those of at least one priority.
    """
    own: int | None = None
    """The row that the pod is nominated to itself. ``version`` is not about its pods."""

    def put(self, row: int, pods: tuple[PodInfo, ...], version: int) -> None:
        """Have *pods* be those on *row*; only :class:`Nominations` calls this."""
        self.version[row] = version if pods else 0
        if pods:
            self.pods[row] = pods
        else:
            self.pods.pop(row, None)


class Nominations(Mapping[str, tuple[PodInfo, ...]]):
    """Nominated pods by node, in order of nomination, as if they were there.

    What filters ask of them is kept, and follows each change.
    """

    def __init__(self, by_node: Mapping[str, Sequence[PodInfo]] | None = None) -> None:
        self._by_node: dict[str, tuple[PodInfo, ...]] = {}
        self._node_of: dict[str, str] = {}
        self._version_of: dict[str, int] = {}
        """By node, since when the same pods are nominated there, whatever becomes of its row."""
        self._nodes: NodeTable | None = None
        self._node_generation = -1
        self._beside: dict[int, Beside] = {}
        """By priority; of the rows of ``_nodes`` as of that generation."""
        for node, pods in (by_node or {}).items():
            self.put(node, tuple(pods))

    @classmethod
    def of(cls, by_node: Mapping[str, Sequence[PodInfo]]) -> "Nominations":
        """Return *by_node* as nominations; itself if that is what it is."""
        return by_node if isinstance(by_node, Nominations) else cls(by_node)

    def put(self, node: str, pods: tuple[PodInfo, ...]) -> None:
        """Have *pods*, which are nominated nowhere else, be all that are nominated to *node*."""
        for pod in self._by_node.get(node, ()):
            del self._node_of[pod.uid]
        if pods:
            pods = tuple(pod if pod.node_name == node else pod.on_node(node) for pod in pods)
            self._by_node[node], self._version_of[node] = pods, next(_versions)
            self._node_of |= {pod.uid: node for pod in pods}
        else:
            self._by_node.pop(node, None)
            self._version_of.pop(node, None)
        if self._nodes is None or self._nodes.node_generation != self._node_generation:
            self._beside.clear()
        elif (row := self._nodes.row_of.get(node)) is not None:
            version = self._version_of.get(node, 0)
            for priority, beside in self._beside.items():
                beside.put(row, _at_least(priority, pods), version)

    def node_of(self, uid: str) -> str | None:
        """Return the node that the pod is nominated to."""
        return self._node_of.get(uid)

    def beside(self, pod: PodInfo, nodes: NodeTable) -> Beside:
        """Return who *pod* must leave room for on *nodes*: others of at least its priority."""
        if self._nodes is not nodes or self._node_generation != nodes.node_generation:
            self._nodes, self._node_generation = nodes, nodes.node_generation
            self._beside.clear()
        priority = pod.priority
        beside = self._beside.get(priority)
        if beside is None:
            if len(self._beside) >= KEPT:
                del self._beside[next(iter(self._beside))]
            beside = self._beside[priority] = Beside({}, np.zeros(nodes.size, np.int64))
            for node, pods in self._by_node.items():
                if node in nodes.row_of:
                    version = self._version_of[node]
                    beside.put(nodes.row_of[node], _at_least(priority, pods), version)
        own = nodes.row_of.get(self._node_of.get(pod.uid, ""))
        if own is None or own not in beside.pods:
            return beside
        by_row = beside.pods.copy()
        others = tuple(other for other in by_row.pop(own) if other.uid != pod.uid)
        if others:
            by_row[own] = others
        return Beside(by_row, beside.version, own)

    def copy(self) -> "Nominations":
        return Nominations(self._by_node)

    @property
    def num_pods(self) -> int:
        return len(self._node_of)

    def __getitem__(self, node: str) -> tuple[PodInfo, ...]:
        return self._by_node[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_node)

    def __len__(self) -> int:
        """The number of nodes that pods are nominated to."""
        return len(self._by_node)

    def check_invariants(self) -> None:
        """Raise AssertionError if two views disagree; for tests and debugging."""
        by_node = [(pod.uid, node) for node, pods in self._by_node.items() for pod in pods]
        assert dict(by_node) == self._node_of
        assert len(by_node) == len(self._node_of)
        assert all(self._by_node.values())
        assert self._version_of.keys() == self._by_node.keys()


def _at_least(priority: int, pods: tuple[PodInfo, ...]) -> tuple[PodInfo, ...]:
    return tuple(pod for pod in pods if pod.priority >= priority)
