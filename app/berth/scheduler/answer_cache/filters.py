"""Filters that reject rows, kept while the loads of rows change."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from berth.scheduler.framework.verdict import Mask, Rejection, Verdict

NOBODY: Final = 127
"""In place of a filter: none has rejected the row."""
NOT_ELIGIBLE: Final = -1


class CachedFilters:
    """What the filters of a profile, by index, hold against rows.

    A row is charged to the first filter that rejects it. Of filters that go by nodes alone it is
    cached also what they hold against rows that another has rejected, which may change.

    Masks that were handed out stay as they are.
    """

    def __init__(self, eligible: Mask) -> None:
        self.num_eligible: Final = int(np.count_nonzero(eligible))
        self.charged = np.where(eligible, NOBODY, NOT_ELIGIBLE).astype(np.int8)
        """By row, the index of the filter that it is charged to."""
        self._lasting = self.charged.copy()
        """By row, the first filter that rejects it whatever its load."""
        self._first_by_load = NOBODY
        self._lasting_verdicts: dict[int, Verdict] = {}
        self._rejections: dict[int, list[Rejection]] = {}
        self._num_rejected: dict[int, int] = {}
        self._charges: list[tuple[int, Verdict, int]] | None = None
        self.feasible: Mask = eligible
        """The rows that no filter rejects."""

    @property
    def charges(self) -> list[tuple[int, Verdict, int]]:
        """By index of the filter, what it holds against rows, and how many these are."""
        if self._charges is None:
            self._charges = [
                (index, Verdict(tuple(rejections)), self._num_rejected[index])
                for index, rejections in sorted(self._rejections.items())
            ]
        return self._charges

    def left_for(self, index: int) -> Mask:
        """Return the rows that no filter before *index* rejects."""
        return self.charged >= index

    def not_ruled_out(self) -> Mask:
        """Return the rows that no filter rejects whatever their load."""
        mask: Mask = self._lasting == NOBODY
        return mask

    def is_ruled_out(self, row: int) -> bool:
        """Whether *row* is charged to a filter that its load does not come to."""
        return self._lasting.item(row) < self._first_by_load

    # Asking all, in order of the filters.

    def add(self, index: int, verdict: Verdict, *, lasts: bool) -> None:
        """Take in what the filter at *index* says; *lasts*: whatever the load of a row."""
        if not lasts:
            self._first_by_load = min(self._first_by_load, index)
        rejected = verdict.rejected()
        if rejected is None:
            return
        if lasts:
            self._lasting_verdicts[index] = verdict
            self._lasting[rejected & (self._lasting == NOBODY)] = index
        charged = verdict.within(self.feasible)
        rejected = charged.rejected()
        if rejected is not None:
            self._rejections[index] = list(charged.rejections)
            self._num_rejected[index] = int(np.count_nonzero(rejected))
            self.charged[rejected] = index
            self.feasible = self.feasible & ~rejected

    # Keeping up.

    def change(self, row: int, by_load: tuple[int, Sequence[Rejection]] | None) -> bool:
        """Charge *row* anew, whose load has changed; return whether it is feasible.

        *by_load* is the first filter that goes by load and rejects it, and what for.
        """
        old, lasting = self.charged.item(row), self._lasting.item(row)
        new, rejections = by_load or (NOBODY, ())
        if lasting < new:
            new, rejections = lasting, self._lasting_rejections(row)
        if new == NOBODY and old == NOBODY:
            return True
        self._charges = None
        if old != NOBODY:
            self._acquit(row, old)
        if new != NOBODY:
            self._accuse(row, new, rejections)
        if (old == NOBODY) != (new == NOBODY):
            self.feasible = self.feasible.copy()
            self.feasible[row] = new == NOBODY
        self.charged[row] = new
        return new == NOBODY

    def _lasting_rejections(self, row: int) -> list[Rejection]:
        verdict = self._lasting_verdicts[self._lasting.item(row)]
        return [rejection for rejection in verdict.rejections if rejection.where[row]]

    def _acquit(self, row: int, index: int) -> None:
        left = []
        for reason, code, where in self._rejections.pop(index):
            if where[row]:
                where = where.copy()
                where[row] = False
            if where.any():
                left.append(Rejection(reason, code, where))
        self._num_rejected[index] -= 1
        if left:
            self._rejections[index] = left

    def _accuse(self, row: int, index: int, added: Sequence[Rejection]) -> None:
        rejections = self._rejections.setdefault(index, [])
        self._num_rejected[index] = self._num_rejected.get(index, 0) + 1
        for reason, code, _ in added:
            at = next((i for i, r in enumerate(rejections) if r[:2] == (reason, code)), None)
            where = np.zeros(len(self.charged), bool) if at is None else rejections[at].where.copy()
            where[row] = True
            if at is None:
                rejections.append(Rejection(reason, code, where))
            else:
                rejections[at] = Rejection(reason, code, where)
