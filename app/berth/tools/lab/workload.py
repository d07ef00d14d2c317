"""Workloads: nodes, and pods with their times."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import PodGroup
from berth.tools.lab.chance import Chance

TICK: Final = 2.0**-10
"""Seconds. All times are multiples of it, so that sums of times are exact."""


MEASUREMENTS: Final = 100
"""How often a run of average length is measured."""


def ticks(seconds: float) -> float:
    """Return the time nearest to *seconds*."""
    return round(seconds / TICK) * TICK


class Part(NamedTuple):
    """A part of a workload that others have nothing in common with, but for the nodes.

    Where pods have times, the parts follow each other; where they have none, each has its share of
    the pods, from all over the workload. Parts of what is drawn are drawn from other seeds.
    """

    number: int = 0
    of: int = 1


WHOLE: Final = Part()


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod that is created."""

    pod: Pod
    at: float = 0.0
    """Seconds since the begin; as :func:`ticks` gives them."""
    lifetime: float | None = None
    """Seconds that it runs, in the same way; None: for ever."""
    until: float | None = None
    """When it is deleted, in seconds since the begin, whether it runs or not; None: never."""
    group: PodGroup | None = None
    """The gang that it is of: a job that begins to run when all of its pods have nodes. It comes
    with the first of them, and ends with the last."""
    size: int = 1
    """How many pods the job has."""
    comes_again: bool = False
    """Whether another pod like it comes in its place when it is evicted, as a Job's does."""


@dataclass(frozen=True, slots=True)
class Change:
    """An object that is created, replaced or deleted."""

    at: float
    """Seconds since the begin; as :func:`ticks` gives them."""
    obj: Any
    """A pod stays where it is, and is only replaced: it comes as an :class:`Arrival`."""
    is_gone: bool = False


class Workload(Protocol):
    """What a run is made of."""

    nodes: Sequence[Node]
    objects: Sequence[Any]
    """What else there is, such as PriorityClasses and PodDisruptionBudgets."""
    changes: Sequence[Change]
    """What becomes of them in the course of a run with time, in order."""
    pods: Sequence[Pod]
    """Each pod, or some that stand for all, for plugins that learn what is usual."""
    is_timed: bool
    """Whether pods come and go, and wait. If not, each is tried once in its turn, and stays."""
    interval: int
    """Seconds between two measurements of a run with time, the same for all seeds."""
    length: float
    """Seconds that a run with time is measured; 0: as long as pods come."""
    warnings: Sequence[str]
    """What to know of the files that it was read from."""
    resource: str
    """Tells how far a run without time is: how much of it has been requested."""

    def arrivals(self, chance: Chance) -> Iterable[Arrival]:
        """Return the pods in the order in which they come."""
        ...


def pod_owners(obj: Any) -> Sequence[str]:
    """Return the UIDs of the pods that own *obj*, which ends with them."""
    return [reference.uid for reference in obj.metadata.owner_references if reference.kind == "Pod"]
