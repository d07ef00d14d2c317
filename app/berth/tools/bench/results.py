"""The shape of all results: figures, measured in one or more runs, for people and as JSON lines."""

import os
import platform
import statistics
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from berth.runtime.release import version
from berth.tools.bench.usage import Usage

At = Mapping[str, int | str]

NAME_WIDTH: Final = 68
MILLION: Final = 1e6
PER_SECOND: Final = {"s": 1.0, "ms": 1e3, "µs": 1e6}


class Figure(msgspec.Struct, frozen=True):
    """One quantity that was measured."""

    name: str
    unit: str
    values: tuple[float, ...]
    """One of each run, in *unit*."""
    at: At = {}
    """What the figure depends on and a plot can have as an axis, such as ``nodes``."""
    outcome: str = ""
    """What came of it in the last run, such as ``300/300 placed``: the figure of a decision that
    failed means something else."""
    instructions: float | None = None
    """Instructions in user mode for what the figure is about, median of the runs; None if they are
    not counted, or not this figure's."""
    at_most: float | None = None
    """The target, in *unit*."""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def label(self) -> str:
        return ", ".join([self.name, *(f"{key}={value}" for key, value in self.at.items())])


Step = Callable[[], AsyncIterator[Figure]]
"""Measures some figures once."""


def figure(
    name: str,
    value: float,
    unit: str,
    *,
    outcome: str = "",
    instructions: float | None = None,
    **at: int | str,
) -> Figure:
    """Make a figure of one run."""
    return Figure(name, unit, (value,), at, outcome, instructions)


def used_figure(
    name: str, used: Usage, unit: str, *, count: int = 1, outcome: str = "", **at: int | str
) -> Figure:
    """Make a figure of the CPU time that each of *count* things took, in a *unit* of time."""
    cpu = used.cpu / max(count, 1) * PER_SECOND[unit]
    return Figure(name, unit, (cpu,), at, outcome, used.instructions_per(count))


def percentiles(
    name: str, seconds: Sequence[float], *, percents: Sequence[int] = (50, 90, 99), **at: int | str
) -> Iterator[Figure]:
    """Yield *percents* and the largest of one or more durations, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else ()
    for percent in percents if cuts else ():
        yield Figure(f"{name}, p{percent}", "ms", (cuts[percent - 1] * 1e3,), at)
    yield Figure(f"{name}, max", "ms", (max(seconds) * 1e3,), at)


async def repeated(step: Step, runs: int) -> AsyncIterator[Figure]:
    """Take *step* so many times; yield each figure with all of its values, in the last run."""
    seen: dict[str, list[Figure]] = {}
    for run in range(runs):
        async for figure in step():
            same = seen.setdefault(figure.label, [])
            same.append(figure)
            if run == runs - 1:
                yield _joined(same)


def _joined(same: Sequence[Figure]) -> Figure:
    counted = [figure.instructions for figure in same if figure.instructions is not None]
    return msgspec.structs.replace(
        same[-1],
        values=tuple(value for figure in same for value in figure.values),
        instructions=statistics.median(counted) if counted else None,
    )


class Machine(msgspec.Struct, frozen=True):
    """Where a figure was measured."""

    cpu: str
    cpus: int
    python: str
    berth: str

    @classmethod
    def here(cls) -> "Machine":
        model = platform.processor() or platform.machine()
        try:
            with open("/proc/cpuinfo", encoding="utf-8") as info:
                model = next(line.split(":", 1)[1].strip() for line in info if "model name" in line)
        except (OSError, StopIteration):
            pass
        return cls(model, os.cpu_count() or 1, platform.python_version(), version())

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cpus} CPUs, Python {self.python}, berth {self.berth}"


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure as one JSON line that means something by itself."""

    bench: str
    name: str
    at: At
    unit: str
    median: float
    min: float
    max: float
    values: tuple[float, ...]
    command: str
    machine: Machine
    outcome: str = ""
    instructions: float | None = None
    at_most: float | None = None


def as_json(given: Figure, *, bench: str, command: str, machine: Machine) -> str:
    """Return a figure as one line of JSON, a :class:`Record`."""
    record = Record(
        bench=bench,
        name=given.name,
        at=given.at,
        unit=given.unit,
        median=_rounded(given.median),
        min=_rounded(min(given.values)),
        max=_rounded(max(given.values)),
        values=tuple(map(_rounded, given.values)),
        command=command,
        machine=machine,
        outcome=given.outcome,
        instructions=given.instructions,
        at_most=given.at_most,
    )
    return msgspec.json.encode(record).decode()


def _rounded(number: float) -> float:
    """Return *number* with six significant digits."""
    return float(f"{number:.6g}")


HEADER: Final = f"{'':<{NAME_WIDTH}} {'median':>8} {'min':>8} {'max':>8}  unit"


def as_row(given: Figure) -> str:
    """Return a figure as a line below :data:`HEADER`."""
    numbers = (given.median, min(given.values), max(given.values))
    parts = [f"{given.label:<{NAME_WIDTH}} {' '.join(f'{_short(n):>8}' for n in numbers)}"]
    parts.append(f" {given.unit:<12}")
    if given.at_most is not None:
        parts.append(f"target: {_short(given.at_most)}")
    if given.instructions is not None:
        parts.append(f"{given.instructions / MILLION:.2f} M instructions")
    if given.outcome:
        parts.append(given.outcome)
    return " ".join(parts).rstrip()


def _short(number: float) -> str:
    """Format with at least two significant digits, without an exponent."""
    size = abs(number)
    return f"{number:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 4}f}"
