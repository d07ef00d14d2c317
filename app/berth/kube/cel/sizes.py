"""Sizes and costs, in numbers that stop at 2**64 - 1 as Kubernetes' do."""

import math
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1
"""Also what stands for an unknown size."""

TRAVERSAL: Final = 0.1
"""The cost of reading one character, so that a string costs a tenth of its length."""
PATTERN: Final = 0.25
"""The cost of one character of a regular expression."""


def add(*amounts: int) -> int:
    return min(MOST, sum(amounts))


def multiply(one: int, other: int) -> int:
    return min(MOST, one * other)


def scaled(amount: int, factor: float) -> int:
    """Return *amount* times *factor*, rounded up."""
    return min(MOST, math.ceil(float(amount) * factor))


class Size(NamedTuple):
    """Least and greatest number of characters, bytes, items or entries."""

    min: int
    max: int

    @classmethod
    def of(cls, size: int) -> "Size":
        return cls(size, size)

    def union(self, other: "Size") -> "Size":
        return Size(min(self.min, other.min), max(self.max, other.max))

    def plus(self, other: "Size") -> "Size":
        return Size(add(self.min, other.min), add(self.max, other.max))

    def times(self, other: "Size") -> "Size":
        return Size(multiply(self.min, other.min), multiply(self.max, other.max))

    def cost(self, factor: float) -> int:
        """Return the greatest cost of something that takes *factor* for each element."""
        return scaled(self.max, factor)


UNKNOWN: Final = Size(0, MOST)
ONE: Final = Size.of(1)


class Entries(NamedTuple):
    """The sizes of what a list or map holds; a list's keys are its indexes."""

    kind: str
    key: Size
    value: Size

    def union(self, other: "Entries") -> "Entries":
        return Entries(self.kind, self.key.union(other.key), self.value.union(other.value))
