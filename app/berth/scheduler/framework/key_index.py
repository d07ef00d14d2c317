"""Finding the things that concern a key without asking them all."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from berth.kube.objects.selectors import Operator, Selector

T = TypeVar("T", bound=Hashable)

Choices = Sequence[tuple[Hashable, ...]]
"""Sets of keys, of which a thing is filed under one set; each of its keys finds the thing."""

ANYWHERE: Final[Choices] = ()
"""Found by every key."""
NOWHERE: Final[Choices] = ((),)
"""Found by no key."""


def label_choices(selector: Selector) -> Sequence[tuple[tuple[str, str], ...]]:
    """Return how to file a selector, to be found by the labels that it matches.

    Most selectors say ``app In (web)``: they can only match where that very label is. Those that
    insist on no label are found anywhere.
    """
    if selector.is_nothing:
        return [()]
    return [
        tuple((requirement.key, value) for value in requirement.values)
        for requirement in selector.requirements
        if requirement.operator is Operator.IN
    ]


class KeyIndex(Generic[T]):
    """Things filed under keys. Of several choices the one with the fewest neighbours is taken."""

    __slots__ = ("_anywhere", "_by_key", "_places")

    def __init__(self) -> None:
        self._by_key: dict[Hashable, dict[T, None]] = {}
        self._anywhere: dict[T, None] = {}
        self._places: dict[T, tuple[Hashable, ...]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, item: T, choices: Choices) -> None:
        """File *item*, which must not be here yet."""
        if not choices:
            self._places[item] = ()
            self._anywhere[item] = None
            return
        keys = choices[0] if len(choices) == 1 else min(choices, key=self._neighbours)
        self._places[item] = keys
        for key in keys:
            self._by_key.setdefault(key, {})[item] = None

    def _neighbours(self, keys: tuple[Hashable, ...]) -> int:
        return sum(len(self._by_key.get(key, ())) for key in keys)

    def remove(self, item: T) -> None:
        """Take *item* out; KeyError if it is not here."""
        for key in dict.fromkeys(self._places.pop(item)):
            filed = self._by_key[key]
            del filed[item]
            if not filed:
                del self._by_key[key]
        self._anywhere.pop(item, None)

    def candidates(self, keys: Iterable[Hashable]) -> Iterator[T]:
        """Yield all that is found by any of *keys*; again for each further key that finds it."""
        yield from self._anywhere
        if self._by_key:
            for key in keys:
                yield from self._by_key.get(key, ())
