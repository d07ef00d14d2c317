"""Kubernetes quantities: ``500m``, ``1.5``, ``2Gi``, ``1e3``.

A parsed quantity is an exact ``int`` in nano units (10**-9), the finest step that Kubernetes keeps.
Sums are made in nano units and rounded once, at the end, by :func:`value` or :func:`milli_value`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

Quantity: TypeAlias = str | int | float
Quantities: TypeAlias = dict[str, Quantity]

NANO: Final = 10**9
"""Nano units in one unit."""

MAX_INT64: Final = 2**63 - 1

_NANO_DIGITS: Final = 9
_MAX_NANOS: Final = MAX_INT64 * NANO
_NANOS_CAP_DIGITS: Final = len(str(_MAX_NANOS))
LONGEST: Final = 256
"""Characters: far beyond sense. What was read before is kept by its text, so this bounds it."""

_DECIMAL_SUFFIXES: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

# An exponent needs a digit, which tells 1E (exa) from 1E3.
NOTATION: Final = re.compile(
    r"(?P<sign>[+-]?)(?=\.?[0-9])(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))"
)
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]")


@lru_cache(maxsize=1 << 16)
def parse(quantity: Quantity) -> int:
    """Return *quantity* in nano units, rounded away from zero.

    Follows ``resource.ParseQuantity``: every notation with a decimal or binary suffix or an
    exponent, and bare JSON numbers. Amounts are capped at 2**63-1 units on either side of zero.
    Raises ``ValueError`` naming the value, also if it is longer than 256 characters.
    """
    text = quantity if isinstance(quantity, str) else repr(quantity)
    if len(text) > LONGEST:
        raise ValueError(f"quantity {text[:40]!r}...: longer than {LONGEST} characters")
    match = NOTATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"quantity {quantity!r}: want a number with an optional suffix, as in 500m, 1.5 or 2Gi"
        )
    sign, whole, fraction, exponent, suffix = match.groups(default="")
    digits = whole + fraction
    scale = _NANO_DIGITS - len(fraction)  # value = mantissa * 10**scale
    mantissa = int(digits)
    if suffix in _BINARY_SUFFIXES:
        mantissa <<= _BINARY_SUFFIXES[suffix]
    else:
        scale += int(exponent) if exponent else _DECIMAL_SUFFIXES[suffix]
    nanos = min(_times_power_of_ten(mantissa, scale), _MAX_NANOS)
    return -nanos if sign == "-" else nanos


def value(nanos: int) -> int:
    """Return whole units, rounded away from zero as ``Quantity.Value()`` does, within int64."""
    return _within_int64(_divide_away_from_zero(nanos, NANO))


def milli_value(nanos: int) -> int:
    """Return thousandths, rounded away from zero as ``Quantity.MilliValue()`` does, within int64.

    What does not fit is the largest int64; Go answers 0 or wraps around, and so would let in a pod
    that asks for more than any machine has.
    """
    return _within_int64(_divide_away_from_zero(nanos, NANO // 1000))


def is_binary(quantity: Quantity) -> bool:
    """Whether *quantity* is written in powers of 1024, as ``2Gi``; sums are, if it comes first."""
    return isinstance(quantity, str) and quantity.endswith("i")


@lru_cache(maxsize=1 << 14)
def canonical_text(quantity: Quantity, *, milli: bool = False) -> str:
    """Write *quantity* as the API server does: in the same notation, by :func:`canonical`.

    *milli*: rounded up to thousandths, as in resource lists. Raises ``ValueError`` as
    :func:`parse` does.
    """
    nanos = parse(quantity)
    if milli:
        nanos = _divide_away_from_zero(nanos, NANO // 1000) * (NANO // 1000)
    if nanos and isinstance(quantity, str) and _EXPONENT.search(quantity):
        exponents = (f"e{power}" if power else "" for power in range(-_NANO_DIGITS, 19, 3))
        return _suffixed(nanos, 1000, exponents)
    return canonical(nanos, binary=is_binary(quantity))


def canonical(nanos: int, *, binary: bool = False) -> str:
    """Return an amount as Kubernetes writes it: ``1500m``, ``2k``; with *binary* ``2Gi``.

    The largest suffix that leaves a whole number. *binary* makes no difference below 1024, and for
    fractions.
    """
    if not nanos:
        return "0"
    if binary and abs(nanos) >= 1024 * NANO and nanos % NANO == 0:
        return _suffixed(value(nanos), 1024, ("", *_BINARY_SUFFIXES))
    return _suffixed(nanos, 1000, _DECIMAL_SUFFIXES)


def _suffixed(amount: int, step: int, suffixes: Iterable[str]) -> str:
    """Write *amount* with the last of *suffixes*, each *step* times the one before, that fits."""
    *below, text = suffixes
    for suffix in below:
        if amount % step:
            return f"{amount}{suffix}"
        amount //= step
    return f"{amount}{text}"


def check_quantities(field: str, quantities: Mapping[str, Quantity]) -> None:
    """Raise ``ValueError`` naming *field*, key and value if a quantity is malformed or negative.

    Called for every decoded object, so known values cost one cache look-up.
    """
    for name, quantity in quantities.items():
        try:
            check_quantity(quantity)
        except ValueError as exc:
            raise ValueError(f"{field}[{name:.63}]: {exc}") from None


def check_quantity(quantity: Quantity) -> None:
    """Raise ``ValueError`` naming *quantity* if it is malformed or negative."""
    if parse(quantity) < 0:
        raise ValueError(f"quantity {quantity!r}: must not be negative")


def _times_power_of_ten(mantissa: int, scale: int) -> int:
    """Return ``mantissa * 10**scale`` rounded up; past the cap, any number that is past it too.

    Exponents come from outside, so no power is built that the answer does not need.
    """
    if scale >= 0:
        return int(mantissa * 10 ** min(scale, _NANOS_CAP_DIGITS))
    if -scale > len(str(mantissa)):
        return 1 if mantissa else 0
    return _divide_away_from_zero(mantissa, 10**-scale)


def _divide_away_from_zero(amount: int, divisor: int) -> int:
    return -(-amount // divisor) if amount >= 0 else amount // divisor


def _within_int64(amount: int) -> int:
    return max(-MAX_INT64, min(amount, MAX_INT64))
