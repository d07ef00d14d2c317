"""Sets of completion indexes, as the status of an Indexed Job writes them: ``0-2,5``."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

MOST: Final = 2**31

_ITEM: Final = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Indexes:
    """Numbers from 0, kept as intervals: there may be billions."""

    intervals: tuple[tuple[int, int], ...] = ()
    """First and last of each; in order, with gaps between them."""

    @classmethod
    def of(cls, numbers: Iterable[int]) -> "Indexes":
        return cls(tuple(_joined(sorted((number, number) for number in numbers))))

    @classmethod
    def parse(cls, text: str, *, below: int | None = None) -> "Indexes":
        """Read *text*; raise ValueError, in the words of the API, for what is not in order.

        All have to be less than *below*.
        """
        intervals: list[tuple[int, int]] = []
        previous = -1
        for item in text.split(",") if text else ():
            found = _ITEM.fullmatch(item)
            if found is None:
                raise ValueError(f'cannot convert string to integer for index: "{item}"')
            first, last = int(found[1]), int(found[2] or found[1])
            for number in (first, last):
                if below is not None and number >= below:
                    raise ValueError(f'too large index: "{number}"')
            if first <= previous:
                raise ValueError(f"non-increasing order, previous: {previous}, current: {first}")
            if found[2] and last <= first:
                raise ValueError(f"non-increasing order, previous: {first}, current: {last}")
            intervals.append((first, last))
            previous = last
        return cls(tuple(_joined(intervals)))

    def __contains__(self, number: int | None) -> bool:
        if number is None:
            return False
        place = bisect_right(self.intervals, (number, MOST)) - 1
        return place >= 0 and self.intervals[place][1] >= number

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def __or__(self, other: "Indexes") -> "Indexes":
        return Indexes(tuple(_joined(sorted((*self.intervals, *other.intervals)))))

    def below(self, limit: int) -> "Indexes":
        """Return those that are less than *limit*."""
        return Indexes(
            tuple((first, min(last, limit - 1)) for first, last in self.intervals if first < limit)
        )

    def count_in(self, other: "Indexes") -> int:
        """Return how many of these are in *other* too."""
        return len(self) + len(other) - len(self | other)

    def missing(self, limit: int, most: int) -> list[int]:
        """Return the first *most* numbers below *limit* that are not in here."""
        gaps: list[range] = []
        start = 0
        for first, last in self.intervals:
            gaps.append(range(start, min(first, limit)))
            start = last + 1
        gaps.append(range(start, limit))
        return list(islice(chain.from_iterable(gaps), most))

    def __str__(self) -> str:
        return ",".join(_written(first, last) for first, last in self.intervals)


def _written(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if first + 1 == last else f"{first}-{last}"


def _joined(intervals: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield sorted *intervals* with those that touch made one."""
    current: tuple[int, int] | None = None
    for first, last in intervals:
        if current is not None and first <= current[1] + 1:
            current = (current[0], max(current[1], last))
            continue
        if current is not None:
            yield current
        current = (first, last)
    if current is not None:
        yield current
