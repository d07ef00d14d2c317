"""What is to be low or high, and what must not become worse than some bound."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeAlias

from berth.tools.lab.errors import LabError

Totals: TypeAlias = Mapping[str, float]
"""What a run came to, by name, as in :class:`~berth.tools.lab.curves.RunResult`."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A weighted sum of measures, to be as low as possible, within bounds."""

    weights: Mapping[str, float]
    """By measure; negative for what is to be high."""
    at_most: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)

    def check(self, known: Iterable[str]) -> None:
        """Raise LabError for a measure that is not among *known* ones."""
        known = sorted(known)
        for name in (*self.weights, *self.at_most, *self.at_least):
            if name not in known:
                raise LabError(f"{name!r}: no measure of this workload: {', '.join(known)}")

    def value(self, totals: Totals) -> float:
        """Return what *totals* come to; a measure of nothing, such as of no jobs, is 0."""
        return sum(weight * totals.get(name, 0.0) for name, weight in self.weights.items())

    def excess(self, runs: Sequence[Totals]) -> dict[str, float]:
        """Return by measure how far the mean of *runs* is out of bounds, where it is."""
        excess = {}
        for bounds, sign in ((self.at_most, 1), (self.at_least, -1)):
            for name, bound in bounds.items():
                over = sign * (fmean(totals.get(name, 0.0) for totals in runs) - bound)
                if over > 0:
                    excess[name] = over
        return excess

    def rank(self, runs: Sequence[Totals]) -> tuple[float, float]:
        """Return what orders candidates: first by what is out of bounds, then by the mean value."""
        return sum(self.excess(runs).values()), fmean(map(self.value, runs))

    @property
    def words(self) -> str:
        """Say it in a line."""
        terms = [
            f"{'less' if weight > 0 else 'more'} {name}"
            + (f" × {abs(weight):g}" * (abs(weight) != 1))
            for name, weight in self.weights.items()
        ]
        bounds = [f"{name} at most {bound:g}" for name, bound in self.at_most.items()]
        bounds += [f"{name} at least {bound:g}" for name, bound in self.at_least.items()]
        return ", ".join([" + ".join(terms), *bounds])
