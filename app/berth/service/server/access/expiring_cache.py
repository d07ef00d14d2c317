"""Answers remembered for a while, and not too many of them."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Forgets each answer when its time is over, and the oldest when there are too many."""

    def __init__(self, *, capacity: int, monotonic: Callable[[], float]) -> None:
        self._capacity = capacity
        self._monotonic = monotonic
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K, default: V) -> V:
        """Return what is remembered of *key* and still good, else *default*."""
        entry = self._entries.get(key)
        if entry is None:
            return default
        until, value = entry
        if self._monotonic() >= until:
            del self._entries[key]
            return default
        return value

    def put(self, key: K, value: V, *, seconds: float) -> None:
        """Remember *value* for *seconds*; for none of them, not at all."""
        self._entries.pop(key, None)
        if seconds <= 0:
            return
        self._entries[key] = (self._monotonic() + seconds, value)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)
