"""Curves: measurements in the course of a run, by how far the run was."""

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

Curve: TypeAlias = dict[int, float]
"""By bin: the mean of what was measured there."""
DECIMALS = 2


class Curves:
    """Takes measurements, and gives their means by bin.

    A measurement is in the bin of the whole number nearest to its place. Values and means have two
    decimals, as in published results.
    """

    def __init__(self) -> None:
        self._values: defaultdict[str, defaultdict[int, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )

    def add(self, place: float, measured: Mapping[str, float]) -> None:
        """Add what was measured at *place*, by name."""
        bin_ = round(place)
        for name, value in measured.items():
            self._values[name][bin_].append(round(value, DECIMALS))

    def means(self) -> dict[str, Curve]:
        """Return the curve of each name."""
        return {
            name: {
                bin_: round(sum(values) / len(values), DECIMALS)
                for bin_, values in sorted(by_bin.items())
            }
            for name, by_bin in self._values.items()
        }


class RunResult(msgspec.Struct, frozen=True, rename="camel"):
    """What one policy made of a workload, from one seed."""

    policy: str
    seed: int
    axis: str
    """What bins are numbers of."""
    curves: dict[str, Curve]
    pods: int
    unplaced: int
    unplaced_by_reason: dict[str, int]
    """The reason that held for most nodes, and for how many pods."""
    preempted: int
    waited: list[float]
    """Seconds until pods that got a node had it: p50, p90, p99, highest; empty without time."""
    cpu_seconds: float
    """What the run took."""
    origin: str = ""
    """Tells the workload and the configuration that it is of from others."""
    totals: dict[str, float] = {}
    """What the whole run came to, by name: means over time, or what was measured last; and more."""
