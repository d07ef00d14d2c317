"""Numbers in place of values, for columns."""

from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)


class ValueIds(Generic[V]):
    """Numbers the values that nodes have; 0 always stands for the value that means nothing.

    A number whose value no node has any more goes to the next new value. So what is kept by number
    does not grow where nodes come and go for months, each with its own host name.
    """

    __slots__ = ("_free", "_ids", "_uses", "values")

    def __init__(self, nothing: V) -> None:
        self.values: list[V] = [nothing]
        """By number; those that are not in use have the value that means nothing."""
        self._ids: dict[V, int] = {nothing: 0}
        self._uses = [0]
        """By number, how many nodes have it; 0 is not counted."""
        self._free: list[int] = []

    def of(self, value: V) -> int | None:
        """Return the number of *value*; None if it is not in use."""
        return self._ids.get(value)

    def exchange(self, old: int, value: V) -> int:
        """Return the number of *value*, which a node has now; before, it had that of number *old*.

        Start with 0, and end with the value of 0 when the node goes.
        """
        new = self._ids.get(value)
        if new == old:
            return old
        if new is None:
            new = self._ids[value] = self._new(value)
        self._uses[new] += 1
        self._release(old)
        return new

    def copy(self) -> "ValueIds[V]":
        """Return the same numbers, to be changed apart from these."""
        twin = ValueIds(self.values[0])
        twin.values, twin._ids = self.values.copy(), self._ids.copy()
        twin._uses, twin._free = self._uses.copy(), self._free.copy()
        return twin

    def _new(self, value: V) -> int:
        if self._free:
            number = self._free.pop()
            self.values[number] = value
            return number
        self.values.append(value)
        self._uses.append(0)
        return len(self.values) - 1

    def _release(self, number: int) -> None:
        if not number:
            return
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._ids[self.values[number]]
            self.values[number] = self.values[0]
            self._free.append(number)
