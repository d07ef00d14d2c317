"""Columns that follow from each row by itself, computed again only for rows that have changed."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = "slice | NDArray[np.intp]"
"""What to index the last dimension of a column with."""
Columns = Sequence[NDArray[Any]]
"""Arrays whose last dimension is the row."""

EVERY_ROW: Final = slice(None)
WORTH_IT: Final = 8
"""When more than one row in so many has changed, all are computed again."""


@dataclass(slots=True)
class _Kept:
    columns: Columns
    generation: int


class RowMemo:
    """Keeps columns of one table. Exact: what a row's generation says has changed is redone."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}

    def columns(
        self,
        key: Hashable,
        compute: Callable[[Rows], Columns],
        *,
        rows: int,
        last_generation: int,
        changed_since: Callable[[int], list[int]],
    ) -> Columns:
        """Return ``compute(EVERY_ROW)``, most of it from the last time that *key* was asked for.

        ``compute(rows)`` gives the values of *rows*; they may depend on nothing but *key* and what
        is in these rows. What it raises is raised, and all is computed again the next time. The
        answer is not to be changed, and good until the next question.
        """
        kept = self._kept.get(key)
        if kept is not None and kept.generation == last_generation:
            return kept.columns
        self._kept.pop(key, None)
        if kept is None or kept.columns[0].shape[-1] != rows:
            kept = _Kept(compute(EVERY_ROW), last_generation)
        else:
            changed = changed_since(kept.generation)
            if len(changed) * WORTH_IT > rows:
                kept.columns = compute(EVERY_ROW)
            else:
                index = np.array(changed, np.intp)
                for column, values in zip(kept.columns, compute(index), strict=True):
                    column[..., index] = values
            kept.generation = last_generation
        self._kept[key] = kept
        return kept.columns
