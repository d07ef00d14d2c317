"""Rows of a table that have changed lately."""

from collections import deque
from typing import Final

MOST: Final = 256
"""How many changes are remembered."""


class LastChanges(deque[tuple[int, int]]):
    """Generations, in ascending order, each with the row that changed then."""

    @classmethod
    def none(cls) -> "LastChanges":
        return cls(maxlen=MOST)

    def since(self, generation: int) -> list[int] | None:
        """Return the rows of later changes, in ascending order; None: not all are remembered."""
        rows = set[int]()
        for changed, row in reversed(self):
            if changed <= generation:
                return sorted(rows)
            rows.add(row)
        return None
