"""Evidence of an attempt about evictions, kept with its decision."""

from typing import Final

import msgspec

from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.framework.preemption.criterion import Criterion
from berth.scheduler.outcome import Outcome, Unschedulable

VICTIMS_KEPT: Final = 20
"""Of one node, the most important ones."""


class VictimRecord(msgspec.Struct, frozen=True):
    """A pod that is to make room."""

    pod: str
    """As in namespace/name."""
    uid: str
    priority: int
    started: str | None
    """Its status.startTime; None if it has not started."""


class CandidateRecord(msgspec.Struct, frozen=True):
    """A node that takes the pod once its victims are gone."""

    node: str
    victims: tuple[VictimRecord, ...]
    """The first :data:`VICTIMS_KEPT`, most important first."""
    num_victims: int
    pdb_violations: int
    """How many of them their disruption budgets would rather keep."""
    sum_of_priorities: int


class PreemptionRecord(msgspec.Struct, frozen=True):
    """The node that room is made on, and why that one (spec §6.6)."""

    chosen: CandidateRecord
    num_candidates: int
    """The nodes that were found to do; the search ends when there are enough (spec §6.3)."""
    rounds: tuple[tuple[Criterion, int], ...]
    """The criteria that were needed, in order, and how many candidates each of them left."""
    equals: int
    """How many other candidates no criterion told from the chosen one."""
    runner_up: CandidateRecord | None


def preemption_record(outcome: Outcome) -> PreemptionRecord | None:
    """Return what to keep of *outcome*; None if PostFilter chose no victims."""
    result = outcome.post_filter if isinstance(outcome, Unschedulable) else None
    preemption = result.preemption if result is not None and result.status is None else None
    if preemption is None or preemption.chosen is None:
        return None
    return PreemptionRecord(
        chosen=_candidate(preemption.chosen),
        num_candidates=len(preemption.candidates),
        rounds=tuple((criterion, left) for criterion, left in preemption.rounds),
        equals=len(preemption.equals) - 1,
        runner_up=None if preemption.runner_up is None else _candidate(preemption.runner_up),
    )


def _candidate(candidate: Candidate) -> CandidateRecord:
    return CandidateRecord(
        node=candidate.node,
        victims=tuple(map(_victim, candidate.victims[:VICTIMS_KEPT])),
        num_victims=len(candidate.victims),
        pdb_violations=candidate.pdb_violations,
        sum_of_priorities=sum(victim.priority for victim in candidate.victims),
    )


def _victim(victim: PodInfo) -> VictimRecord:
    return VictimRecord(victim.key, victim.uid, victim.priority, victim.pod.status.start_time)
