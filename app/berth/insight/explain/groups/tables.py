"""The same as a table for people."""

from collections.abc import Iterator, Sequence

from berth.insight.explain.groups.explanation import Blocked, PlacementVerdict, PodGroupExplanation
from berth.insight.explain.tables import nodes_table
from berth.runtime.tables import Content, Stack, Table
from berth.scheduler.framework.explanation import amount_in_words, counted

PODS_NAMED = 3


def render_group(found: PodGroupExplanation) -> Content:
    """Lay *found* out for a terminal."""
    return Stack(_parts(found))


def _parts(found: PodGroupExplanation) -> Iterator[Content]:
    yield Table.of_facts(_facts(found))
    if found.placements:
        yield ""
        yield _placements(found.topology_key, found.placements)
    if found.blocked:
        yield ""
        yield _blocked(found.blocked)
    if found.evaluation is not None:
        yield from nodes_table(found.evaluation)


def _facts(found: PodGroupExplanation) -> Iterator[tuple[str, str]]:
    yield "pod group", found.pod_group
    if found.exists:
        least = "" if found.min_count is None else f", minCount {found.min_count}"
        yield "policy", f"{found.policy}{least}"
    else:
        yield "policy", "not known: there is no PodGroup of this name"
    if found.topology_key:
        yield "topology", f"all pods on nodes with one value of {found.topology_key}"
    states = [f"{number} {where}" for where, number in sorted(found.members.items())]
    yield "pods", f"{found.num_pods}: {', '.join(states)}" if states else "none"
    if found.status is not None:
        since = f" since {found.status.last_transition_time}"
        reason = f"{found.status.reason}{since if found.status.last_transition_time else ''}"
        message = f": {found.status.message}" if found.status.message else ""
        yield "last cycle", f"{reason}{message}"
    if found.num_tried:
        yield "now", f"{found.num_fit} of {counted(found.num_tried, 'pod')} can get nodes together"
    if found.choice:
        yield "goes to", found.choice
    if found.obstacle:
        yield "obstacle", found.obstacle
    if found.shortage is not None:
        yield "would help", found.shortage.words
    if found.next_try:
        yield "tried again", f"after {found.next_try} at the latest"
    for plugin, changes in found.woken_by.items():
        yield "woken by", f"{', '.join(changes)} ({plugin})"
    for pod in found.leaving:
        yield "leaving", pod
    for note in found.notes:
        yield "note", note
    if found.evaluation is not None:
        for note in found.evaluation.notes:
            yield "note", note
        for finding in found.evaluation.findings:
            yield "overall", finding
        if found.evaluation.nearest_miss is not None:
            yield "nearest miss", found.evaluation.nearest_miss.words


def _placements(key: str, placements: Sequence[PlacementVerdict]) -> Table:
    resources = list(placements[0].free)
    plugins = next((list(placement.plugins) for placement in placements if placement.plugins), [])
    free = [f"free {name}" for name in resources]
    totals = ["total"] if plugins else []
    table = Table(key, "nodes", "pods that fit", *free, *plugins, *totals, "")
    for placement in placements:
        amounts = [
            f"{amount_in_words(name, placement.free[name])} of"
            f" {amount_in_words(name, placement.allocatable[name])}"
            for name in resources
        ]
        scores = [
            f"{score.normalized} x {score.weight}"
            if (score := placement.plugins.get(plugin))
            else ""
            for plugin in plugins
        ]
        total = ["" if placement.total is None else str(placement.total)] if plugins else []
        verdict = "chosen" if placement.is_chosen else "" if placement.can_start else "too few"
        table.add_row(
            placement.placement,
            str(placement.nodes),
            str(placement.num_fit),
            *amounts,
            *scores,
            *total,
            verdict,
        )
    return table


def _blocked(blocked: Sequence[Blocked]) -> Table:
    table = Table("pods without a node", "rejected by", "message")
    for each in blocked:
        named = ", ".join(each.pods[:PODS_NAMED])
        left = len(each.pods) - PODS_NAMED
        table.add_row(
            named + (f" and {left} more" if left > 0 else ""),
            ", ".join(each.plugins),
            each.message,
        )
    return table
