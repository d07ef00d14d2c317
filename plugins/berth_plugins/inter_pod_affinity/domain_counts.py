"""Sums over topology domains: the sets of nodes that have one value of a label."""

from collections.abc import Iterable

import numpy as np

from berth.framework.node_table import NodeTable
from berth.framework.verdict import Ints, Mask, Rows


class DomainCounts:
    """For each of some label keys, a number per domain.

    Nodes without a label are in no domain of it and count for nothing. Numbers are kept by the ids
    of label values, which a part of a table shares with the whole.

    In an overlay each row has its own opinion of the numbers of its own domains, as if the pods
    that come and go on it were all that changes.
    """

    __slots__ = ("_by_key", "_changes")

    def __init__(self) -> None:
        self._by_key: dict[str, Ints] = {}
        """By key and domain, as they are; clones share them."""
        self._changes: dict[str, Ints] = {}
        """By key and row of an overlay."""

    @classmethod
    def sum_up(cls, nodes: NodeTable, amounts: Iterable[tuple[str, Ints]]) -> "DomainCounts":
        """Sum up amounts per row, each for one label key, over the domains of that key."""
        per_row: dict[str, Ints] = {}
        for key, amount in amounts:
            per_row[key] = per_row[key] + amount if key in per_row else amount
        sums = cls()
        for key, amount in per_row.items():
            domains = len(nodes.labels.values(key))
            ids = nodes.labels.ids(key)
            # In floats, which is exact up to 2**53.
            of_domains = np.bincount(ids, weights=amount, minlength=domains).astype(np.int64)
            of_domains[0] = 0
            sums._by_key[key] = of_domains
        return sums

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple({**self._by_key, **self._changes})

    def __bool__(self) -> bool:
        """Whether any domain has, or had before the overlay, a number other than 0."""
        return bool(self._changes) or any(
            map(np.count_nonzero, self._by_key.values())  # 4 times faster than any()
        )

    def of_rows(self, nodes: NodeTable, key: str) -> Ints:
        """Return for each row the number of its domain of *key*, 0 where it is in none."""
        changes, known = self._changes.get(key), self._by_key.get(key)
        if known is None:
            return nodes.no_rows().astype(np.int64) if changes is None else changes
        counts = known.take(nodes.labels.ids(key))
        return counts if changes is None else counts + changes

    def total_of_rows(self, nodes: NodeTable) -> Ints:
        """Return for each row the sum of the numbers of all its domains."""
        total = np.zeros(nodes.size, np.int64)
        for key in self.keys:
            total += self.of_rows(nodes, key)
        return total

    def rows_with_any(self, nodes: NodeTable) -> Mask:
        """Return the rows that have a number above 0 in one of their domains."""
        found = nodes.no_rows()
        for key in self.keys:
            found |= self.of_rows(nodes, key) > 0
        return found

    def rows_that_see_none(self, nodes: NodeTable) -> Mask | None:
        """Return the rows in whose eyes no domain anywhere has a number other than 0; None: no row.

        The caller may change the answer.
        """
        anywhere = sum(int(np.count_nonzero(known)) for known in self._by_key.values())
        if anywhere and not self._changes:
            return None
        others = np.full(nodes.size, anywhere)
        own = nodes.no_rows()
        for key in self._changes:
            known = self._by_key.get(key)
            if known is not None:
                others -= known.take(nodes.labels.ids(key)) != 0
            own |= self.of_rows(nodes, key) != 0
        none: Mask = (others == 0) & ~own
        return none

    def change(self, nodes: NodeTable, key: str, rows: Rows, *, by: Ints) -> None:
        """Add *by* to the domains of *rows* of an overlay, in the eyes of each row."""
        changes = self._changes.get(key)
        if changes is None:
            changes = self._changes[key] = np.zeros(nodes.size, np.int64)
        np.add.at(changes, rows, np.where(nodes.labels.ids(key)[rows] != 0, by, 0))

    def clone(self) -> "DomainCounts":
        twin = DomainCounts()
        twin._by_key = self._by_key
        twin._changes = {key: changes.copy() for key, changes in self._changes.items()}
        return twin

    def take_rows(self, rows: Rows) -> "DomainCounts":
        twin = DomainCounts()
        twin._by_key = self._by_key
        twin._changes = {key: changes[rows] for key, changes in self._changes.items()}
        return twin
