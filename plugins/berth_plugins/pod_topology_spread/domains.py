"""How many pods there are to spread in each topology domain, for filtering and for scoring.

Domains are named by the ids of label values, which a part of a table shares with the whole.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.framework.node_table import NodeTable
from berth.framework.row_memo import EVERY_ROW
from berth.framework.verdict import Ints, Mask, Rows
from berth_plugins.pod_topology_spread.constraints import SpreadConstraint

HOSTNAME: Final = "kubernetes.io/hostname"

NO_DOMAIN: Final = 0
"""The id of nodes that lack the label."""

_NO_COUNT: Final = 2**31 - 1


@dataclass(slots=True)
class HardDomains:
    """How many pods each domain of a constraint has, and which domain has fewest.

    In an overlay each row has its own opinion of how many pods there are in its domain; all other
    domains are as they are. So it is enough to know the two domains with fewest pods, which
    kube-scheduler calls critical paths: of all domains but its own, a row sees fewest pods in the
    first of them or, if that is its own, in the second.
    """

    constraint: SpreadConstraint
    counts: Ints
    """By domain, as they are; clones share them."""
    domains: int
    """How many there are, those without pods included."""
    critical_paths: tuple[tuple[int, int], tuple[int, int]]
    """The pods of the two domains with fewest, and those domains; fewest first."""
    changes: Ints | None = None
    """By row of an overlay, how many pods were added there in thought; None: it is none yet."""

    @classmethod
    def over(
        cls, nodes: NodeTable, constraint: SpreadConstraint, *, included: Mask
    ) -> "HardDomains":
        """Count the pods on the rows *included*, all of which have the label."""
        key = constraint.topology_key
        values = len(nodes.labels.values(key))
        ids = np.where(included, nodes.labels.ids(key), NO_DOMAIN)
        counts = _sums(ids, constraint.counts(nodes), values)
        counts[NO_DOMAIN] = 0
        has_nodes = np.bincount(ids, minlength=values) > 0
        has_nodes[NO_DOMAIN] = False
        left = np.where(has_nodes, counts, _NO_COUNT)
        first = int(left.argmin())
        fewest = int(left[first])
        left[first] = _NO_COUNT
        second = int(left.argmin())
        paths = ((fewest, first), (int(left[second]), second))
        return cls(constraint, counts, int(np.count_nonzero(has_nodes)), paths)

    def change(self, nodes: NodeTable, rows: Rows, *, by: Ints) -> None:
        """Count pods that are added to *rows* of an overlay or, where *by* is negative, removed."""
        changes = np.zeros(nodes.size, np.int64) if self.changes is None else self.changes
        np.add.at(changes, rows, by)
        self.changes = changes

    def counts_of(self, nodes: NodeTable, rows: slice = EVERY_ROW) -> Ints:
        """Return how many pods there are in the domain of each row."""
        counts = self.counts.take(self._ids(nodes, rows))
        return counts if self.changes is None else counts + self.changes[rows]

    def min_match(self, nodes: NodeTable, rows: slice = EVERY_ROW) -> Ints | int:
        """Return how many pods there are in the domain with fewest, in the eyes of each row.

        With fewer than ``minDomains`` domains there might as well be one without pods.
        """
        if self.domains < self.constraint.min_domains:
            return 0
        (fewest, first), (second_fewest, _) = self.critical_paths
        if self.changes is None:
            return fewest
        of_others = np.where(self._ids(nodes, rows) == first, second_fewest, fewest)
        seen = np.minimum(self.counts_of(nodes, rows), of_others)
        return np.where(self.changes[rows] == 0, fewest, seen)

    def skews(self, nodes: NodeTable, rows: slice = EVERY_ROW) -> Ints:
        """Return what the skew would be with the pod on each row."""
        over_min = self.constraint.matches_itself - self.min_match(nodes, rows)
        return self.counts_of(nodes, rows) + over_min

    def fewest(self, nodes: NodeTable, row: int) -> tuple[int, int]:
        """Return the pods of the domain that has fewest in the eyes of *row*, and that domain."""
        if self.changes is None or not self.changes[row]:
            return self.critical_paths[0]
        at = slice(row, row + 1)
        own = int(self._ids(nodes, at)[0])
        others = (path for path in self.critical_paths if path[1] != own)
        return min((int(self.counts_of(nodes, at)[0]), own), *others)

    def _ids(self, nodes: NodeTable, rows: slice) -> NDArray[np.intp]:
        return nodes.labels.ids(self.constraint.topology_key)[rows]

    def clone(self) -> "HardDomains":
        return replace(self, changes=None if self.changes is None else self.changes.copy())

    def take_rows(self, rows: Rows) -> "HardDomains":
        return replace(self, changes=None if self.changes is None else self.changes[rows])


@dataclass(frozen=True, slots=True)
class SoftDomains:
    """What the pods of a constraint cost a node."""

    constraint: SpreadConstraint
    weight: float
    """What one pod costs: more where there are many domains, for each has few pods then."""
    counts: Ints
    """By row, how many pods its domain has; for host names, how many are on the node itself."""

    @classmethod
    def over(
        cls, nodes: NodeTable, constraint: SpreadConstraint, *, included: Mask, scored: Mask
    ) -> "SoftDomains":
        """Count the pods on the rows *included*, in the domains of the rows to be *scored*.

        Nodes that lack the label are a domain together with those where it is empty.
        """
        key, pods = constraint.topology_key, constraint.counts(nodes)
        if key == HOSTNAME:
            return cls(constraint, _weight(int(np.count_nonzero(scored))), pods)
        ids, empty = nodes.labels.ids(key), nodes.labels.id(key, "")
        if empty is not None:
            ids = np.where(ids == empty, NO_DOMAIN, ids)
        values = len(nodes.labels.values(key))
        domains = int(np.count_nonzero(np.bincount(ids[scored])))
        counts = _sums(ids, pods * included, values)
        return cls(constraint, _weight(domains), counts.take(ids))

    def costs(self, nodes: NodeTable) -> NDArray[np.float64]:
        """Return the cost by row; 0 where the label is missing."""
        costs = self.counts * self.weight + float(self.constraint.max_skew - 1)
        return np.where(nodes.labels.has(self.constraint.topology_key), costs, 0.0)


def _weight(domains: int) -> float:
    return math.log(domains + 2)


def _sums(ids: NDArray[np.intp], amounts: Ints, values: int) -> Ints:
    """Add up *amounts*, one per row, by the ids of their domains."""
    # In floats, which is exact up to 2**53.
    return np.bincount(ids, weights=amounts, minlength=values).astype(np.int64)
