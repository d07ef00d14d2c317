"""Which nodes there are, and which pods come when."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from berth.lab.chance import Chance
from berth.objects.node import Node
from berth.objects.pod import Pod

TICK: Final = 2.0**-10
"""Seconds. All times are multiples of it, so that sums of times are exact."""


def ticks(seconds: float) -> float:
    """Return the time nearest to *seconds*."""
    return round(seconds / TICK) * TICK


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod that is created."""

    pod: Pod
    at: float = 0.0
    """Seconds since the begin; as :func:`ticks` gives them."""
    lifetime: float | None = None
    """Seconds that it runs, in the same way; None: for ever."""


class Workload(Protocol):
    """What a run is made of."""

    nodes: Sequence[Node]
    objects: Sequence[Any]
    """What else there is, such as PriorityClasses and PodDisruptionBudgets."""
    pods: Sequence[Pod]
    """Each pod, or one of each kind, for plugins that learn what is usual."""
    is_timed: bool
    """Whether pods come and go, and wait. If not, each is tried once in its turn, and stays."""
    interval: int
    """Seconds between two measurements of a run with time, the same for all seeds."""
    resource: str
    """Tells how far a run without time is: how much of it has been requested."""

    def arrivals(self, chance: Chance) -> Sequence[Arrival]:
        """Return the pods in their order."""
        ...
