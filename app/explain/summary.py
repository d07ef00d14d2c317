"""The answer in a sentence: why a pod is pending, or why it is where it is."""

from collections.abc import Sequence

from app.explain.explanation import Judgement, PastDecision, PodState, Whereabouts
from app.extender.opinion import EXTENDER


def summarize(state: PodState, judgement: Judgement | None, history: Sequence[PastDecision]) -> str:
    """Put together what *state* says, what would be found now, and what was (newest first)."""
    match state.where:
        case Whereabouts.UNSCHEDULABLE if judgement is not None and _is_of_gang(history):
            return f"{_waits_for_gang(history[0])}; {_alone(judgement)}; {state.words}"
        case Whereabouts.BACKOFF if judgement is not None and _is_of_gang(history):
            return f"{state.words}; {_waits_for_gang(history[0])}; {_alone(judgement)}"
        case Whereabouts.UNSCHEDULABLE if judgement is not None:
            return f"{_unschedulable(judgement, state)}; {state.words}"
        case Whereabouts.ACTIVE | Whereabouts.BACKOFF | Whereabouts.GATED if judgement is not None:
            return f"{state.words}; {_if_tried_now(judgement)}"
        case Whereabouts.BOUND | Whereabouts.BINDING | Whereabouts.WAITING:
            chosen = (past.choice for past in history if past.node == state.node)
            choice = next(chosen, None)
            return state.words if choice is None else f"{state.words}: {choice.words}"
    return state.words


def _is_of_gang(history: Sequence[PastDecision]) -> bool:
    return bool(history) and bool(history[0].gang)


def _waits_for_gang(last: PastDecision) -> str:
    return f"waits for its gang: {last.message.removesuffix('.')}"


def _alone(judgement: Judgement) -> str:
    if judgement.choice is None:
        return f"alone it would fit nowhere now: {_refusal(judgement)}"
    return f"alone {judgement.num_feasible} of {judgement.num_nodes} nodes could take it now"


def _unschedulable(judgement: Judgement, state: PodState) -> str:
    if judgement.choice is not None:
        fits = f"{judgement.num_feasible} of {judgement.num_nodes} nodes"
        if EXTENDER in state.waits_for:
            return f"unschedulable: {fits} can take it, but an extender said no when it was asked"
        return f"unschedulable when it was tried last, but now {fits} can take it"
    return f"unschedulable: {_refusal(judgement)}"


def _if_tried_now(judgement: Judgement) -> str:
    if judgement.choice is not None:
        alone = f"if all of {judgement.gang} got nodes " if judgement.gang else ""
        return f"now {alone}it would go to {judgement.choice.words}"
    return f"now it would fit nowhere: {_refusal(judgement)}"


def _refusal(judgement: Judgement) -> str:
    """Count as the FailedScheduling message does."""
    counts = sorted(judgement.reasons.items(), key=lambda item: (-item[1], item[0]))
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts)
    found = f"of {judgement.num_nodes} nodes {reasons}" if reasons else judgement.message
    miss = judgement.nearest_miss
    return f"{found}; nearest miss {miss.words}" if miss is not None else found
