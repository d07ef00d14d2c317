"""What preemption found: nodes where it would help, and those where it would not."""

from dataclasses import dataclass, field

from berth.framework.diagnosis import Diagnosis
from berth.framework.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that takes the pod once *victims* are gone."""

    row: int
    node: str
    victims: tuple[PodInfo, ...]
    """Most important first; never empty."""
    pdb_violations: int
    """How many of them their disruption budgets would rather keep."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """One attempt to make room for a pod."""

    candidates: tuple[Candidate, ...]
    """Those without budget violations first; else as they were tried."""
    rejected: Diagnosis
    """Why preemption would not help on the nodes that were tried in vain. Rows are the table's."""
    equals: tuple[Candidate, ...] = field(default=())
    """The best candidates, among which no rule decides."""
    chosen: Candidate | None = None
    """The one of them that the pod is nominated to."""
