"""Candidates of preemption: nodes where it would help, and those where it would not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.criterion import Criterion
from berth.scheduler.framework.preemption.importance import started
from berth.scheduler.framework.verdict import Ints, Rows

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


_EVERY_VICTIM: Final = 2**31
"""Added to each priority, so that a victim of negative priority counts, too."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates(Sequence[Candidate]):
    """Candidates as columns: hundreds are compared, and few of them are ever looked at."""

    rows: Rows
    nodes: Sequence[str]
    costs: NDArray[np.float64]
    """What each costs by each criterion, the less the better; shape (criteria, candidates)."""
    victims: NDArray[np.object_]
    """The victims of each, a tuple."""

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> "Candidates":
        if isinstance(candidates, Candidates):
            return candidates
        victims = [victim for candidate in candidates for victim in candidate.victims]
        costs = costs_of(
            pdb_violations=np.array(
                [candidate.pdb_violations for candidate in candidates], np.int64
            ),
            num_victims=np.array([len(candidate.victims) for candidate in candidates], np.intp),
            priorities=np.array([victim.priority for victim in victims], np.int64),
            starts=np.array([started(victim) for victim in victims], np.float64),
        )
        return cls(
            np.array([candidate.row for candidate in candidates], np.intp),
            [candidate.node for candidate in candidates],
            costs,
            np.fromiter((candidate.victims for candidate in candidates), object, len(candidates)),
        )

    def costs_by(self, criterion: Criterion) -> NDArray[np.float64]:
        """Return what each candidate costs by *criterion*."""
        costs: NDArray[np.float64] = self.costs[PLACE_OF[criterion]]
        return costs

    def take(self, at: Rows) -> "Candidates":
        """Return the candidates at *at*, in that order."""
        nodes = [self.nodes[i] for i in at.tolist()]
        return Candidates(self.rows[at], nodes, self.costs[:, at], self.victims[at])

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Candidate: ...
    @overload
    def __getitem__(self, at: slice) -> "Candidates": ...
    def __getitem__(self, at: int | slice) -> "Candidate | Candidates":
        if isinstance(at, slice):
            nodes = self.nodes[at]
            return Candidates(self.rows[at], nodes, self.costs[:, at], self.victims[at])
        violations = int(self.costs_by(Criterion.PDB_VIOLATIONS)[at])
        return Candidate(int(self.rows[at]), self.nodes[at], self.victims[at], violations)


PLACE_OF: Final = {criterion: place for place, criterion in enumerate(Criterion)}


def costs_of(
    *, pdb_violations: Ints, num_victims: Rows, priorities: Ints, starts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what candidates cost by each criterion; shape (criteria, candidates).

    *priorities* and *starts*, in unix seconds, are those of the victims of the first candidate, the
    most important one first, then those of the second, and so on. Each has victims.
    """
    first = np.cumsum(num_victims) - num_victims
    highest = priorities[first]
    # Of the victims with the highest priority, the one that started first should be young.
    are_highest = priorities == np.repeat(highest, num_victims)
    oldest = np.minimum.reduceat(np.where(are_highest, starts, np.inf), first)
    total = np.add.reduceat(priorities + _EVERY_VICTIM, first)
    return np.array([pdb_violations, highest, total, num_victims, -oldest], np.float64)


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
