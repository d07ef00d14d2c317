"""Durations as Go and Kubernetes write them: ``15s``, ``1m30s``, ``1h0m0.5s``."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, the micro sign
    "μs": 1_000,  # U+03BC, the Greek letter
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_SECOND = _NANOSECONDS["s"]
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_MOST_DIGITS = 19
"""Of a number that can count: whole ones with more are out of range, and what a fraction has more
is finer than a nanosecond of any unit."""
_RANGE = range(-(2**63), 2**63)


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    """A length of time in whole nanoseconds, which fit into 64 bits; ``str()`` gives Go's form."""

    nanoseconds: int

    def __post_init__(self) -> None:
        if self.nanoseconds not in _RANGE:
            raise ValueError(f"duration out of range: {self.nanoseconds} ns")

    @classmethod
    def of(cls, seconds: float) -> Self:
        """Make a duration of *seconds*, rounded to nanoseconds."""
        return cls(round(seconds * _SECOND))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read Go's form: terms like ``1.5h`` in any order, after an optional sign; or ``0``.

        Digits finer than a nanosecond are dropped. Raises ValueError in Go's words.
        """
        sign = text[0] if text[:1] in ("+", "-") else ""
        rest = text.removeprefix(sign)
        if rest == "0":
            return cls(0)
        if not rest:
            raise ValueError(f'time: invalid duration "{text}"')
        total = position = 0
        while position < len(rest):
            term = _TERM.match(rest, position)
            if term is None or not (term[1] or term[2]):
                raise ValueError(f'time: invalid duration "{text}"')
            if not term[3]:
                raise ValueError(f'time: missing unit in duration "{text}"')
            if term[3] not in _NANOSECONDS:
                raise ValueError(f'time: unknown unit "{term[3]}" in duration "{text}"')
            unit, whole = _NANOSECONDS[term[3]], term[1].lstrip("0")
            fraction = (term[2] or "")[:_MOST_DIGITS]
            if len(whole) > _MOST_DIGITS:
                raise ValueError(f'time: invalid duration "{text}"')
            total += int(whole or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
            position = term.end()
        total = -total if sign == "-" else total
        if total not in _RANGE:
            raise ValueError(f'time: invalid duration "{text}"')
        return cls(total)

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return self.nanoseconds / _SECOND

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __str__(self) -> str:
        sign, size = ("-" if self.nanoseconds < 0 else ""), abs(self.nanoseconds)
        if size == 0:
            return "0s"
        for unit in ("ns", "µs", "ms"):
            if size < 1_000 * _NANOSECONDS[unit]:
                return f"{sign}{_decimal(size, _NANOSECONDS[unit])}{unit}"
        minutes, below = divmod(size, _NANOSECONDS["m"])
        hours, minute = divmod(minutes, 60)
        text = f"{_decimal(below, _SECOND)}s"
        if minutes:
            text = f"{minute}m{text}"
        if hours:
            text = f"{hours}h{text}"
        return sign + text

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: Any, _handler: "GetCoreSchemaHandler"
    ) -> "CoreSchema":
        """In JSON a duration is a string and nothing else; Python code passes a Duration."""
        from pydantic_core import core_schema  # here: flags have durations, and no use for it

        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(
                cls.parse, core_schema.str_schema(strict=True)
            ),
            python_schema=core_schema.is_instance_schema(cls),
            serialization=core_schema.to_string_ser_schema(),
        )


def _decimal(size: int, unit: int) -> str:
    """Write ``size / unit`` exactly; *unit* is a power of ten."""
    whole, fraction = divmod(size, unit)
    digits = str(fraction).rjust(len(str(unit)) - 1, "0").rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def human_duration(seconds: float) -> str:
    """Write a duration as kubectl does: two units while they matter, then one.

    Under two minutes in seconds, under ten minutes as ``3m37s``, under three hours in minutes,
    under eight hours as ``3h5m``, under two days in hours, under eight days as ``5d2h``, under two
    years in days, under eight years as ``2y10d``, then in years. Clocks may disagree by a second;
    what lies further in the future is ``<invalid>``.
    """
    if seconds <= -2:
        return "<invalid>"
    whole = max(int(seconds), 0)
    for below, unit, name, rest_unit, rest_name in (
        (2 * _MINUTE, 1, "s", None, ""),
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", None, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", None, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", None, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    ):
        if whole < below:
            rest = whole % unit // rest_unit if rest_unit else 0
            return f"{whole // unit}{name}{f'{rest}{rest_name}' if rest else ''}"
    return f"{whole // _YEAR}y"
