"""Counts of the pods to spread in each topology domain, for filtering.

Domains are named by the ids of label values, which a part of a table shares with the whole.
"""

import msgspec
import numpy as np
from msgspec.structs import replace

from berth.scheduler.framework.label_columns import Ids
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pods_by_domain import NO_COUNT, PodsByDomain
from berth.scheduler.framework.row_memo import EVERY_ROW
from berth.scheduler.framework.verdict import Ints, Mask, Rows
from berth_plugins.pod_topology_spread.constraints import SpreadConstraint

CriticalPaths = tuple[tuple[int, int], tuple[int, int]]


class HardDomains(msgspec.Struct):
    """How many pods each domain of a constraint has, and which domain has fewest.

    In an overlay each row has its own opinion of how many pods there are in its domain; all other
    domains are as they are. So it is enough to know the two domains with fewest pods, which
    kube-scheduler calls critical paths: of all domains but its own, a row sees fewest pods in the
    first of them or, if that is its own, in the second.
    """

    constraint: SpreadConstraint
    counts: Ints
    """By domain, as they are; clones share them."""
    has_nodes: Mask
    """By domain, whether there is any such domain, and not merely one without nodes that count."""
    domains: int
    """How many there are, those without pods included."""
    fewest_pods: int
    """The pods of the domain with fewest."""
    changes: Ints | None = None
    """By row of an overlay, how many pods were added there in thought; None: it is none yet."""
    _critical_paths: CriticalPaths | None = None

    @classmethod
    def of(cls, constraint: SpreadConstraint, pods: PodsByDomain) -> "HardDomains":
        return cls(constraint, pods.counts, pods.has_nodes, pods.domains, pods.fewest)

    @property
    def critical_paths(self) -> CriticalPaths:
        """The pods of the two domains with fewest, and those domains; fewest first."""
        if self._critical_paths is None:
            left = np.where(self.has_nodes, self.counts, NO_COUNT)
            first = int(left.argmin())
            fewest = int(left[first])
            left[first] = NO_COUNT
            second = int(left.argmin())
            self._critical_paths = ((fewest, first), (int(left[second]), second))
        return self._critical_paths

    def change(self, nodes: NodeTable, rows: Rows, *, by: Ints) -> None:
        """Count pods that are added to *rows* of an overlay or, where *by* is negative, removed."""
        changes = np.zeros(nodes.size, np.int64) if self.changes is None else self.changes
        np.add.at(changes, rows, by)
        self.changes = changes

    def counts_of(self, nodes: NodeTable, rows: slice = EVERY_ROW) -> Ints:
        """Return how many pods there are in the domain of each row."""
        counts = self.counts.take(self._ids(nodes, rows))
        return counts if self.changes is None else counts + self.changes[rows]

    @property
    def lacks_domains(self) -> bool:
        """Whether there are fewer than ``minDomains``: there might as well be one without pods."""
        return self.domains < self.constraint.min_domains

    @property
    def limit(self) -> int:
        """How many pods the domain of a node may have at most, as they are."""
        fewest = 0 if self.lacks_domains else self.fewest_pods
        return self.constraint.max_skew - self.constraint.matches_itself + fewest

    def min_match(self, nodes: NodeTable, rows: slice = EVERY_ROW) -> Ints | int:
        """Return how many pods there are in the domain with fewest, in the eyes of each row."""
        if self.lacks_domains:
            return 0
        if self.changes is None:
            return self.fewest_pods
        (fewest, first), (second_fewest, _) = self.critical_paths
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

    def _ids(self, nodes: NodeTable, rows: slice) -> Ids:
        return nodes.labels.ids(self.constraint.topology_key)[rows]

    def clone(self) -> "HardDomains":
        """Return a copy for an overlay. The critical paths, which those ask for, are shared."""
        changes = None if self.changes is None else self.changes.copy()
        return replace(self, changes=changes, _critical_paths=self.critical_paths)

    def take_rows(self, rows: Rows) -> "HardDomains":
        changes = None if self.changes is None else self.changes[rows]
        return replace(self, changes=changes, _critical_paths=self.critical_paths)
