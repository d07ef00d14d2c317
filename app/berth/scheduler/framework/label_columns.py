"""Label values as integer columns, one per label key that a plugin asked for."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.node import Node
from berth.scheduler.framework.value_ids import ValueIds
from berth.scheduler.framework.verdict import Mask

Ids = NDArray[np.intp]
"""Value ids. As wide as NumPy's own indexes: narrower ones are converted at every gather."""


class _Column:
    """The values of one key: ``ids[row]`` is the number of one; 0 if the node lacks the key."""

    __slots__ = ("ids", "values")

    def __init__(self, values: ValueIds[str | None], ids: Ids) -> None:
        self.values = values
        self.ids = ids

    def set(self, row: int, value: str | None) -> None:
        self.ids[row] = self.values.exchange(int(self.ids[row]), value)


class LabelColumns:
    """Columns by label key, made on first use and kept up to date from then on."""

    __slots__ = ("_columns", "_nodes", "_parent", "_rows")

    def __init__(self, nodes: Sequence[Node | None]) -> None:
        self._nodes = nodes
        self._columns: dict[str, _Column] = {}
        self._parent: LabelColumns | None = None
        self._rows: NDArray[np.intp] | None = None

    def ids(self, key: str) -> Ids:
        """Return the value id of label *key* per slot; 0 where the node lacks it.

        Two rows have the same value exactly if they have the same id: ids double as topology
        domains. They hold until a node comes, goes or changes.
        """
        return self._column(key).ids[: len(self._nodes)]

    def node_ids(self) -> Ids:
        """Return the row of each node in the whole table: as ids, but each node is a domain."""
        if self._parent is None:
            return np.arange(len(self._nodes))
        assert self._rows is not None
        return self._parent.node_ids()[self._rows]

    def values(self, key: str) -> Sequence[str | None]:
        """Return the value for each id of *key*; ``values[0]`` is None, and so are unused ones."""
        return self._column(key).values.values

    def id(self, key: str, value: str) -> int | None:
        """Return the id of *value*, or None if no node has it."""
        return self._column(key).values.of(value)

    def where(self, key: str, test: Callable[[str | None], bool]) -> Mask:
        """Return the rows whose value of *key* passes *test*, called once per distinct value.

        *test* is given None for nodes without the key, and perhaps more often.
        """
        column = self._column(key)
        values = column.values.values
        answers = np.fromiter((test(value) for value in values), bool, len(values))
        result: Mask = answers[column.ids[: len(self._nodes)]]
        return result

    def is_any_of(self, key: str, values: Sequence[str]) -> Mask:
        """Return the rows whose value of *key* is one of *values*; cheap for long columns."""
        column = self._column(key)
        answers = np.zeros(len(column.values.values), bool)
        for value in values:
            value_id = column.values.of(value)
            if value_id is not None:
                answers[value_id] = True
        result: Mask = answers[column.ids[: len(self._nodes)]]
        return result

    def has(self, key: str) -> Mask:
        mask: Mask = self.ids(key) != 0
        return mask

    def add_slot(self) -> None:
        """Make room for one more row; the caller has appended to the list of nodes."""
        for column in self._columns.values():
            if len(column.ids) < len(self._nodes):
                column.ids = np.concatenate([column.ids, np.zeros(len(column.ids) + 16, np.intp)])

    def set_row(self, row: int, labels: Mapping[str, str]) -> None:
        """Take over the labels of the node in *row*. Not of a part, which sees the whole's."""
        assert self._parent is None, "a part of a table"
        for key, column in self._columns.items():
            column.set(row, labels.get(key))

    def copy(self, nodes: Sequence[Node | None]) -> "LabelColumns":
        """Return the same columns for *nodes*, a copy of the list, to be changed apart."""
        twin = LabelColumns(nodes)
        for key, column in self._columns.items():
            twin._columns[key] = _Column(column.values.copy(), column.ids.copy())
        return twin

    def take(self, rows: NDArray[np.intp], nodes: Sequence[Node | None]) -> "LabelColumns":
        """Return the columns of *rows*, gathered when asked for."""
        part = LabelColumns(nodes)
        part._parent, part._rows = self, rows
        return part

    def _column(self, key: str) -> _Column:
        column = self._columns.get(key)
        if column is not None:
            return column
        if self._parent is not None:
            assert self._rows is not None
            whole = self._parent._column(key)
            column = _Column(whole.values, whole.ids[self._rows])
        else:
            column = _Column(ValueIds(None), np.zeros(len(self._nodes) + 16, np.intp))
            for row, node in enumerate(self._nodes):
                if node is not None:
                    column.set(row, node.metadata.labels.get(key))
        self._columns[key] = column
        return column
