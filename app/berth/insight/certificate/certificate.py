"""Certificates, as JSON has them, and in words."""

from collections.abc import Iterator

import msgspec

SOLVER = "CP-SAT"
COUNTING = "counting"


class Number(msgspec.Struct, frozen=True, rename="camel"):
    """A number that is to be as small, or as large, as can be; given those before it."""

    what: str
    value: int | None
    """Of the plan that was carried out; None: there is none."""
    bound: int
    """No plan has a better one."""

    @property
    def is_proven(self) -> bool:
        return self.value == self.bound

    @property
    def gap(self) -> float:
        """How far the value may be from the best, as a share of the larger of value and bound."""
        if self.value is None:
            return 1.0
        return abs(self.value - self.bound) / max(self.value, self.bound, 1)


class PlannedMove(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that is to be on another node."""

    pod: str
    source: str
    target: str


class Certificate(msgspec.Struct, frozen=True, rename="camel"):
    """How good a plan is, and how good one can be at best."""

    goal: str
    numbers: tuple[Number, ...]
    """The most important first."""
    method: str
    """What the bound comes from: CP-SAT, or counting."""
    seconds: float
    left_out: tuple[str, ...] = ()
    """Rules that the model leaves out. The bound holds with them, too; the plan was tried with them
    all."""
    notes: tuple[str, ...] = ()
    """What else is to be said, such as why the plan was dropped."""
    moves: tuple[PlannedMove, ...] = ()
    before: int | None = None
    """The first number as it is now."""
    within_one_percent: float | None = None
    """After how many seconds the first number and its bound were that close."""
    by_scheduler: int | None = None
    """The first number as the scheduler, or the search without a solver, comes to it."""

    @property
    def is_proven(self) -> bool:
        return all(number.is_proven for number in self.numbers)


def lines(certificate: Certificate) -> Iterator[str]:
    """Yield the certificate for people."""
    yield f"{certificate.goal}:"
    for number in certificate.numbers:
        yield f"  {_in_words(number)}"
    beside = {
        "now": certificate.before,
        "as the scheduler places them": certificate.by_scheduler,
    }
    if told := [f"{name} {value}" for name, value in beside.items() if value is not None]:
        yield f"  {', '.join(told)}"
    yield f"  bound by {certificate.method}, after {certificate.seconds:.1f} seconds"
    for rule in certificate.left_out:
        yield f"  the model leaves out {rule}; the plan was tried with it"
    for note in certificate.notes:
        yield f"  {note}"


def _in_words(number: Number) -> str:
    if number.value is None:
        return f"{number.what}: no plan; none has a better number than {number.bound}"
    if number.is_proven:
        return f"{number.what}: {number.value}, proven to be the best"
    return (
        f"{number.what}: {number.value}, and none has a better number than {number.bound}"
        f" (gap {number.gap:.1%})"
    )
