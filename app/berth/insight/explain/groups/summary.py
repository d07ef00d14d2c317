"""The answer about a group in a sentence."""

from collections.abc import Iterator
from datetime import datetime
from math import ceil

from berth.insight.explain.explanation import Whereabouts
from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.scheduler.framework.explanation import counted, listed

_ON_NODES = (Whereabouts.BOUND, Whereabouts.BINDING, Whereabouts.WAITING)


def summarize_group(found: PodGroupExplanation, *, now: float) -> str:
    """Say why the group waits and what would let it start, or where it is; *now* is since 1970."""
    return f"podgroup {found.pod_group}: {reasons_in_words(found, now=now)}"


def reasons_in_words(found: PodGroupExplanation, *, now: float | None) -> str:
    """Say the same without the name; *now* None: nor when the group is tried again."""
    return "; ".join(_clauses(found, now))


def _clauses(found: PodGroupExplanation, now: float | None) -> Iterator[str]:
    if not found.exists:
        gated = f"{counted(found.num_pods, 'pod')} {'is' if found.num_pods == 1 else 'are'} gated"
        yield f"there is no such PodGroup; {gated} until it is created"
        return
    placed = sum(found.members.get(where, 0) for where in _ON_NODES)
    if not found.num_pods:
        yield "no pod names it"
        return
    if placed == found.num_pods and not found.num_uncreated:
        yield "its only pod has a node" if placed == 1 else f"all {placed} pods have nodes"
        if found.choice:
            yield f"if they had none, they would go to {found.choice}"
        return
    if found.num_uncreated:
        yield (
            f"only {found.num_pods} of at least {counted(found.min_count or 0, 'pod')} exist, so"
            f" none is tried before {found.num_uncreated} more"
            f" {'is' if found.num_uncreated == 1 else 'are'} created"
        )
    elif placed:
        yield f"{placed} of {counted(found.num_pods, 'pod')} have nodes"
    yield from _trial(found, placed)
    if now is not None and found.next_try is not None and not found.can_start:
        left = max(ceil(datetime.fromisoformat(found.next_try).timestamp() - now), 0)
        yield f"tried again in {left} s at the latest"


def _trial(found: PodGroupExplanation, placed: int) -> Iterator[str]:
    if found.error:
        yield found.error
        return
    if not found.num_tried:
        if found.notes:
            yield found.notes[-1]
        return
    needed = found.min_count or 0
    of_pods = f"{found.num_fit} of {counted(found.num_tried, 'waiting pod')} can get nodes now"
    if found.can_start and not found.num_uncreated:
        where = f", in {found.choice}" if found.choice else ""
        yield f"{of_pods}: the group will start{where}"
    else:
        yield of_pods + (f", and {needed} are needed together" if placed < needed else "")
    if found.leaving:
        yield f"room is made for it, which {listed(found.leaving)} must leave first"
    if found.blocked:
        first = found.blocked[0]
        others = len(first.pods) - 1
        who = found.obstacle + (f" and {others} more" if others else "")
        have = "have" if others else "has"
        message = found.evaluation.message if found.evaluation is not None else first.message
        yield f"{who} {have} none: {message.removesuffix('.')}"
    if found.shortage is not None:
        yield found.shortage.words
