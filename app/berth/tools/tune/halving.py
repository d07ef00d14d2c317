"""Successive halving: many candidates on little, and few on all (Jamieson and Talwalkar, 2016)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

P = TypeVar("P")
V = TypeVar("V")

BASELINE: Final = 0
"""The candidate that all others are compared with; it always stays."""

Evaluate: TypeAlias = Callable[[Sequence[tuple[int, P]]], Mapping[tuple[int, P], V]]
"""Returns a value for each candidate and part."""


def successive_halving(
    candidates: int,
    parts: Sequence[P],
    evaluate: "Evaluate[P, V]",
    rank: Callable[[Sequence[V]], Any],
) -> list[int]:
    """Return the candidates that were tried on all *parts*, the best first.

    The first one is tried on one part, then on two, four and so on, and after each time the worse
    half goes. *rank* orders candidates by their values, the lowest first; of equal ones the first
    is the better one.
    """
    values: dict[tuple[int, P], V] = {}
    alive = list(range(candidates))
    for number, keep in rungs(candidates, len(parts)):
        seen = parts[:number]
        values |= evaluate([(c, p) for c in alive for p in seen if (c, p) not in values])
        alive.sort(key=lambda candidate: (rank([values[candidate, p] for p in seen]), candidate))
        alive = [c for place, c in enumerate(alive) if place < keep or c == BASELINE]
    return alive


def rungs(candidates: int, parts: int) -> Iterator[tuple[int, int]]:
    """Yield on how many parts candidates are tried, and how many of them stay."""
    number = 1
    while number < parts:
        candidates = -(-candidates // 2)
        yield number, candidates
        number = min(2 * number, parts)
    yield parts, candidates


def most_runs(candidates: int, parts: int) -> int:
    """Return how many values are asked for at most."""
    runs = tried = 0
    for number, keep in rungs(candidates, parts):
        runs += candidates * (number - tried)
        tried, candidates = number, min(keep + 1, candidates)
    return runs
