"""The rows with the highest totals, found without a pass over all rows."""

from array import array
from bisect import bisect_left, insort
from itertools import islice
from typing import Final

import numpy as np

from berth.scheduler.framework.verdict import Ints, Mask

LEFT_OUT: Final = -(2**60)
"""The total of rows that are not to be chosen; others are not negative. With the scores of all
plugins added to it, it still is."""
IN_FRONT = 512
"""So many of the best rows at least are put in order at a time, if there are as many."""
_FEW = 8
"""When fewer are left in front, more are put there; who asks for the first rows asks for less."""


class BestRows:
    """Totals by row, and the best rows in order.

    Only the front is in order: all rows whose total is not below a threshold, by total. A row whose
    total changes moves in or out of the front, so that the next best is at hand; once the front
    has run out, one pass over all rows makes the next.
    """

    def __init__(self, totals: Ints) -> None:
        """Take over *totals*, one for each row, ``LEFT_OUT`` for those that cannot be chosen."""
        self.totals = totals
        """To be changed by :meth:`change` only."""
        self._num_rows = int(np.count_nonzero(totals >= 0))
        self._step_forward()

    def __len__(self) -> int:
        """The number of rows that can be chosen."""
        return self._num_rows

    @property
    def ties(self) -> "array[int]":
        """The rows that have the highest total, in ascending order; there must be any.

        Good until a total changes, and not to be changed.
        """
        return self._levels[self._order[-1]]

    def first(self, count: int) -> list[int]:
        """Return the best rows, as many as *count*, at most 8, or all; of equals the first ones."""
        assert count <= _FEW
        rows: list[int] = []
        for total in reversed(self._order):
            rows.extend(self._levels[total][: count - len(rows)])
            if len(rows) == count:
                break
        return rows

    def front(self) -> Ints:
        """Return the rows in front, in no order: those that are chosen next, unless they change."""
        return np.concatenate([np.frombuffer(rows, np.int64) for rows in self._levels.values()])

    def first_among(self, rows: Mask, count: int) -> tuple[Ints, list[int]] | None:
        """Return those of *rows* with their highest total, and the first as :meth:`first` does.

        None: a few looks at the front do not find so many.
        """
        ties: Ints | None = None
        first: list[int] = []
        for total in islice(reversed(self._order), _FEW):
            level = np.frombuffer(self._levels[total], np.int64)
            left = level[rows.take(level)]
            if len(left):
                ties = left if ties is None else ties
                first += left[: count - len(first)].tolist()
                if len(first) == count:
                    return ties, first
        return None

    def change(self, row: int, total: int) -> None:
        """Give *row* another total."""
        old = self.totals.item(row)
        if total == old:
            return
        self.totals[row] = total
        self._num_rows += (total >= 0) - (old >= 0)
        if old >= self._threshold:
            level = self._levels[old]
            del level[bisect_left(level, row)]
            self.num_in_front -= 1
            if not level:
                del self._levels[old]
                del self._order[bisect_left(self._order, old)]
        if total >= self._threshold:
            if total in self._levels:
                insort(self._levels[total], row)
            else:
                self._levels[total] = array("q", (row,))
                insort(self._order, total)
            self.num_in_front += 1
        if self.num_in_front < min(_FEW, self._num_rows):
            self._step_forward()

    def _step_forward(self) -> None:
        """Put the best rows in front, and lower the threshold to the last of them."""
        totals, size = self.totals, self.totals.size
        self._threshold = 0
        if size > IN_FRONT:
            self._threshold = max(int(np.partition(totals, size - IN_FRONT)[-IN_FRONT]), 0)
        rows = np.flatnonzero(totals >= self._threshold)
        of_rows = totals[rows]
        in_order = rows[of_rows.argsort(kind="stable")]
        distinct, counts = np.unique(of_rows, return_counts=True)
        self.num_in_front = len(rows)
        """How many rows are in front."""
        self._order: list[int] = distinct.tolist()
        """The totals in front, in ascending order."""
        self._levels: dict[int, array[int]] = {}
        """By total, the rows that have it, in ascending order."""
        levels = np.split(in_order, counts.cumsum()[:-1]) if len(rows) else ()
        for total, level in zip(self._order, levels, strict=True):
            self._levels[total] = array("q", level.tobytes())
