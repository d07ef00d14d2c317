"""Sums of what pods take that int64 may not hold.

kube-scheduler's sums over the pods of a node wrap around: two pods that ask for all there can be
make it look empty, and whoever may create pods may also bind them. Here a sum beyond int64 counts
as the most that int64 holds, which leaves nothing of any node.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.quantity import MAX_INT64
from berth.scheduler.framework.node_columns import NodeColumns
from berth.scheduler.framework.pod_info import PodTemplate


class _Sums(msgspec.Struct):
    """What the pods on one row take, whatever it comes to."""

    requested: list[int]
    """By index of the resource."""
    non_zero_requested: list[int]
    num_large: int = 0
    """How many of the pods are large; with none left, sums fit into int64."""

    def copy(self) -> "_Sums":
        return _Sums([*self.requested], [*self.non_zero_requested], self.num_large)


class LargeLoads:
    """The rows of a table that have large pods (:attr:`PodTemplate.is_large`), with exact sums.

    The columns of these rows follow from the sums; of all others the columns are exact.
    """

    def __init__(self) -> None:
        self._rows: dict[int, _Sums] = {}

    def __contains__(self, row: int) -> bool:
        return row in self._rows

    def __bool__(self) -> bool:
        return bool(self._rows)

    def count(
        self,
        row: int,
        template: PodTemplate,
        sign: int,
        columns: NodeColumns,
        scalars: Sequence[int],
    ) -> None:
        """Count a pod of *template* on *row* if *sign* is 1, discount it if -1.

        *scalars* are the indexes in *columns* of its scalar resources.
        """
        sums = self._rows.get(row)
        if sums is None:
            sums = self._rows[row] = _Sums(
                columns.requested[:, row].tolist(), columns.non_zero_requested[:, row].tolist()
            )
        sums.requested += [0] * (len(columns.requested) - len(sums.requested))
        native, non_zero = template.columns
        for index, amount in enumerate(native.tolist()):
            sums.requested[index] += sign * amount
        for index, amount in zip(scalars, template.requested.scalars.values(), strict=True):
            sums.requested[index] += sign * amount
        for index, amount in enumerate(non_zero.tolist()):
            sums.non_zero_requested[index] += sign * amount
        columns.requested[:, row] = [min(amount, MAX_INT64) for amount in sums.requested]
        columns.non_zero_requested[:, row] = [
            min(amount, MAX_INT64) for amount in sums.non_zero_requested
        ]
        columns.pod_count[row] += sign
        columns.set_free(row)
        sums.num_large += sign * template.is_large
        if not sums.num_large:
            del self._rows[row]

    def forget(self, row: int) -> None:
        """Take note that *row* is free, or about another node."""
        self._rows.pop(row, None)

    def take(self, rows: NDArray[np.intp]) -> "LargeLoads":
        """Return those of *rows*, by their position."""
        taken = LargeLoads()
        if self._rows:
            taken._rows = {
                i: self._rows[row].copy() for i, row in enumerate(rows.tolist()) if row in self
            }
        return taken

    def copy(self) -> "LargeLoads":
        twin = LargeLoads()
        twin._rows = {row: sums.copy() for row, sums in self._rows.items()}
        return twin
