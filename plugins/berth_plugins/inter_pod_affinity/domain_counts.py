"""Sums over topology domains: the sets of nodes that have one value of a label."""

from collections.abc import Container, Iterable

import numpy as np

from berth.scheduler.framework.label_columns import Ids
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_counters import Counted
from berth.scheduler.framework.pods_by_domain import PodsByDomain
from berth.scheduler.framework.verdict import Ints, Mask, Rows


class DomainCounts:
    """For each of some label keys, how many pods of some kinds each domain has.

    Nodes without a label are in no domain of it and count for nothing. Numbers are kept by the ids
    of label values, which a part of a table shares with the whole.

    For some keys each node that has the label may be a domain of its own, whatever its value. Pods
    of nodes without the label are in no domain then, but they are there (1.37 spec N12.3).

    In an overlay each row has its own opinion of the numbers of its own domains, as if the pods
    that come and go on it were all that changes.
    """

    __slots__ = ("_by_key", "_by_node", "_changes", "_found_on", "_has_pods", "_with_any")

    def __init__(self, by_node: Container[str] = ()) -> None:
        """For the keys *by_node* each node is a domain."""
        self._by_node = by_node
        self._by_key: dict[str, Ints] = {}
        """By key and domain, as they are; clones share them."""
        self._changes: dict[str, Ints] = {}
        """By key and row of an overlay."""
        self._has_pods = False
        """Whether any domain has some, as they are."""
        self._found_on: NodeTable | None = None
        self._with_any: dict[str, Mask] = {}
        """By key, the rows of ``_found_on`` whose domain has any pods; clones do without."""

    @classmethod
    def of_pods(
        cls,
        nodes: NodeTable,
        counted: Iterable[tuple[str, Counted]],
        *,
        by_node: Container[str] = (),
    ) -> "DomainCounts":
        """Count pods of some kinds, each for one label key, in the domains of that key."""
        sums = cls(by_node)
        sums._found_on = nodes
        for key, counters in counted:
            if key in by_node:
                counts = nodes.pod_counters.counts(counters).copy()
                with_any = (counts > 0) & nodes.labels.has(key)
                has_pods = bool(counts.any())
            else:
                pods = pods_by_domain(nodes, key, counters)
                counts, with_any, has_pods = pods.counts, pods.rows_over(0), bool(pods)
            if key in sums._by_key:
                counts = counts + sums._by_key[key]
                with_any = with_any | sums._with_any[key]
            sums._by_key[key], sums._with_any[key] = counts, with_any
            sums._has_pods = sums._has_pods or has_pods
        return sums

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple({**self._by_key, **self._changes})

    def __bool__(self) -> bool:
        """Whether any domain has pods, or had some before the overlay."""
        return self._has_pods or bool(self._changes)

    def of_rows(self, nodes: NodeTable, key: str) -> Ints:
        """Return for each row the number of its domain of *key*, 0 where it is in none."""
        counts = self._of_rows(nodes, key)
        return counts * nodes.labels.has(key) if key in self._by_node else counts

    def _of_rows(self, nodes: NodeTable, key: str) -> Ints:
        """Return the same, but also the pods of nodes that are domains without the label."""
        changes, known = self._changes.get(key), self._by_key.get(key)
        if known is None:
            return nodes.no_rows().astype(np.int64) if changes is None else changes
        counts = known.take(self._domains(nodes, key))
        return counts if changes is None else counts + changes

    def _domains(self, nodes: NodeTable, key: str) -> Ids:
        return nodes.labels.node_ids() if key in self._by_node else nodes.labels.ids(key)

    def rows_with(self, nodes: NodeTable, key: str) -> Mask:
        """Return the rows that have pods in their domain of *key*. Not to be changed."""
        if nodes is self._found_on and not self._changes and key in self._with_any:
            return self._with_any[key]
        return self.of_rows(nodes, key) > 0

    def rows_with_any(self, nodes: NodeTable) -> Mask:
        """Return the rows that have pods in one of their domains. Not to be changed."""
        rows_of_keys = [self.rows_with(nodes, key) for key in self.keys]
        if len(rows_of_keys) == 1:
            return rows_of_keys[0]
        union: Mask = np.logical_or.reduce(rows_of_keys) if rows_of_keys else nodes.no_rows()
        return union

    def rows_that_see_none(self, nodes: NodeTable) -> Mask | None:
        """Return the rows in whose eyes no domain anywhere has a number other than 0; None: no row.

        The caller may change the answer.
        """
        if not self._changes:
            return None if self._has_pods else np.ones(nodes.size, bool)
        others = np.full(nodes.size, sum(map(np.count_nonzero, self._by_key.values())))
        own = nodes.no_rows()
        for key in self._changes:
            known = self._by_key.get(key)
            if known is not None:
                others -= known.take(self._domains(nodes, key)) != 0
            own |= self._of_rows(nodes, key) != 0
        none: Mask = (others == 0) & ~own
        return none

    def change(self, nodes: NodeTable, key: str, rows: Rows, *, by: Ints) -> None:
        """Add *by* to the domains of *rows* of an overlay, in the eyes of each row."""
        changes = self._changes.get(key)
        if changes is None:
            changes = self._changes[key] = np.zeros(nodes.size, np.int64)
        if key not in self._by_node:
            by = np.where(nodes.labels.ids(key)[rows] != 0, by, 0)
        np.add.at(changes, rows, by)

    def clone(self) -> "DomainCounts":
        twin = DomainCounts(self._by_node)
        twin._by_key, twin._has_pods = self._by_key, self._has_pods
        twin._changes = {key: changes.copy() for key, changes in self._changes.items()}
        return twin

    def take_rows(self, rows: Rows) -> "DomainCounts":
        twin = DomainCounts(self._by_node)
        twin._by_key, twin._has_pods = self._by_key, self._has_pods
        twin._changes = {key: changes[rows] for key, changes in self._changes.items()}
        return twin


def pods_by_domain(nodes: NodeTable, key: str, counted: Counted) -> PodsByDomain:
    """Return how many pods *counted* is about in each domain of *key*."""
    labelled = nodes.kept(("has label", key), lambda: nodes.labels.has(key))
    return nodes.pod_counters.by_domain(counted, nodes.labels, key, among=labelled)


class WeightedPods:
    """For each of some label keys, what the pods of its domains weigh, for or against a node."""

    def __init__(self) -> None:
        self._by_key: dict[str, Ints] = {}
        self._has_pods = False

    def add(self, nodes: NodeTable, key: str, counted: Counted, *, weight: int) -> None:
        """Add the pods that *counted* is about."""
        pods = pods_by_domain(nodes, key, counted)
        weights = weight * pods.counts
        self._by_key[key] = self._by_key[key] + weights if key in self._by_key else weights
        self._has_pods = self._has_pods or bool(pods)

    def __bool__(self) -> bool:
        """Whether there are any pods, even if their weights cancel each other out."""
        return self._has_pods

    def of_rows(self, nodes: NodeTable) -> Ints:
        """Return for each row the sum of the weights of all its domains; there must be some."""
        of_keys = (weights.take(nodes.labels.ids(key)) for key, weights in self._by_key.items())
        total = next(of_keys)
        for of_key in of_keys:
            total += of_key
        return total
