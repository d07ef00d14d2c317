"""What preemption found: nodes where it would help, and those where it would not."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.framework.diagnosis import Diagnosis
from berth.framework.pod_info import PodInfo
from berth.framework.preemption.importance import started
from berth.framework.verdict import Ints, Mask, Rows
from berth.objects.pod import Pod

DISRUPTION_TARGET: Final = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"
"""Type and reason of the condition that a victim gets before it is deleted."""


class Candidate(msgspec.Struct, frozen=True):
    """A node that takes the pod once *victims* are gone."""

    row: int
    node: str
    victims: tuple[PodInfo, ...]
    """Most important first; never empty."""
    pdb_violations: int
    """How many of them their disruption budgets would rather keep."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates(Sequence[Candidate]):
    """Candidates as columns: hundreds are compared, and few of them are ever looked at."""

    rows: Rows
    nodes: Sequence[str]
    pdb_violations: Ints
    num_victims: Rows
    victims: Sequence[PodInfo]
    """Those of the first candidate, then those of the second, and so on."""
    priorities: Ints
    """One for each of ``victims``."""
    starts: NDArray[np.float64]
    """When each of ``victims`` started, in unix seconds; inf: it has not."""

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> "Candidates":
        if isinstance(candidates, Candidates):
            return candidates
        victims = [victim for candidate in candidates for victim in candidate.victims]
        return cls(
            np.array([candidate.row for candidate in candidates], np.intp),
            [candidate.node for candidate in candidates],
            np.array([candidate.pdb_violations for candidate in candidates], np.int64),
            np.array([len(candidate.victims) for candidate in candidates], np.intp),
            victims,
            np.array([victim.priority for victim in victims], np.int64),
            np.array([started(victim) for victim in victims], np.float64),
        )

    @property
    def first_victims(self) -> Rows:
        """Where in ``victims`` those of each candidate begin."""
        return np.cumsum(self.num_victims) - self.num_victims

    def __add__(self, more: "Candidates") -> "Candidates":
        return Candidates(
            np.concatenate([self.rows, more.rows]),
            [*self.nodes, *more.nodes],
            np.concatenate([self.pdb_violations, more.pdb_violations]),
            np.concatenate([self.num_victims, more.num_victims]),
            [*self.victims, *more.victims],
            np.concatenate([self.priorities, more.priorities]),
            np.concatenate([self.starts, more.starts]),
        )

    def take(self, index: Rows | Mask) -> "Candidates":
        """Return the candidates at *index*, in that order."""
        at: Rows = (
            np.flatnonzero(index) if index.dtype == bool else index.astype(np.intp, copy=False)
        )
        counts = self.num_victims[at]
        victims = ranges(self.first_victims[at], counts)
        return Candidates(
            self.rows[at],
            [self.nodes[i] for i in at.tolist()],
            self.pdb_violations[at],
            counts,
            [self.victims[i] for i in victims.tolist()],
            self.priorities[victims],
            self.starts[victims],
        )

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Candidate: ...
    @overload
    def __getitem__(self, at: slice) -> "Candidates": ...
    def __getitem__(self, at: int | slice) -> "Candidate | Candidates":
        if isinstance(at, slice):
            return self.take(np.arange(len(self))[at])
        first = int(self.first_victims[at])
        return Candidate(
            int(self.rows[at]),
            self.nodes[at],
            tuple(self.victims[first : first + int(self.num_victims[at])]),
            int(self.pdb_violations[at]),
        )


NO_CANDIDATES: Final = Candidates.of(())


class Criterion(StrEnum):
    """What candidates are told apart by, one after the other (spec §6.6)."""

    PDB_VIOLATIONS = "PDBViolations"
    """Fewest victims that their disruption budgets would rather keep."""
    HIGHEST_PRIORITY = "HighestPriority"
    """Lowest priority of the most important victim."""
    SUM_OF_PRIORITIES = "SumOfPriorities"
    """Smallest sum of the priorities of the victims, each of them plus 2^31."""
    NUM_VICTIMS = "NumVictims"
    """Fewest victims."""
    START_TIME = "StartTime"
    """Of the victims with the highest priority, the one that started first started latest."""


class Round(NamedTuple):
    """A criterion, and how many candidates it left."""

    criterion: Criterion
    num_left: int


class Preemption(msgspec.Struct, frozen=True):
    """One attempt to make room for a pod."""

    candidates: Sequence[Candidate]
    """Those without budget violations first; else as they were tried."""
    rejected: Diagnosis
    """Why preemption would not help on the nodes that were tried in vain. Rows are the table's."""
    equals: Sequence[Candidate] = msgspec.field(default=())
    """The best candidates, among which no rule decides."""
    chosen: Candidate | None = None
    """The one of them that the pod is nominated to."""
    rounds: Sequence[Round] = ()
    """The criteria that were needed, in order."""
    runner_up: Candidate | None = None
    """What would have been chosen next: one of the equals, or the best that a criterion left out
    last."""


def ranges(first: Rows, counts: Rows) -> Rows:
    """Return ``first[0], first[0] + 1, ...``, ``counts[0]`` numbers, then those of ``first[1]``."""
    before = np.cumsum(counts) - counts
    return np.repeat(first - before, counts) + np.arange(int(counts.sum()))


def is_leaving_for_preemption(pod: Pod) -> bool:
    """Whether *pod* is terminating because a scheduler evicted it for another pod."""
    return pod.metadata.deletion_timestamp is not None and any(
        condition.type == DISRUPTION_TARGET
        and condition.status == "True"
        and condition.reason == PREEMPTION_BY_SCHEDULER
        for condition in pod.status.conditions
    )
