"""How much of a table's nodes is taken, as a whole and by the values of labels."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from berth.framework.node_table import NodeTable
from berth.whatif.answer import Amount, Usage

PODS: Final = "pods"
BALANCED: Final = ("cpu", "memory")
"""Resources whose evenness is told."""
EVERYTHING: Final = ""

Usages: TypeAlias = Mapping[str, Mapping[str, Usage]]
"""By label, then by value; the whole cluster is under the label EVERYTHING."""

Rows: TypeAlias = NDArray[np.intp]


def measure(nodes: NodeTable, labels: Sequence[str]) -> Usages:
    """Measure all nodes, and those with each value of *labels*; nodes without one under ""."""
    rows = np.flatnonzero(nodes.exists)
    measured = {EVERYTHING: {EVERYTHING: _usage(nodes, rows)}}
    for label in labels:
        by_value: dict[str, list[int]] = {}
        for row in rows.tolist():
            by_value.setdefault(value_of(nodes, row, label), []).append(row)
        measured[label] = {
            value: _usage(nodes, np.array(found, np.intp)) for value, found in by_value.items()
        }
    return measured


def nothing() -> Usage:
    """Return the usage of no nodes."""
    return Usage(nodes=0, pods=0, resources={}, imbalance={})


def value_of(nodes: NodeTable, row: int, label: str) -> str:
    """Return the value of a label, "" without it."""
    node = nodes.nodes[row]
    assert node is not None, f"row {row} is empty"
    return node.labels.get(label, "")


def _usage(nodes: NodeTable, rows: Rows) -> Usage:
    resources = {}
    imbalance = {}
    for name in nodes.resources:
        found = nodes.resource_rows(name)
        if found is None:
            continue
        allocatable, requested = found[0][rows], found[1][rows]
        amount = _amount(int(allocatable.sum()), int(requested.sum()))
        if amount.allocatable or amount.requested:
            resources[name] = amount
        if name in BALANCED:
            shares = requested[allocatable > 0] / allocatable[allocatable > 0]
            imbalance[name] = round(float(shares.std()), 4) if len(shares) else 0.0
    pods = int(nodes.pod_count[rows].sum())
    resources[PODS] = _amount(int(nodes.allowed_pods[rows].sum()), pods)
    return Usage(nodes=len(rows), pods=pods, resources=resources, imbalance=imbalance)


def _amount(allocatable: int, requested: int) -> Amount:
    share = round(requested / allocatable, 4) if allocatable else 0.0
    return Amount(allocatable=allocatable, requested=requested, share=share)
