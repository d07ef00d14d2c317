"""Scores of rows by plugin, kept while the loads of rows change, and the best of their totals."""

from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np

from berth.scheduler.answer_cache.best_rows import LEFT_OUT, BestRows
from berth.scheduler.framework.interface import ScorePlugin
from berth.scheduler.framework.verdict import Ints, Mask, Rows

Normalize = Callable[[ScorePlugin, Ints], Ints]
"""Asks a plugin to normalise raw scores."""


class CachedScore(msgspec.Struct):
    """What one plugin gives each row."""

    plugin: ScorePlugin
    weight: int
    raw: Ints
    normal: Ints
    """The very same as ``raw`` if the plugin does not normalise."""
    is_relative: bool = False
    """Whether the score of a row follows from which others are candidates."""
    low: int = 0
    """For relative ones, the lowest raw score of a candidate."""
    high: int = 0
    num_low: int = 0
    """How many candidates have the lowest raw score."""
    num_high: int = 0

    def look_at(self, raw: Ints) -> None:
        """Find the lowest and the highest of *raw*, the scores of all candidates."""
        self.low, self.high = int(raw.min()), int(raw.max())
        self.num_low = int(np.count_nonzero(raw == self.low))
        self.num_high = int(np.count_nonzero(raw == self.high))

    def count(self, row: int, by: int) -> bool:
        """Count a candidate that comes (1) or goes (-1); False if others are scored anew for it.

        That is if the lowest or the highest score changes. Plugins that come with berth go by
        nothing else when they normalise a score.
        """
        raw = self.raw.item(row)
        if not self.low <= raw <= self.high:
            return False
        if raw == self.low:
            self.num_low += by
        if raw == self.high:
            self.num_high += by
        return self.num_low > 0 and self.num_high > 0


class ScoreOfAll(msgspec.Struct, frozen=True):
    """What one plugin gives all rows."""

    name: str
    weight: int
    raw: int
    normal: int


class CachedScores:
    """What Score plugins gave rows, and which candidates have the highest totals."""

    def __init__(
        self,
        scores: Iterable[CachedScore],
        of_all: Iterable[ScoreOfAll],
        candidates: Mask,
        *,
        least_total: int,
        normalize: Normalize,
    ) -> None:
        """*least_total* is what all rows get beside. One row at least is among *candidates*."""
        self._scores = {score.plugin.NAME: score for score in scores}
        self._relative = [score for score in self._scores.values() if score.is_relative]
        self._normalize = normalize
        self._raw_of_all = {score.name: score.raw for score in of_all}
        self._normal_of_all = {score.name: score.normal for score in of_all}
        self._least_total = least_total + sum(score.normal * score.weight for score in of_all)
        self._add_up(candidates)

    def _add_up(self, candidates: Mask) -> None:
        """Normalise the scores of all candidates as far as they depend on each other; add all."""
        rows = np.flatnonzero(candidates)
        for relative in self._relative:
            raw = relative.raw[rows]
            relative.normal[rows] = self._normalize(relative.plugin, raw)
            relative.look_at(raw)
        total = np.full(len(candidates), self._least_total, np.int64)
        for score in self._scores.values():
            total += score.normal if score.weight == 1 else score.normal * score.weight
        self.best = BestRows(np.where(candidates, total, LEFT_OUT))

    @property
    def are_relative(self) -> bool:
        """Whether the total of a row follows from which others are candidates."""
        return bool(self._relative)

    # Keeping up.

    def drop(self, row: int, candidates: Mask) -> None:
        """Take *row*, which was one of *candidates*, out; one at least is left."""
        if self._count(row, -1):
            self.best.change(row, LEFT_OUT)
        else:
            self._add_up(candidates)

    def change(
        self, row: int, by_load: Mapping[str, int], candidates: Mask, *, is_new: bool
    ) -> None:
        """Give a row of *candidates* the new scores of plugins that go *by_load*.

        *is_new*: it was not one of them.
        """
        for name, score in by_load.items():
            self._scores[name].raw[row] = score
        if is_new and not self._count(row, 1):
            self._add_up(candidates)
            return
        total = self._least_total
        for cached in self._scores.values():
            total += cached.normal.item(row) * cached.weight
        self.best.change(row, total)

    def change_all(self, rows: list[int], by_load: Mapping[str, Ints]) -> None:
        """Do the same for several rows, which were candidates before."""
        for name, scores in by_load.items():
            self._scores[name].raw[rows] = scores
        totals = np.full(len(rows), self._least_total, np.int64)
        for score in self._scores.values():
            totals += score.normal[rows] * score.weight
        for row, total in zip(rows, totals.tolist(), strict=True):
            self.best.change(row, total)

    def _count(self, row: int, by: int) -> bool:
        """Count a candidate that comes or goes; False if others are scored anew for it."""
        for score in self._relative:
            if not score.count(row, by):
                return False
            if by > 0:
                raw = np.array([score.low, score.high, score.raw[row]], np.int64)
                score.normal[row] = self._normalize(score.plugin, raw)[2]
        return True

    # Reading. Of rows, by plugin; a number is for all of them.

    def of(self, rows: Rows) -> tuple[dict[str, Ints | int], dict[str, Ints | int]]:
        """Return the scores of *rows* as plugins gave them, and normalised."""
        raw: dict[str, Ints | int] = {**self._raw_of_all}
        normal: dict[str, Ints | int] = {**self._normal_of_all}
        for name, score in self._scores.items():
            raw[name] = normal[name] = score.raw.take(rows)
            if score.is_relative:
                normal[name] = score.normal.take(rows)
        return raw, normal

    def normal_among(self, candidates: Mask, rows: Rows) -> dict[str, Ints | int]:
        """Return by plugin the scores that go by others, as if only *candidates* were these."""
        normal: dict[str, Ints | int] = {}
        for score in self._relative:
            of_all = self._normalize(score.plugin, among(score.raw, candidates))
            normal[score.plugin.NAME] = of_all.take(rows)
        return normal

    def totals_among(self, candidates: Mask) -> Ints:
        """Return what the totals were by row if only *candidates* were candidates."""
        total = np.full(len(candidates), self._least_total, np.int64)
        for score in self._scores.values():
            normal = score.normal
            if score.is_relative:
                normal = self._normalize(score.plugin, among(score.raw, candidates))
            total += normal * score.weight
        total[~candidates] = LEFT_OUT
        return total


def among(raw: Ints, candidates: Mask) -> Ints:
    """Return *raw* for *candidates*, and the score of one of them for all other rows.

    So the lowest and the highest are those of the candidates.
    """
    return np.where(candidates, raw, raw.item(candidates.argmax()))
