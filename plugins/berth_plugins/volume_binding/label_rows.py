"""Rows by label, for whoever has thousands of selectors that each match a few nodes."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.selectors import CompiledTerm, Operator, Requirement
from berth.scheduler.framework.node_table import NodeTable
from berth_plugins.shared.node_rows import rows_of_term

Rows = NDArray[np.intp]

NO_ROWS: Final[Rows] = np.empty(0, np.intp)


def rows_with_label(nodes: NodeTable, key: str, value: str) -> Rows:
    """Return the rows, ascending, with *value* for label *key*. Not to be changed."""
    value_id = nodes.labels.id(key, value)
    if value_id is None:
        return NO_ROWS
    by_id = nodes.kept(("rows by label", key), lambda: _rows_by_id(nodes.labels.ids(key)))
    return by_id.get(value_id, NO_ROWS)


def _rows_by_id(ids: NDArray[np.intp]) -> Mapping[int, Rows]:
    order = np.argsort(ids, kind="stable")
    distinct, starts = np.unique(ids[order], return_index=True)
    return dict(zip(distinct.tolist(), np.split(order, starts[1:]), strict=True))


def rows_meeting(nodes: NodeTable, requirements: Sequence[Requirement]) -> Rows:
    """Return the rows, ascending, whose labels meet all *requirements*.

    As :func:`~berth_plugins.shared.node_rows.rows_of_term`, but at the cost of the rows that match.
    """
    narrow = next((r for r in requirements if r.operator is Operator.IN), None)
    if narrow is None:
        return np.flatnonzero(nodes.exists & rows_of_term(nodes, CompiledTerm(tuple(requirements))))
    if len(narrow.values) == 1:
        rows = rows_with_label(nodes, narrow.key, narrow.values[0])
    else:
        parts = [rows_with_label(nodes, narrow.key, value) for value in set(narrow.values)]
        rows = np.sort(np.concatenate(parts))
    for other in requirements:
        if other is not narrow and len(rows):
            rows = rows[_mask(nodes, other)[rows]]
    return rows


def _mask(nodes: NodeTable, requirement: Requirement) -> NDArray[np.bool_]:
    return nodes.kept(
        ("rows meeting", requirement), lambda: rows_of_term(nodes, CompiledTerm((requirement,)))
    )
