"""Label values as integer columns, one per label key that somebody asked for."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.framework.verdict import Mask
from app.objects.node import Node

Ids = NDArray[np.intp]
"""Value ids. As wide as NumPy's own indexes: narrower ones are converted at every gather."""


class _Column:
    """The values of one key: ``ids[row]`` indexes ``values``; id 0 means the node lacks the key."""

    __slots__ = ("id_of", "ids", "values")

    def __init__(self, values: list[str | None], id_of: dict[str, int], ids: Ids) -> None:
        self.values = values
        self.id_of = id_of
        self.ids = ids

    def intern(self, value: str | None) -> int:
        if value is None:
            return 0
        found = self.id_of.get(value)
        if found is None:
            found = self.id_of[value] = len(self.values)
            self.values.append(value)
        return found


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
        domains.
        """
        return self._column(key).ids[: len(self._nodes)]

    def values(self, key: str) -> Sequence[str | None]:
        """Return the value for each id of *key*; ``values[0]`` is None."""
        return self._column(key).values

    def id(self, key: str, value: str) -> int | None:
        """Return the id of *value*, or None if no node ever had it."""
        return self._column(key).id_of.get(value)

    def where(self, key: str, test: Callable[[str | None], bool]) -> Mask:
        """Return the rows whose value of *key* passes *test*, called once per distinct value.

        *test* is given None for nodes without the key.
        """
        column = self._column(key)
        answers = np.fromiter((test(value) for value in column.values), bool, len(column.values))
        result: Mask = answers[column.ids[: len(self._nodes)]]
        return result

    def is_any_of(self, key: str, values: Sequence[str]) -> Mask:
        """Return the rows whose value of *key* is one of *values*; cheap for long columns."""
        column = self._column(key)
        answers = np.zeros(len(column.values), bool)
        for value in values:
            found = column.id_of.get(value)
            if found is not None:
                answers[found] = True
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
        for key, column in self._columns.items():
            column.ids[row] = column.intern(labels.get(key))

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
            column = _Column(whole.values, whole.id_of, whole.ids[self._rows])
        else:
            column = _Column([None], {}, np.zeros(len(self._nodes) + 16, np.intp))
            for row, node in enumerate(self._nodes):
                if node is not None:
                    column.ids[row] = column.intern(node.metadata.labels.get(key))
        self._columns[key] = column
        return column
