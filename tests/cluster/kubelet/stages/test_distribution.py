"""Numbers that are drawn."""

import random
from statistics import fmean, median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from berth.cluster.kubelet.stages.distribution import Amount, Delay


def drawn(told: Any, count: int = 4000) -> list[float]:
    delay, rng = Delay.model_validate(told), random.Random(1)
    return [delay.draw(rng) for _ in range(count)]


@pytest.mark.parametrize(
    ("told", "want"),
    [
        pytest.param("1.5s", 1.5, id="a duration"),
        pytest.param("2m", 120.0, id="minutes"),
        pytest.param({"value": "3s", "max": "2s"}, 2.0, id="a constant within bounds"),
    ],
)
def test_a_constant_is_always_the_same(told: Any, want: float) -> None:
    assert set(drawn(told, 5)) == {want}


def test_what_distributions_are_like() -> None:
    uniform = drawn({"distribution": "uniform", "min": "1s", "max": "3s"})
    normal = drawn({"distribution": "normal", "mean": "10s", "standardDeviation": "1s"})
    lognormal = drawn({"distribution": "lognormal", "median": "2s", "sigma": 0.5})
    exponential = drawn({"distribution": "exponential", "mean": "4s"})

    assert min(uniform) >= 1 < 3 >= max(uniform)
    assert fmean(uniform) == pytest.approx(2, rel=0.05)
    assert fmean(normal) == pytest.approx(10, rel=0.05)
    assert median(lognormal) == pytest.approx(2, rel=0.05)
    assert fmean(exponential) == pytest.approx(4, rel=0.05)


NUMBERS = st.floats(0, 1000).map(lambda number: f"{number:.3f}s")
BOUNDS = st.tuples(st.integers(0, 10), st.integers(10, 50))


@given(
    st.one_of(
        st.builds(lambda m: {"distribution": "exponential", "mean": m}, NUMBERS),
        st.builds(
            lambda m, s: {"distribution": "normal", "mean": m, "standardDeviation": s},
            NUMBERS,
            NUMBERS,
        ),
        st.builds(
            lambda s: {"distribution": "lognormal", "median": "5s", "sigma": s}, st.floats(0, 5)
        ),
    ),
    BOUNDS,
    st.integers(),
)
def test_bounds_hold(told: dict[str, Any], bounds: tuple[int, int], seed: int) -> None:
    least, most = bounds
    delay = Delay.model_validate({**told, "min": f"{least}s", "max": f"{most}s"})
    assert least <= delay.draw(random.Random(seed)) <= most


@pytest.mark.parametrize(
    ("told", "why"),
    [
        pytest.param("soon", "Invalid value: 'soon': must be a duration", id="no duration"),
        pytest.param("-1s", "Invalid value: '-1s': must not be negative", id="negative"),
        pytest.param([1], "must be a duration", id="a list"),
        pytest.param(
            {"distribution": "uniform", "min": "1s"}, "uniform needs max", id="something is missing"
        ),
        pytest.param(
            {"distribution": "normal", "mean": "1s", "standardDeviation": "1s", "sigma": 1},
            "normal has no sigma",
            id="something is too much",
        ),
        pytest.param(
            {"distribution": "uniform", "min": "3s", "max": "1s"},
            "min must not be greater than max",
            id="the wrong way round",
        ),
        pytest.param({"distribution": "poisson"}, "Input should be", id="no such distribution"),
        pytest.param(
            {"distribution": "lognormal", "median": "1s", "sigma": float("nan")},
            "sigma",
            id="not a number",
        ),
        pytest.param({"value": "1s", "mode": "2s"}, "Extra inputs", id="an unknown field"),
        pytest.param(
            {"distribution": "exponential", "mean": "x"}, "mean: Invalid value: 'x'", id="no number"
        ),
    ],
)
def test_what_is_refused(told: Any, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Delay.model_validate(told)
    assert why in str(caught.value)


def test_an_amount_is_a_quantity() -> None:
    assert Amount.model_validate("1Ki").draw(random.Random()) == 1024
