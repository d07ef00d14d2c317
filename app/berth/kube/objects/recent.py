"""A cache of what was asked for lately."""

from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(dict[K, V]):
    """Values that *make* makes of their keys once; those not asked for lately are forgotten.

    ``recent[key]`` is as fast as a dict's. It holds the *most* values that came last, and at most
    as many more.
    """

    __slots__ = ("_before", "_make", "_most")

    def __init__(self, make: Callable[[K], V], *, most: int) -> None:
        super().__init__()
        self._make = make
        self._most = most
        self._before: dict[K, V] = {}

    def __missing__(self, key: K) -> V:
        value = self._before.get(key)
        if value is None:
            value = self._make(key)
        if len(self) >= self._most:
            self._before = dict(self)
            self.clear()
        self[key] = value
        return value


def itself(value: V) -> V:
    """Return *value*: what a :class:`Recent` makes that keeps equal values once."""
    return value
