"""Finding the selectors that match some labels without trying them all."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from berth.objects.selectors import Operator, Selector

T = TypeVar("T")


class SelectorIndex(Generic[T]):
    """Things with a selector, filed under a label that it insists on.

    Most selectors say ``app In (web)``: they can only match where that very label is. Of several
    such requirements the one with the fewest neighbours is taken. Selectors that insist on no
    label are candidates everywhere, those that match nothing are nowhere.
    """

    __slots__ = ("_anywhere", "_by_label", "_places")

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], dict[T, None]] = {}
        self._anywhere: dict[T, None] = {}
        self._places: dict[T, tuple[tuple[str, str], ...]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, item: T, selector: Selector) -> None:
        """File *item*, which must not be here yet."""
        if selector.is_nothing:
            self._places[item] = ()
            return
        choices = [
            tuple((requirement.key, value) for value in requirement.values)
            for requirement in selector.requirements
            if requirement.operator is Operator.IN
        ]
        if not choices:
            self._places[item] = ()
            self._anywhere[item] = None
            return
        place = min(choices, key=self._neighbours)
        self._places[item] = place
        for label in place:
            self._by_label.setdefault(label, {})[item] = None

    def _neighbours(self, labels: tuple[tuple[str, str], ...]) -> int:
        return sum(len(self._by_label.get(label, ())) for label in labels)

    def remove(self, item: T) -> None:
        """Take *item* out; KeyError if it is not here."""
        for label in self._places.pop(item):
            filed = self._by_label[label]
            del filed[item]
            if not filed:
                del self._by_label[label]
        self._anywhere.pop(item, None)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Yield, each once, all items whose selector matches *labels*, and some others."""
        yield from self._anywhere
        if self._by_label:
            for label in labels.items():
                yield from self._by_label.get(label, ())
