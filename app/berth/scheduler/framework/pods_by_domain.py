"""Counts of pods of a kind in each topology domain, kept true as pods come and go."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from berth.scheduler.framework.label_columns import Ids
from berth.scheduler.framework.replicas import CHANGES_KEPT, Column
from berth.scheduler.framework.verdict import Ints, Mask

NO_DOMAIN: Final = 0
"""The id of nodes that lack the label."""
NO_COUNT: Final = 2**31 - 1
"""The fewest pods of all domains when there are no domains."""
FEW_DOMAINS = 64
"""Of so many domains the same ones have too many pods again and again."""
_MOST_MASKS: Final = 16
"""So many sets of them are remembered, each with its rows."""


class PodsByDomain:
    """The pods of a column, added up over the nodes that have the same value of a label.

    Domains are named by the ids of label values, which a part of a table shares with the whole.
    A pod that comes or goes changes the count of its domain, and rows whose answer changes by that.
    True until a node comes, goes or changes.

    What this hands out is not changed later: when pods come and go there are new arrays.
    """

    __slots__ = (
        "_among",
        "_changed",
        "_column",
        "_fewest",
        "_ids",
        "_limit",
        "_masks",
        "_num_fewest",
        "_over",
        "_sizes",
        "_total",
        "_version",
        "counts",
        "domains",
        "has_nodes",
    )

    def __init__(self, column: Column, ids: Ids, *, values: int, among: Mask) -> None:
        """Add up *column* on the rows *among* some; *ids* has the domain of each row.

        *values* is how many ids there are.
        """
        self._column = column
        self._ids = ids
        self._sizes: Ints | None = None
        """By domain, how many rows are in it; None: nobody has asked."""
        self._among = among
        self._fewest = NO_COUNT
        self._num_fewest = 0
        """How many domains have ``_fewest`` pods; 0: that is to be found out."""
        self._limit = 0
        self._over: Mask | None = None
        """What :meth:`rows_over` said of ``_limit``."""
        self._masks: dict[bytes, Mask] = {}
        """By flags of few domains, the rows in those that are marked."""
        self._changed: list[int] = []
        """The rows where pods came or went since."""
        self.has_nodes: Mask = np.zeros(values, bool)
        """By domain, whether one of the rows *among* which pods count is in it."""
        self.has_nodes[ids[among]] = True
        self.has_nodes[NO_DOMAIN] = False
        self.domains = int(np.count_nonzero(self.has_nodes))
        """How many domains have such a row."""
        self._add_up()

    def counts_for(self, column: Column, among: Mask) -> bool:
        """Whether this adds up *column*, and *among* these very rows."""
        return self._column is column and self._among is among

    def _add_up(self) -> None:
        pods = self._column.counts(len(self._ids)) * self._among
        # In floats, which is exact up to 2**53.
        of_domains = np.bincount(self._ids, weights=pods, minlength=len(self.has_nodes))
        of_domains[NO_DOMAIN] = 0
        self.counts: Ints = of_domains.astype(np.int64)
        """By domain; 0 for ``NO_DOMAIN``."""
        self._total = int(self.counts.sum())
        self._version = self._column.version
        self._fewest, self._num_fewest = NO_COUNT, 0
        self._forget_rows()

    def refresh(self) -> None:
        """Take in the pods that have come and gone since."""
        changes = self._column.changes_since(self._version)
        if changes is None:
            self._add_up()
        elif changes:
            self._take_in(changes)
            self._version = self._column.version

    def _take_in(self, changes: Iterable[tuple[int, int]]) -> None:
        counts = None
        for row, by in changes:
            domain = self._ids.item(row)
            if domain == NO_DOMAIN or not self._among.item(row):
                continue
            if counts is None:
                counts = self.counts.copy()
            self._total += by
            before = counts.item(domain)
            after = counts[domain] = before + by
            if self._num_fewest:
                if after < self._fewest:
                    self._fewest, self._num_fewest = after, 1
                else:
                    self._num_fewest += (after == self._fewest) - (before == self._fewest)
            if self._over is not None:
                self._changed.append(row)
        if counts is not None:
            self.counts = counts
        if len(self._changed) > CHANGES_KEPT:
            self._forget_rows()

    def _forget_rows(self) -> None:
        self._over = None
        self._changed.clear()

    def __bool__(self) -> bool:
        """Whether any domain has pods."""
        return self._total > 0

    @property
    def fewest(self) -> int:
        """How many pods there are in the domain with fewest; ``NO_COUNT`` without any domain."""
        if not self._num_fewest and self.domains:
            counts = self.counts[self.has_nodes]
            self._fewest = int(counts.min())
            self._num_fewest = int(np.count_nonzero(counts == self._fewest))
        return self._fewest

    def rows_over(self, limit: int) -> Mask:
        """Return the rows in whose domain there are more than *limit* pods."""
        if self._over is None or limit != self._limit or len(self.counts) <= FEW_DOMAINS:
            over = self.counts > limit
            over[NO_DOMAIN] = False
            self._over, self._limit = self._rows_in(over), limit
        else:
            for row in self._changed:
                domain = self._ids.item(row)
                is_over = self.counts.item(domain) > limit
                if is_over != self._over.item(row):
                    self._over = self._over.copy()
                    # Host names are domains of one row.
                    where = row if self._size_of(domain) == 1 else self._ids == domain
                    self._over[where] = is_over
        self._changed.clear()
        return self._over

    def _rows_in(self, domains: Mask) -> Mask:
        """Return the rows in any of *domains*; of few the same mask as the last time."""
        if len(domains) > FEW_DOMAINS:
            return domains.take(self._ids)
        key = domains.tobytes()
        rows = self._masks.get(key)
        if rows is None:
            if len(self._masks) >= _MOST_MASKS:
                self._masks.clear()
            rows = self._masks[key] = domains.take(self._ids)
        return rows

    def _size_of(self, domain: int) -> int:
        if self._sizes is None:
            self._sizes = np.bincount(self._ids, minlength=len(self.has_nodes))
        return self._sizes.item(domain)
