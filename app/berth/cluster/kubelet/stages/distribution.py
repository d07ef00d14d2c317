"""Numbers that are drawn: how long something takes, how large something is."""

import random
from collections.abc import Mapping
from math import log
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from berth.kube.objects.quantity import NANO, check_quantity, parse
from berth.runtime.duration import Duration

NEEDED: Final[Mapping[str, frozenset[str]]] = {
    "constant": frozenset({"value"}),
    "uniform": frozenset({"min", "max"}),
    "normal": frozenset({"mean", "standardDeviation"}),
    "lognormal": frozenset({"median", "sigma"}),
    "exponential": frozenset({"mean"}),
}
"""By distribution: the fields that it cannot do without; ``min`` and ``max`` bound all others."""

BOUNDS: Final = frozenset({"min", "max"})
LARGEST_SIGMA: Final = 5.0
"""With which one draw in a million is beyond the median times 10 billion."""

NUMBERS: Final = ("value", "min", "max", "mean", "median", "standardDeviation")
"""The fields that are amounts of what is drawn; ``sigma`` has no unit."""


class Model(BaseModel):
    """What people write: camelCase, and nothing unknown."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class Distribution(Model):
    """A number, or how it is drawn. A single value is the constant distribution."""

    what: ClassVar[str] = "a number"

    distribution: Literal["constant", "uniform", "normal", "lognormal", "exponential"] = "constant"
    value: float | None = None
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    median: float | None = None
    standard_deviation: float | None = None
    sigma: Annotated[float, Field(ge=0, le=LARGEST_SIGMA)] | None = None
    """Of the logarithm: 0.5 is a moderate, 1 a wide spread."""

    @classmethod
    def number(cls, text: str) -> float:
        """Read an amount as people write it. Raises ValueError."""
        return float(text)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, told: Any) -> Any:
        if isinstance(told, str | int | float) and not isinstance(told, bool):
            told = {"value": told}
        if not isinstance(told, Mapping):
            raise ValueError(f"must be {cls.what} or a distribution")
        read = dict(told)
        for name in NUMBERS:
            if name in read:
                read[name] = cls._number(name, read[name])
        return read

    @classmethod
    def _number(cls, name: str, told: Any) -> float:
        where = "" if name == "value" else f"{name}: "
        try:
            number = cls.number(str(told))
        except ValueError:
            raise ValueError(f"{where}Invalid value: {told!r}: must be {cls.what}") from None
        if number < 0:
            raise ValueError(f"{where}Invalid value: {told!r}: must not be negative")
        return number

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        given = {to_camel(name) for name in self.model_fields_set} - {"distribution"}
        needed = NEEDED[self.distribution]
        missing, extra = needed - given, given - needed - BOUNDS
        if missing:
            raise ValueError(f"{self.distribution} needs {', '.join(sorted(missing))}")
        if extra:
            raise ValueError(f"{self.distribution} has no {', '.join(sorted(extra))}")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min must not be greater than max")
        if self.distribution == "lognormal" and not self.median:
            raise ValueError("median must be greater than 0")
        return self

    def draw(self, rng: random.Random) -> float:
        """Return a number. A constant draws nothing."""
        match self.distribution:
            case "uniform":
                number = rng.uniform(self.min or 0.0, self.max or 0.0)
            case "normal":
                number = rng.gauss(self.mean or 0.0, self.standard_deviation or 0.0)
            case "lognormal":
                number = rng.lognormvariate(log(self.median or 1.0), self.sigma or 0.0)
            case "exponential":
                number = rng.expovariate(1.0 / self.mean) if self.mean else 0.0
            case _:
                number = self.value or 0.0
        number = max(number, self.min or 0.0)
        return number if self.max is None else min(number, self.max)


class Delay(Distribution):
    """A length of time, in seconds once it is read."""

    what = "a duration, as in 1.5s or 2m"

    @classmethod
    def number(cls, text: str) -> float:
        return Duration.parse(text).seconds


class Amount(Distribution):
    """A quantity, in units once it is read."""

    what = "a quantity, as in 100Mi or 0.5"

    @classmethod
    def number(cls, text: str) -> float:
        check_quantity(text)
        return parse(text) / NANO
