"""Differences between two ways to do the same things, and how sure they are."""

from collections.abc import Sequence
from math import atan, cos, pi, sin, sqrt
from typing import Final

import msgspec
import numpy as np

CONFIDENCE: Final = 0.95


class Difference(msgspec.Struct, frozen=True, rename="camel"):
    """The mean of paired differences, with the interval that has the true mean in 95% of cases.

    By Student's t: the differences are taken to be independent of each other.
    """

    mean: float
    low: float
    high: float
    pairs: int

    @property
    def is_sure(self) -> bool:
        """Whether there is a difference beyond noise: 0 is not in the interval."""
        return self.low > 0 or self.high < 0


def paired_difference(values: Sequence[float], reference: Sequence[float]) -> Difference | None:
    """Return what *values* are more than *reference*, pair by pair; None of less than two."""
    differences = np.array(values, float) - np.array(reference, float)
    pairs = len(differences)
    if pairs < 2:
        return None
    mean = float(differences.mean())
    half = t_quantile(pairs - 1) * float(differences.std(ddof=1)) / sqrt(pairs)
    return Difference(mean, mean - half, mean + half, pairs)


def t_quantile(freedom: int) -> float:
    """Return the bound that Student's t is within, on both sides, with :data:`CONFIDENCE`."""
    low, high = 0.0, 20.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < CONFIDENCE else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Return how likely it is that \\|T\\| < *t*.

    For whole degrees of freedom a finite sum of powers of cos(θ), θ = atan(t / √freedom);
    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = atan(t / sqrt(freedom))
    is_odd = freedom % 2
    term = total = cos(angle) if is_odd else 1.0
    for power in range(2 + is_odd, freedom - 1, 2):
        term *= cos(angle) ** 2 * (power - 1) / power
        total += term
    if not is_odd:
        return sin(angle) * total
    return 2 / pi * (angle + (sin(angle) * total if freedom > 1 else 0.0))
