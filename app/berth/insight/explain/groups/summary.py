"""The answer about a group in a sentence."""

from collections.abc import Iterator
from datetime import datetime
from math import ceil

from berth.insight.explain.explanation import Whereabouts
from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.explain.workload import POD_GROUP
from berth.scheduler.framework.words import counted, listed

_ON_NODES = (Whereabouts.BOUND, Whereabouts.BINDING, Whereabouts.WAITING)


def summarize_group(group: PodGroupExplanation, *, now: float) -> str:
    """Say why the group waits and what would let it start, or where it is; *now* is since 1970."""
    return f"{group.kind} {group.pod_group}: {reasons_in_words(group, now=now)}"


def reasons_in_words(group: PodGroupExplanation, *, now: float | None) -> str:
    """Say the same without the name; *now* None: nor when the group is tried again."""
    return "; ".join(_clauses(group, now))


def _clauses(group: PodGroupExplanation, now: float | None) -> Iterator[str]:
    if not group.exists:
        gated = f"{counted(group.num_pods, 'pod')} {'is' if group.num_pods == 1 else 'are'} gated"
        yield f"there is no such PodGroup; {gated} until it is created"
        return
    placed = sum(group.members.get(where, 0) for where in _ON_NODES)
    if not group.num_pods:
        yield "no group below it has a pod" if group.groups else "no pod names it"
        return
    if placed == group.num_pods and not group.num_uncreated:
        yield "its only pod has a node" if placed == 1 else f"all {placed} pods have nodes"
        if group.choice:
            yield f"if they had none, they would go to {group.choice}"
        return
    if group.num_uncreated:
        yield (
            f"only {group.num_pods} of at least {counted(group.min_count or 0, 'pod')} exist, so"
            f" none is tried before {group.num_uncreated} more"
            f" {'is' if group.num_uncreated == 1 else 'are'} created"
        )
    elif placed:
        yield f"{placed} of {counted(group.num_pods, 'pod')} have nodes"
    if group.groups:
        yield from _tree(group)
    else:
        yield from _trial(group, placed)
    if group.part_of is not None:
        yield f"it is part of {group.part_of.summary}"
        return  # which says when it is tried
    if now is not None and group.next_try is not None and not group.can_start:
        left = max(ceil(datetime.fromisoformat(group.next_try).timestamp() - now), 0)
        yield f"tried again in {left} s at the latest"


def _tree(group: PodGroupExplanation) -> Iterator[str]:
    """Say what a CompositePodGroup is short of, or comes to."""
    whole, *below = group.groups
    children = [each for each in below if each.depth == 1]
    ready = sum(each.is_ready for each in children)
    if not whole.is_ready:
        missing = [each.name for each in below if not each.is_ready and each.kind == POD_GROUP]
        few = f"; too few pods exist of {listed(missing)}" if missing else ""
        yield (
            f"{ready} of {counted(len(children), 'group')} {'is' if ready == 1 else 'are'} ready,"
            f" and {group.min_count or 1} must be before any pod is tried{few}"
        )
    elif not group.num_tried:
        yield from group.notes[-1:]
    elif group.can_start:
        names = [each.name for each in below if each.can_start and each.kind == POD_GROUP]
        yield (
            f"{group.num_fit} of {counted(group.num_tried, 'waiting pod')} can get nodes now:"
            f" {listed(names)} will start"
        )
    else:
        yield group.error or f"it cannot start: {whole.message}"
        lacking = [each for each in below if each.message not in ("", whole.message)]
        if lacking:
            yield f"{lacking[0].name}: {lacking[0].message}"
        yield from _obstacle(group)


def _trial(group: PodGroupExplanation, placed: int) -> Iterator[str]:
    if group.error:
        yield group.error
        return
    if not group.num_tried:
        if group.notes:
            yield group.notes[-1]
        return
    needed = group.min_count or 0
    of_pods = f"{group.num_fit} of {counted(group.num_tried, 'waiting pod')} can get nodes now"
    if group.can_start and not group.num_uncreated:
        where = f", in {group.choice}" if group.choice else ""
        yield f"{of_pods}: the group will start{where}"
    else:
        yield of_pods + (f", and {needed} are needed together" if placed < needed else "")
    if group.leaving:
        yield f"room is made for it, which {listed(group.leaving)} must leave first"
    yield from _obstacle(group)
    if group.shortage is not None:
        yield group.shortage.words


def _obstacle(group: PodGroupExplanation) -> Iterator[str]:
    """Say which pod gets no node, and why."""
    if group.blocked:
        first = group.blocked[0]
        others = len(first.pods) - 1
        who = group.obstacle + (f" and {others} more" if others else "")
        have = "have" if others else "has"
        message = group.evaluation.message if group.evaluation is not None else first.message
        yield f"{who} {have} none: {message.removesuffix('.')}"
