"""The overview of a scheduler, measured once a second, and the last hour of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from berth.runtime.field_docstrings import DescribedFields

KEPT_SECONDS: Final = 3_600
"""How far back the rings go, if a sample is taken each second."""
MOST_POINTS: Final = 360
"""Of a series: more than a chart of it has pixels to tell apart."""
DECIMALS: Final = 4

_AS_JSON: Final = ConfigDict(alias_generator=to_camel)


@dataclass(frozen=True, slots=True)
class Numbers(DescribedFields):
    """The numbers of one second. Rates are per second, since the sample before."""

    __pydantic_config__: ClassVar = _AS_JSON

    active: int
    """Pods that are ready to be tried."""
    backoff: int
    """Pods that were rejected and rest."""
    unschedulable: int
    """Pods that wait for a change in the cluster."""
    gated: int
    """Pods that a PreEnqueue plugin keeps from being tried."""
    waiting: int
    """Pods that have a node and wait for Permit plugins."""
    binding: int
    """Pods that are being bound."""
    bound: int
    """Pods on nodes that the API server has confirmed."""
    long_pending: int
    """Pods that have been pending for more than five minutes, gated ones left out."""
    oldest_pending_seconds: float
    """For how long the oldest of them has been pending; 0 if there is none."""
    scheduled_per_second: float
    """Pods that were bound."""
    unschedulable_per_second: float
    """Attempts that found no node."""
    error_per_second: float
    """Attempts that failed, or the binding they led to."""
    loop_lag_seconds: float
    """By how much the event loop came back late to a timer."""
    bind_in_flight: int
    """Writes to the API server that are under way: those of bindings."""
    bind_depth: int
    """Those that have to wait for a worker."""
    status_in_flight: int
    """The same of the status of pods."""
    status_depth: int
    event_in_flight: int
    """The same of events."""
    event_depth: int
    leading: int
    """1 if this process schedules, 0 if it stands by."""
    configuration_generation: int
    """Counts the configurations since start, from 1."""
    nodes: int
    cpu_allocatable: int
    """Of all nodes, in thousandths of a core."""
    cpu_requested: int
    memory_allocatable: int
    """Of all nodes, in bytes."""
    memory_requested: int


NAMES: Final = tuple(field.name for field in fields(Numbers))
_in_order = attrgetter(*NAMES)
PEAKS: Final = frozenset({"oldest_pending_seconds", "long_pending", "loop_lag_seconds"})
"""Of these a point of a series shows the largest number of its time, of the others the mean."""


@dataclass(frozen=True, slots=True)
class PendingPod(DescribedFields):
    """A pod that has been waiting for a node for long."""

    __pydantic_config__: ClassVar = _AS_JSON

    pod: str
    """As in namespace/name."""
    since: str
    """When it could first be tried."""
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Problem(DescribedFields):
    """Something that somebody should look at."""

    __pydantic_config__: ClassVar = _AS_JSON

    message: str
    pods: tuple[str, ...] = ()
    """Some of those that it is about, as in namespace/name."""


@dataclass(frozen=True, slots=True)
class Sample(DescribedFields):
    """What was found in one second."""

    __pydantic_config__: ClassVar = _AS_JSON

    number: int
    """Counts the samples of this process, from 1."""
    time: float
    """Seconds since 1970."""
    numbers: Numbers
    oldest: tuple[PendingPod, ...]
    """The pods that have been pending for longest, the oldest first; gated ones left out."""
    leader: str
    """The holder of the lease; empty if there is none, or no leader election."""
    configuration_loaded_at: str
    problems: tuple[Problem, ...]
    """Empty if nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Series(DescribedFields):
    """Numbers of the past, oldest first."""

    __pydantic_config__: ClassVar = _AS_JSON

    step_seconds: int
    """How much time a point stands for; the times are multiples of it. It grows with the time that
    the process has run."""
    times: Sequence[float]
    """Seconds since 1970, at which the time of each point begins."""
    numbers: dict[str, Sequence[float]]
    """By name as in ``now.numbers``, a number for each of the times."""


class Rings:
    """The numbers of the last KEPT_SECONDS samples; all memory, 0.8 MB, is taken at once."""

    def __init__(self) -> None:
        self._times = np.zeros(KEPT_SECONDS)
        self._numbers = np.zeros((len(NAMES), KEPT_SECONDS))
        self._added = 0

    @property
    def nbytes(self) -> int:
        return self._times.nbytes + self._numbers.nbytes

    def add(self, time: float, numbers: Numbers) -> None:
        """Keep *numbers* of *time*, in seconds since 1970, in place of the oldest."""
        place = self._added % KEPT_SECONDS
        self._times[place] = time
        self._numbers[:, place] = _in_order(numbers)
        self._added += 1

    def sum(self, name: str, *, samples: int) -> float:
        """Return the sum of one number over the last so many *samples*."""
        return float(self._numbers[NAMES.index(name), self._places(samples)].sum())

    def series(self, seconds: int) -> Series:
        """Return what was measured in the last *seconds* before the newest sample.

        In at most MOST_POINTS points, each of as many whole seconds as that takes.
        """
        places = self._places(KEPT_SECONDS)
        if not len(places):
            return Series(1, [], {to_camel(name): [] for name in NAMES})
        newest = self._times[places[-1]]
        places = places[self._times[places] > newest - seconds]
        # The wall clock may have been set back meanwhile.
        step = int(max(newest - self._times[places].min(), 0) // MOST_POINTS) + 1
        times, numbers = self._times[places] // step, self._numbers[:, places]
        starts = np.flatnonzero(np.diff(times, prepend=np.nan))
        counts = np.diff(starts, append=len(places))
        means = np.add.reduceat(numbers, starts, axis=1) / counts
        peaks = np.maximum.reduceat(numbers, starts, axis=1)
        return Series(
            step,
            (times[starts] * step).tolist(),
            {
                to_camel(name): (peaks if name in PEAKS else means)[row].round(DECIMALS).tolist()
                for row, name in enumerate(NAMES)
            },
        )

    def _places(self, samples: int) -> NDArray[np.intp]:
        """Return where the last so many samples are, oldest first."""
        first = max(self._added - min(samples, KEPT_SECONDS), 0)
        return np.arange(first, self._added) % KEPT_SECONDS
