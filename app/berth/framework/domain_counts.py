"""Sums over topology domains: the sets of nodes that have one value of a label."""

from collections.abc import Iterable

import numpy as np

from berth.framework.node_table import NodeTable
from berth.framework.verdict import Ints, Mask


class DomainCounts:
    """For each of some label keys, a number per domain.

    Nodes without a label are in no domain of it and count for nothing. Numbers are kept by the ids
    of label values, which a part of a table shares with the whole. Arrays are replaced, never
    written, so that a clone is cheap.
    """

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[str, Ints] = {}

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
        return tuple(self._by_key)

    def __bool__(self) -> bool:
        """Whether any domain has a number other than 0."""
        return any(map(np.count_nonzero, self._by_key.values()))  # 4 times faster than any()

    def of_rows(self, nodes: NodeTable, key: str) -> Ints:
        """Return for each row the number of its domain of *key*, 0 where it is in none."""
        return self._by_key[key].take(nodes.labels.ids(key))

    def total_of_rows(self, nodes: NodeTable) -> Ints:
        """Return for each row the sum of the numbers of all its domains."""
        total = np.zeros(nodes.size, np.int64)
        for key in self._by_key:
            total += self.of_rows(nodes, key)
        return total

    def rows_with_any(self, nodes: NodeTable) -> Mask:
        """Return the rows that have a number above 0 in one of their domains."""
        found = nodes.no_rows()
        for key, of_domains in self._by_key.items():
            found |= (of_domains > 0).take(nodes.labels.ids(key))
        return found

    def change(self, nodes: NodeTable, key: str, *, by: int) -> None:
        """Add *by* to the domain of the one row of *nodes*."""
        domain = nodes.labels.ids(key)[0]
        if domain:
            known = self._by_key.get(key)
            changed = (
                np.zeros(len(nodes.labels.values(key)), np.int64) if known is None else known.copy()
            )
            changed[domain] += by
            self._by_key[key] = changed

    def clone(self) -> "DomainCounts":
        twin = DomainCounts()
        twin._by_key = dict(self._by_key)
        return twin
