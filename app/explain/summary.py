"""The answer in a sentence: why a pod is pending, or why it is where it is."""

from collections.abc import Sequence

from app.explain.explanation import Judgement, PastDecision, PodState, Whereabouts


def summarize(state: PodState, judgement: Judgement | None, history: Sequence[PastDecision]) -> str:
    """Put together what *state* says, what would be found now, and what was (newest first)."""
    match state.where:
        case Whereabouts.UNSCHEDULABLE if judgement is not None:
            return f"{_unschedulable(judgement)}; {state.words}"
        case Whereabouts.ACTIVE | Whereabouts.BACKOFF | Whereabouts.GATED if judgement is not None:
            return f"{state.words}; {_if_tried_now(judgement)}"
        case Whereabouts.BOUND | Whereabouts.BINDING | Whereabouts.WAITING:
            chosen = (past.choice for past in history if past.node == state.node)
            choice = next(chosen, None)
            return state.words if choice is None else f"{state.words}: {choice.words}"
    return state.words


def _unschedulable(judgement: Judgement) -> str:
    if judgement.choice is not None:
        fits = f"{judgement.num_feasible} of {judgement.num_nodes} nodes"
        return f"unschedulable when it was tried last, but now {fits} can take it"
    return f"unschedulable: {_refusal(judgement)}"


def _if_tried_now(judgement: Judgement) -> str:
    if judgement.choice is not None:
        return f"now it would go to {judgement.choice.words}"
    return f"now it would fit nowhere: {_refusal(judgement)}"


def _refusal(judgement: Judgement) -> str:
    """Count as the FailedScheduling message does."""
    counts = sorted(judgement.reasons.items(), key=lambda item: (-item[1], item[0]))
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts)
    found = f"of {judgement.num_nodes} nodes {reasons}" if reasons else judgement.message
    miss = judgement.nearest_miss
    return f"{found}; nearest miss {miss.words}" if miss is not None else found
