"""How much of a table's nodes is taken, as a whole and by the values of labels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from berth.insight.whatif.answer import (
    BALANCED,
    PODS,
    Amount,
    ChangedNode,
    ClusterUsage,
    NodeChange,
    Usage,
)
from berth.insight.whatif.typical_pods import Amounts, TypicalPods, fragmented
from berth.kube.objects.node import Node
from berth.scheduler.framework.node_table import NodeTable

SHARES: Final = 10
"""Into so many ranges of the share that is requested nodes are counted."""

Rows: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class NodesThen:
    """What the nodes of a table had to give, and what was taken of it, at one moment."""

    nodes: Sequence[Node | None]
    """By row."""
    rows: Rows
    """Of those there are."""
    amounts: Amounts
    """By resource and row; pods among them."""

    @classmethod
    def of(cls, table: NodeTable) -> "NodesThen":
        amounts = {}
        for name in table.resources:
            rows = table.resource_rows(name)
            if rows is not None:
                amounts[name] = rows[0].copy(), rows[1].copy()
        amounts[PODS] = table.allowed_pods.copy(), table.pod_count.copy()
        return cls(list(table.nodes), np.flatnonzero(table.exists), amounts)

    def totals(self) -> Usage:
        """Return the usage of all nodes."""
        return self._usage(self.rows)

    def usage(self, typical: TypicalPods) -> ClusterUsage:
        """Return the usage of all nodes, with fragmentation as *typical* pods have it."""
        resources = {n: amounts for n, amounts in self.amounts.items() if n != PODS}
        free = fragmented(resources, typical.unfit(resources, len(self.nodes)))
        return ClusterUsage(
            **dict(self.totals()),
            fragmentation={n: round(free[n] / int(resources[n][0].sum()), 4) for n in free},
            nodes_by_share=dict(self._nodes_by_share()),
        )

    def usage_by(self, label: str) -> dict[str, Usage]:
        """Return the usage of the nodes with each value of *label*; those without one are under
        "".
        """
        by_value: dict[str, list[int]] = {}
        for row in self.rows.tolist():
            by_value.setdefault(self._node(row).labels.get(label, ""), []).append(row)
        return {value: self._usage(np.array(rows, np.intp)) for value, rows in by_value.items()}

    def values(self, label: str) -> dict[str, str]:
        """Return the value of *label* by node, "" without it."""
        nodes = map(self._node, self.rows.tolist())
        return {node.name: node.labels.get(label, "") for node in nodes}

    def by_node(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Return what is allocatable and requested of each resource, by node."""
        rows = self.rows
        columns = {
            name: list(zip(allocatable[rows].tolist(), requested[rows].tolist(), strict=True))
            for name, (allocatable, requested) in self.amounts.items()
        }
        return {
            self._node(row).name: {name: column[i] for name, column in columns.items()}
            for i, row in enumerate(rows.tolist())
        }

    def _node(self, row: int) -> Node:
        node = self.nodes[row]
        assert node is not None, f"row {row} is empty"
        return node

    def _usage(self, rows: Rows) -> Usage:
        resources, imbalance = {}, {}
        for name, (allocatable, requested) in self.amounts.items():
            amount = _amount(sum(allocatable[rows].tolist()), sum(requested[rows].tolist()))
            if amount.allocatable or amount.requested or name == PODS:
                resources[name] = amount
            if name in BALANCED:
                shares = _shares(allocatable[rows], requested[rows])
                imbalance[name] = round(float(shares.std()), 4) if len(shares) else 0.0
        return Usage(
            nodes=len(rows),
            pods=resources[PODS].requested,
            resources=resources,
            imbalance=imbalance,
        )

    def _nodes_by_share(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for name, (allocatable, requested) in self.amounts.items():
            shares = _shares(allocatable[self.rows], requested[self.rows])
            if len(shares):
                places = np.clip((shares * SHARES).astype(int), 0, SHARES - 1)
                yield name, tuple(np.bincount(places, minlength=SHARES).tolist())


def nothing() -> Usage:
    """Return the usage of no nodes."""
    return Usage(nodes=0, pods=0, resources={}, imbalance={})


def changed_nodes(before: NodesThen, after: NodesThen) -> Iterator[ChangedNode]:
    """Yield the nodes that come, that go, and those of which more or less is taken, by name."""
    old, new = before.by_node(), after.by_node()
    for name in sorted(old.keys() | new.keys()):
        then, now = old.get(name, {}), new.get(name, {})
        if then == now:
            continue
        used = {
            resource: NodeChange(
                allocatable=now.get(resource, then.get(resource, (0, 0)))[0],
                before=then.get(resource, (0, 0))[1],
                after=now.get(resource, (0, 0))[1],
            )
            for resource in {**then, **now}
        }
        yield ChangedNode(
            node=name,
            change="added" if not then else "changed" if now else "removed",
            resources={n: use for n, use in used.items() if use.allocatable or use.after},
        )


def _shares(allocatable: NDArray[np.int64], requested: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share that is requested, of each node that has any to give."""
    has = allocatable > 0
    shares: NDArray[np.float64] = requested[has] / allocatable[has]
    return shares


def _amount(allocatable: int, requested: int) -> Amount:
    share = round(requested / allocatable, 4) if allocatable else 0.0
    return Amount(allocatable=allocatable, requested=requested, share=share)
