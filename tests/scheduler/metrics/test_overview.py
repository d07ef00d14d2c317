"""The rings of the overview: what they keep, and how a series is made of it."""

from dataclasses import replace
from typing import Final

import pytest

from berth.scheduler.metrics.overview import KEPT_SECONDS, MOST_POINTS, NAMES, Numbers, Rings

NOTHING: Final = Numbers(*(0 for _ in NAMES))
START: Final = 1_000_000_000.0


def rings(*active: int, every: float = 1.0, start: float = START) -> Rings:
    """Rings with samples of so many active pods, whose loop lag is a tenth of that."""
    made = Rings()
    for i, number in enumerate(active):
        made.add(start + i * every, replace(NOTHING, active=number, loop_lag_seconds=number / 10))
    return made


def test_they_take_less_than_a_mebibyte_however_much_is_added() -> None:
    made = rings(*range(KEPT_SECONDS + 100))
    assert made.nbytes == Rings().nbytes < 1 << 20


@pytest.mark.parametrize(
    ("active", "seconds", "times", "numbers"),
    [
        pytest.param((), 10, [], [], id="nothing was measured"),
        pytest.param((7,), 10, [0], [7], id="one second"),
        pytest.param((1, 2, 3), 2, [1, 2], [2, 3], id="no more than is asked for"),
        pytest.param((1, 2, 3), 60, [0, 1, 2], [1, 2, 3], id="no more than there is"),
    ],
)
def test_a_series_of_seconds(
    active: tuple[int, ...], seconds: int, times: list[float], numbers: list[float]
) -> None:
    series = rings(*active).series(seconds)
    assert series.step_seconds == 1
    assert [time - START for time in series.times] == times
    assert series.numbers["active"] == numbers


def test_a_long_series_has_means_and_the_peaks_of_what_must_not_be_missed() -> None:
    series = rings(*range(KEPT_SECONDS), start=START + 5).series(KEPT_SECONDS)

    assert series.step_seconds == KEPT_SECONDS // MOST_POINTS == 10
    assert [time - START for time in series.times[:3]] == [0, 10, 20]
    assert series.numbers["active"][:3] == [2.0, 9.5, 19.5]
    assert series.numbers["loopLagSeconds"][:3] == [0.4, 1.4, 2.4]


def test_the_oldest_samples_make_room() -> None:
    series = rings(*range(KEPT_SECONDS + 10)).series(KEPT_SECONDS)
    assert len(series.times) == MOST_POINTS
    assert series.numbers["active"][0] == sum(range(10, 20)) / 10
    assert series.numbers["active"][-1] == KEPT_SECONDS + 4.5


def test_a_clock_that_is_set_back_does_no_harm() -> None:
    made = rings(1, 2)
    made.add(START - 7_200, replace(NOTHING, active=3))
    series = made.series(60)
    assert series.step_seconds == 1
    assert series.numbers["active"] == [1, 2, 3]


def test_seconds_without_samples_are_left_out() -> None:
    series = rings(1, 2, 3, every=20).series(60)
    assert [time - START for time in series.times] == [0, 20, 40]


def test_a_sum_over_the_last_samples() -> None:
    made = rings(1, 2, 3)
    assert made.sum("active", samples=2) == 5
    assert made.sum("active", samples=60) == 6
