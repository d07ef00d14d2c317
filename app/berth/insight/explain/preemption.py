"""The choice of victims, in words (spec §6.6)."""

from typing import TYPE_CHECKING

from berth.insight.explain.explanation import PastPreemption, PreemptionRound, Victim, VictimsOnNode
from berth.scheduler.framework.preemption.criterion import Criterion
from berth.scheduler.framework.words import counted

if TYPE_CHECKING:
    from berth.scheduler.preemption_record import CandidateRecord, PreemptionRecord


def past_preemption(record: "PreemptionRecord") -> PastPreemption:
    """Put *record* into words."""
    chosen, runner_up = record.chosen, record.runner_up
    decided_by = None
    if runner_up is None:
        words = f"{chosen.node}, the only node that evictions were found to help on"
    elif record.equals:
        equals = record.equals + 1
        words = f"{chosen.node}: chance decides between {equals} equally good candidates"
    else:
        criterion = decided_by = record.rounds[-1][0]
        why = _why(criterion, chosen, runner_up)
        words = f"{chosen.node} before {runner_up.node}: {why}"
    return PastPreemption(
        chosen=_on_node(chosen),
        num_candidates=record.num_candidates,
        rounds=tuple(PreemptionRound(criterion=c, num_left=left) for c, left in record.rounds),
        equals=record.equals,
        runner_up=None if runner_up is None else _on_node(runner_up),
        decided_by=decided_by,
        words=words,
    )


def _why(criterion: Criterion, chosen: "CandidateRecord", other: "CandidateRecord") -> str:
    match criterion:
        case Criterion.PDB_VIOLATIONS:
            broken, instead = chosen.pdb_violations, other.pdb_violations
            return f"{counted(broken, 'victim')} against a disruption budget, not {instead}"
        case Criterion.HIGHEST_PRIORITY:
            priority, instead = chosen.victims[0].priority, other.victims[0].priority
            return f"its most important victim has priority {priority}, not {instead}"
        case Criterion.SUM_OF_PRIORITIES:
            if chosen.num_victims != other.num_victims:
                # Each victim counts with 2^31 more than its priority.
                return f"{counted(chosen.num_victims, 'victim')}, not {other.num_victims}"
            total, instead = chosen.sum_of_priorities, other.sum_of_priorities
            return f"the priorities of its victims add up to {total}, not {instead}"
        case Criterion.NUM_VICTIMS:
            return f"{counted(chosen.num_victims, 'victim')}, not {other.num_victims}"
        case Criterion.START_TIME:
            return "its most important victims have not run for as long"


def _on_node(candidate: "CandidateRecord") -> VictimsOnNode:
    return VictimsOnNode(
        node=candidate.node,
        victims=tuple(
            Victim(pod=victim.pod, priority=victim.priority, started=victim.started)
            for victim in candidate.victims
        ),
        num_victims=candidate.num_victims,
        pdb_violations=candidate.pdb_violations,
    )


def victims_in_words(victims: VictimsOnNode) -> str:
    """Write "default/a (priority 0) and 3 more"."""
    first = victims.victims[0]
    more = f" and {victims.num_victims - 1} more" if victims.num_victims > 1 else ""
    return f"{first.pod} (priority {first.priority}){more}"
