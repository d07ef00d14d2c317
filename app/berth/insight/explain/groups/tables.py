"""The same as a table for people."""

from collections.abc import Iterator, Sequence

from berth.insight.explain.groups.explanation import (
    Blocked,
    GroupBelow,
    PlacementVerdict,
    PodGroupExplanation,
)
from berth.insight.explain.tables import nodes_table
from berth.runtime.tables import Content, Stack, Table
from berth.scheduler.framework.words import amount_in_words, counted

PODS_NAMED = 3


def render_group(group: PodGroupExplanation) -> Content:
    """Lay *group* out for a terminal."""
    return Stack(_parts(group))


def _parts(group: PodGroupExplanation) -> Iterator[Content]:
    yield Table.of_facts(_facts(group))
    if group.groups:
        yield ""
        yield _groups(group.groups)
    if group.placements:
        yield ""
        yield _placements(group.topology_key, group.placements)
    if group.blocked:
        yield ""
        yield _blocked(group.blocked)
    if group.evaluation is not None:
        yield from nodes_table(group.evaluation)


def _facts(group: PodGroupExplanation) -> Iterator[tuple[str, str]]:
    yield "composite pod group" if group.groups else "pod group", group.pod_group
    if group.part_of is not None:
        yield "part of", group.part_of.name
    if group.exists:
        field = "minGroupCount" if group.groups else "minCount"
        least = "" if group.min_count is None else f", {field} {group.min_count}"
        yield "policy", f"{group.policy}{least}"
    else:
        yield "policy", "not known: there is no PodGroup of this name"
    if group.topology_key:
        yield "topology", f"all pods on nodes with one value of {group.topology_key}"
    states = [f"{number} {where}" for where, number in sorted(group.members.items())]
    yield "pods", f"{group.num_pods}: {', '.join(states)}" if states else "none"
    if group.status is not None:
        since = f" since {group.status.last_transition_time}"
        reason = f"{group.status.reason}{since if group.status.last_transition_time else ''}"
        message = f": {group.status.message}" if group.status.message else ""
        yield "last cycle", f"{reason}{message}"
    if group.num_tried:
        yield (
            "now",
            f"{group.num_fit} of {counted(group.num_tried, 'pod')} can get nodes together",
        )
    if group.choice:
        yield "goes to", group.choice
    if group.obstacle:
        yield "obstacle", group.obstacle
    if group.shortage is not None:
        yield "would help", group.shortage.words
    if group.next_try:
        yield "tried again", f"after {group.next_try} at the latest"
    for plugin, changes in group.woken_by.items():
        yield "woken by", f"{', '.join(changes)} ({plugin})"
    for pod in group.leaving:
        yield "leaving", pod
    for note in group.notes:
        yield "note", note
    if group.evaluation is not None:
        for note in group.evaluation.notes:
            yield "note", note
        for finding in group.evaluation.findings:
            yield "overall", finding
        if group.evaluation.nearest_miss is not None:
            yield "nearest miss", group.evaluation.nearest_miss.words


def _groups(groups: Sequence[GroupBelow]) -> Table:
    table = Table("group", "policy", "topology", "pods", "with nodes", "ready", "")
    for group in groups:
        what = group.message
        if group.can_start:
            what = "will start"
        least = "" if group.min_count is None else f" {group.min_count}"
        table.add_row(
            f"{'  ' * group.depth}{group.name}",
            f"{group.policy}{least}",
            group.topology_key,
            str(group.num_pods),
            str(group.num_scheduled),
            "yes" if group.is_ready else "no",
            what,
        )
    return table


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
    for same in blocked:
        named = ", ".join(same.pods[:PODS_NAMED])
        left = len(same.pods) - PODS_NAMED
        table.add_row(
            named + (f" and {left} more" if left > 0 else ""),
            ", ".join(same.plugins),
            same.message,
        )
    return table
