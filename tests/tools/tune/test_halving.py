"""Successive halving, on values that are known."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from hypothesis import given
from hypothesis import strategies as st

from berth.tools.tune.halving import BASELINE, most_runs, rungs, successive_halving


class Surface:
    """A value for each candidate, whatever the part; counts what it is asked for."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = values
        self.asked: list[tuple[int, int]] = []

    def __call__(self, units: Sequence[tuple[int, int]]) -> Mapping[tuple[int, int], float]:
        self.asked += units
        return {(candidate, part): self._values[candidate] + 10 * part for candidate, part in units}


surfaces = st.lists(st.integers(-1000, 1000), min_size=1, max_size=70)
parts = st.integers(1, 12)


@given(surfaces, parts)
def test_without_noise_the_best_candidate_is_kept(values: list[int], number: int) -> None:
    best, *_ = successive_halving(len(values), range(number), Surface(values), fmean)

    assert values[best] == min(values)


@given(surfaces, parts)
def test_nothing_is_run_twice_and_no_more_than_was_told(values: list[int], number: int) -> None:
    surface = Surface(values)
    successive_halving(len(values), range(number), surface, fmean)

    assert len(set(surface.asked)) == len(surface.asked) <= most_runs(len(values), number)


@given(surfaces, parts)
def test_the_baseline_is_tried_on_all_parts(values: list[int], number: int) -> None:
    surface = Surface(values)
    alive = successive_halving(len(values), range(number), surface, fmean)

    assert BASELINE in alive
    assert {part for candidate, part in surface.asked if candidate == BASELINE} == {*range(number)}


def test_candidates_halve_as_parts_double() -> None:
    assert list(rungs(32, 5)) == [(1, 16), (2, 8), (4, 4), (5, 4)]
    assert list(rungs(5, 1)) == [(1, 5)]
