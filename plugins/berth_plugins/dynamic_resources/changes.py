"""Changes since somebody looked last."""

from collections import deque
from itertools import islice
from typing import Final, Generic, TypeVar

T = TypeVar("T")

KEPT: Final = 1024
"""So many changes are remembered."""


class Changes(Generic[T]):
    """The last changes, one for each version."""

    def __init__(self) -> None:
        self.version = 0
        self._last: deque[T] = deque(maxlen=KEPT)

    def add(self, change: T) -> None:
        self.version += 1
        self._last.append(change)

    def since(self, version: int) -> set[T] | None:
        """Return all changes after *version*; None if they are too many to be remembered."""
        count = self.version - version
        return None if count > len(self._last) else {*islice(reversed(self._last), count)}
