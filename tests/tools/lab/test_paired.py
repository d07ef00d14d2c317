"""Paired differences with their intervals."""

import numpy as np
import pytest

from berth.tools.lab.paired import paired_difference, t_quantile


@pytest.mark.parametrize(
    ("freedom", "want"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (1000, 1.962)],
)
def test_quantiles_are_those_of_printed_tables(freedom: int, want: float) -> None:
    assert t_quantile(freedom) == pytest.approx(want, abs=0.001)


def test_what_all_pairs_share_is_no_noise() -> None:
    difference = paired_difference([11, 102, 1003], [1, 92, 993])

    assert difference is not None
    assert (difference.mean, difference.low, difference.high) == (10, 10, 10)
    assert difference.is_sure


def test_a_single_pair_says_nothing() -> None:
    assert paired_difference([1], [2]) is None


def test_the_interval_has_the_mean_in_95_of_100_cases() -> None:
    numbers = np.random.default_rng(1).normal(3, 2, (2000, 5))
    within = 0
    for row in numbers:
        difference = paired_difference(list(row), [0.0] * 5)
        assert difference is not None
        within += difference.low <= 3 <= difference.high

    assert within / 2000 == pytest.approx(0.95, abs=0.015)
