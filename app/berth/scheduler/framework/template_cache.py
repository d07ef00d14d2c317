"""Results kept for the pod templates that were asked about last."""

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from berth.scheduler.framework.pod_info import PodTemplate

T = TypeVar("T")

KEPT: Final = 8
"""Templates that are known at once; what is known of one may take a megabyte at 5,000 nodes."""


class TemplateCache(Generic[T]):
    """An LRU cache by pod template; an entry is valid while what it depends on stays equal."""

    def __init__(self, capacity: int = KEPT) -> None:
        self._capacity = capacity
        self._entries: dict[PodTemplate, tuple[Hashable, T]] = {}

    def get(self, template: PodTemplate, *, depends_on: Hashable, build: Callable[[], T]) -> T:
        """Return the entry of *template*; what *build* makes if there is none that is valid."""
        kept = self._entries.pop(template, None)
        entry = kept[1] if kept is not None and kept[0] == depends_on else build()
        if len(self._entries) >= self._capacity:
            del self._entries[next(iter(self._entries))]
        self._entries[template] = depends_on, entry
        return entry
