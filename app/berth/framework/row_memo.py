"""Columns that follow from each row by itself, computed again only for rows that have changed."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from berth.framework.verdict import Ints

Rows: TypeAlias = "slice | NDArray[np.intp]"
"""What to index a column with."""

EVERY_ROW: Final = slice(None)
MOST_KEPT: Final = 32
"""Columns; those that were asked for last stay."""
WORTH_IT: Final = 8
"""When more than one row in so many has changed, all are computed again."""


@dataclass(slots=True)
class _Column:
    values: Ints
    generation: int


class RowMemo:
    """Keeps the columns of one table. Exact: what a row's generation says has changed is redone."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Column] = {}

    def column(
        self,
        key: Hashable,
        generation: Ints,
        last_generation: int,
        compute: Callable[[Rows], Ints],
    ) -> Ints:
        """Return ``compute(EVERY_ROW)``, most of it from the last time that *key* was asked for.

        ``compute(rows)`` gives the values of *rows*; they may depend on nothing but *key* and what
        is in these rows. The answer is not to be changed, and good until the next question.
        """
        kept = self._kept.pop(key, None)
        if kept is not None and len(kept.values) == len(generation):
            changed = np.flatnonzero(generation > kept.generation)
            if len(changed) * WORTH_IT > len(generation):
                kept.values = compute(EVERY_ROW)
            elif len(changed):
                kept.values[changed] = compute(changed)
        else:
            kept = _Column(compute(EVERY_ROW), last_generation)
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        kept.generation = last_generation
        self._kept[key] = kept
        return kept.values
