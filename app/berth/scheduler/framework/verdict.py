"""A Filter plugin's answer for all rows of a table at once."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.scheduler.framework.status import Code, Status

Mask = NDArray[np.bool_]
"""One flag per row of a table."""
Ints = NDArray[np.int64]
"""One number per row of a table."""
Rows = NDArray[np.intp]
"""Some rows of a table, by their numbers."""


def everywhere(value: int, rows: int) -> Ints:
    """Return *value* for each of so many rows, as one number that they all look at (stride 0).

    A thousandth of what a column takes, and a column takes its time when it is not in the CPU's
    caches. Not to be changed.
    """
    return _everywhere(value, rows)


@lru_cache(maxsize=1024)
def _everywhere(value: int, rows: int) -> Ints:
    return np.ndarray((rows,), np.int64, buffer=np.int64(value).tobytes(), strides=(0,))


def is_everywhere(scores: Ints) -> bool:
    """Whether *scores* are one value that all rows look at, as :func:`everywhere` makes them."""
    return scores.strides == (0,)


class Rejection(NamedTuple):
    """One reason, and the rows it holds for."""

    reason: str
    code: Code
    where: Mask


class Verdict:
    """An ordered list of rejections; a row in none of them passes.

    A row may have several reasons (NodeResourcesFit). Its code is the gravest of them: Error, then
    UnschedulableAndUnresolvable, then Unschedulable (spec §5.8: "UU if any").
    """

    __slots__ = ("_num_rejected", "rejections")

    def __init__(self, rejections: tuple[Rejection, ...] = ()) -> None:
        self.rejections = rejections
        self._num_rejected: int | None = None

    @classmethod
    def reject(cls, status: Status, where: Mask) -> "Verdict":
        """Reject the rows *where* for the reasons of *status*."""
        return cls(tuple(Rejection(reason, status.code, where) for reason in status.reasons))

    def __bool__(self) -> bool:
        """Whether any rejection is listed (its mask may still be empty)."""
        return bool(self.rejections)

    def rejected(self) -> Mask | None:
        """Return the rows that have any reason against them; None when no rejection is listed."""
        if not self.rejections:
            return None
        union = self.rejections[0].where
        for rejection in self.rejections[1:]:
            union = union | rejection.where
        return union

    @property
    def num_rejected(self) -> int:
        """How many rows have any reason against them; counted once."""
        if self._num_rejected is None:
            rejected = self.rejected()
            self._num_rejected = 0 if rejected is None else int(np.count_nonzero(rejected))
        return self._num_rejected

    def rows_with(self, code: Code) -> Mask:
        """Return the rows whose code is *code*; any rejection must be listed."""
        shape = self.rejections[0].where.shape
        rows, graver = np.zeros(shape, bool), np.zeros(shape, bool)
        for rejection in self.rejections:
            if rejection.code is code:
                rows |= rejection.where
            elif _GRAVITY[rejection.code] > _GRAVITY[code]:
                graver |= rejection.where
        return rows & ~graver

    def within(self, rows: Mask) -> "Verdict":
        """Return this verdict for *rows* only, without the reasons that hold for none of them."""
        kept = []
        for reason, code, where in self.rejections:
            left = where & rows
            if np.count_nonzero(left):  # half of what any() takes
                kept.append(Rejection(reason, code, left))
        return Verdict(tuple(kept))

    def status_of(self, row: int) -> Status | None:
        """Put one row's answer into words; None: it passes."""
        rejections = [r for r in self.rejections if r.where[row]]
        if not rejections:
            return None
        code = max((r.code for r in rejections), key=_GRAVITY.__getitem__)
        return Status(code, tuple(r.reason for r in rejections))


_GRAVITY = {
    Code.PENDING: 0,
    Code.UNSCHEDULABLE: 1,
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: 2,
    Code.ERROR: 3,
}

PASS = Verdict()
"""Every row passes."""
