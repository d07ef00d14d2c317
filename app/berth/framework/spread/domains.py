"""How many pods there are to spread in each topology domain, for filtering and for scoring.

Domains are named by the ids of label values, which a part of a table shares with the whole.
"""

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.framework.node_table import NodeTable
from berth.framework.spread.constraints import SpreadConstraint
from berth.framework.verdict import Ints, Mask

HOSTNAME: Final = "kubernetes.io/hostname"

NO_DOMAIN: Final = 0
"""The id of nodes that lack the label."""

_NO_COUNT: Final = 2**31 - 1


@dataclass(slots=True)
class HardDomains:
    """How many pods each domain of a constraint has, and which domain has fewest.

    As in kube-scheduler only the two domains with fewest pods are followed when pods come and go
    in thought. They are enough: such a question is about one node, so one domain changes, and
    fewest has then that one or the better of the two others.
    """

    constraint: SpreadConstraint
    counts: Ints
    """By domain, as they are; clones share them."""
    domains: int
    """How many there are, those without pods included."""
    fewest: list[tuple[int, int]]
    """The pods of the two domains with fewest, and those domains; fewest first."""
    changes: dict[int, int] = field(default_factory=dict)
    """By domain, how many pods were added in thought."""

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
        fewest, left = [], np.where(has_nodes, counts, _NO_COUNT)
        for _ in range(2):
            domain = int(left.argmin())
            fewest.append((int(left[domain]), domain))
            left[domain] = _NO_COUNT
        return cls(constraint, counts, int(np.count_nonzero(has_nodes)), fewest)

    def change(self, domain: int, *, by: int) -> None:
        """Count pods that are added to *domain* or, if *by* is negative, taken from it."""
        self.changes[domain] = self.changes.get(domain, 0) + by
        changed = (int(self.counts[domain]) + self.changes[domain], domain)
        others = [(count, other) for count, other in self.fewest if other != domain]
        self.fewest = sorted([changed, *others])[:2]

    def skews(self, ids: NDArray[np.intp]) -> Ints:
        """Return what the skew would be with the pod in each of the domains *ids*.

        With fewer than ``minDomains`` domains there might as well be one without pods.
        """
        counts = self.counts.take(ids)
        for domain, by in self.changes.items():
            counts[ids == domain] += by
        fewest = self.fewest[0][0] if self.domains >= self.constraint.min_domains else 0
        return counts + (self.constraint.matches_itself - fewest)

    def clone(self) -> "HardDomains":
        return HardDomains(
            self.constraint, self.counts, self.domains, self.fewest, dict(self.changes)
        )


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
