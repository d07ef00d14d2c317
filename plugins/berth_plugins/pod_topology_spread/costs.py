"""Costs for a node that would get one more of the pods to spread, for scoring."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.scheduler.framework.label_columns import Ids
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pods_by_domain import NO_DOMAIN
from berth.scheduler.framework.verdict import Ints, Mask
from berth_plugins.pod_topology_spread.constraints import SpreadConstraint

HOSTNAME: Final = "kubernetes.io/hostname"

FEW: Final = 4
"""So many domains are looked for one by one."""
MOST_SUMS: Final = 4096
"""So many sums of costs are made before they are looked up; for more, rows are added up."""


class Costs(NamedTuple):
    """What a constraint costs each row: ``costs[case[row]]``."""

    case: NDArray[np.integer]
    costs: NDArray[np.floating]


class SoftDomains(msgspec.Struct, frozen=True):
    """What the pods of a constraint cost a node."""

    constraint: SpreadConstraint
    weight: float
    """What one pod costs: more where there are many domains, for each has few pods then."""
    counts: Ints
    """By domain, how many pods it has; for host names by row, how many are on the node itself."""

    @classmethod
    def over(
        cls, nodes: NodeTable, constraint: SpreadConstraint, *, included: Mask, scored: Mask
    ) -> "SoftDomains":
        """Count the pods on the rows *included*, in the domains of the rows to be *scored*.

        Nodes that lack the label are a domain together with those where it is empty.
        """
        key = constraint.topology_key
        if key == HOSTNAME:
            weight = _weight(int(np.count_nonzero(scored)))
            return cls(constraint, weight, constraint.pods(nodes))
        pods = constraint.pods_by_domain(nodes, among=included)
        counts, empty = pods.counts, nodes.labels.id(key, "")
        if empty is not None:
            lacking = included & ~nodes.labels.has(key)
            counts = counts.copy()
            counts[empty] += constraint.pods(nodes)[lacking].sum()
        present = nodes.kept(("domains present", key), lambda: _DomainsPresent(nodes, key))
        return cls(constraint, _weight(present.count(scored)), counts)

    def costs(self, nodes: NodeTable) -> Costs:
        """Return the cost by row; 0 where the label is missing."""
        key, fixed = self.constraint.topology_key, float(self.constraint.max_skew - 1)
        if key != HOSTNAME:
            of_domains = self.counts * self.weight + fixed
            of_domains[NO_DOMAIN] = 0.0
            return Costs(nodes.labels.ids(key), of_domains)
        # By the number of pods, and one more case: the label is missing.
        most = int(self.counts.max(initial=0))
        of_numbers = np.arange(most + 2) * self.weight + fixed
        of_numbers[-1] = 0.0
        lacking = rows_lacking(nodes, (key,))
        case = self.counts if lacking is None else np.where(lacking, most + 1, self.counts)
        return Costs(case, of_numbers)


class _DomainsPresent:
    """Counts the domains that some rows are in, of which hardly any comes or goes.

    Of each domain one row is remembered that was among them the last time.
    """

    def __init__(self, nodes: NodeTable, key: str) -> None:
        ids, empty = nodes.labels.ids(key), nodes.labels.id(key, "")
        if empty is not None:
            ids = np.where(ids == NO_DOMAIN, empty, ids)
        self._ids: Ids = ids
        rows = np.flatnonzero(nodes.exists)
        self._witness = np.full(len(nodes.labels.values(key)), -1)
        """By domain, the row."""
        self._witness[ids[rows]] = rows
        self._domains = np.flatnonzero(self._witness >= 0)

    def count(self, rows: Mask) -> int:
        """Return how many domains the *rows* are in."""
        gone = self._domains[~rows.take(self._witness[self._domains])]
        if not len(gone):
            return len(self._domains)
        if len(gone) > FEW:
            here = np.flatnonzero(rows)
            self._witness[self._ids[here]] = here
        else:
            for domain in gone.tolist():
                of_domain = rows & (self._ids == domain)
                if of_domain.any():
                    self._witness[domain] = of_domain.argmax()
        return int(np.count_nonzero(rows.take(self._witness[self._domains])))


def rows_lacking(nodes: NodeTable, keys: tuple[str, ...]) -> Mask | None:
    """Return the nodes that lack one of the labels *keys*; None: there are none."""

    def find() -> Mask | None:
        lacking = nodes.no_rows()
        for key in keys:
            lacking |= nodes.exists & ~nodes.labels.has(key)
        return lacking if lacking.any() else None

    return nodes.kept(("rows lacking", keys), find)


def total(nodes: NodeTable, of_constraints: Sequence[SoftDomains]) -> Ints:
    """Return by row the sum of the costs of all constraints, rounded half up."""
    first, *others = (domains.costs(nodes) for domains in of_constraints)
    case, costs = first
    for place, other in enumerate(others):
        if len(costs) * len(other.costs) > MOST_SUMS:
            by_row = costs.take(case)
            for late in others[place:]:
                by_row += late.costs.take(late.case)
            return rounded(by_row)
        case = case * len(other.costs) + other.case
        costs = np.add.outer(costs, other.costs).reshape(-1)
    return rounded(costs).take(case)


def rounded(costs: NDArray[np.floating]) -> Ints:
    """Round *costs*, none negative, half up."""
    whole = np.floor(costs)
    up: Mask = costs - whole >= 0.5
    down: Ints = whole.astype(np.int64)
    return down + up


def _weight(domains: int) -> float:
    return math.log(domains + 2)
