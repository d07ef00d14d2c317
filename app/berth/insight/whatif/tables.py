"""An answer as tables for people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from berth.insight.whatif.answer import (
    BALANCED,
    PODS,
    Answer,
    Move,
    NodesNeeded,
    Outcome,
    Removable,
    Repacked,
    Usage,
)
from berth.runtime.tables import Content, Stack, Table
from berth.scheduler.framework.words import counted

PODS_NAMED: Final = 3
"""Pods of a group that are named; the rest is counted."""
NODES_NAMED: Final = 10
_GIB: Final = 2**30
_BYTES: Final = ("memory", "ephemeral-storage")


def render(answer: Answer) -> Content:
    """Lay *answer* out for a terminal."""
    return Stack(_parts(answer))


def _parts(answer: Answer) -> Iterator[Content]:
    yield Table.of_facts(_facts(answer))
    yield ""
    yield _usage(answer)
    for label in answer.groups:
        values = {group.value for group in answer.groups[label]}
        if values != {""}:  # else no node has the label
            yield ""
            yield _groups(answer, label)
    if answer.placements and answer.repacked is None:
        yield ""
        yield from _placements(answer)
    if answer.pod_groups:
        yield ""
        yield _pod_groups(answer)
    if answer.unplaced:
        yield ""
        yield _unplaced(answer)
    if answer.victims:
        yield ""
        yield _victims(answer)
    if answer.repacked is not None and answer.repacked.moves:
        yield ""
        yield from _repacked(answer.repacked)
    if answer.removable is not None:
        yield from _removable(answer.removable)


def _facts(answer: Answer) -> Iterator[tuple[str, str]]:
    if answer.snapshot_time:
        yield "snapshot of", answer.snapshot_time
    undecided = len(answer.partial.undecided) if answer.partial is not None else 0
    if _num_pods(answer) + undecided:
        yield "fits", _fit(answer, undecided=undecided)
    elif answer.removable is None and answer.repacked is None:
        yield "fits", "yes: there is no pod to place"
    if answer.nodes_needed is not None:
        yield "nodes needed", _needed(answer.nodes_needed)
    if answer.compared is not None:
        moved = f"{counted(answer.moved or 0, 'pod')} placed differently"
        yield "compared", f"{_fit(answer.compared)}; {moved}"
    if answer.repacked is not None:
        yield "nodes in use", _in_use(answer)
    if answer.removable is not None:
        names = [node.node for node in answer.removable.nodes]
        yield "can go", _some(names, most=NODES_NAMED) if names else "no node"
        bare = answer.removable.without_controller
        if bare:
            yield "but", f"{_some(bare)} would be lost: no controller makes them again"
    if answer.admission:
        yield "admission", answer.admission
    for note in answer.notes:
        yield "note", note


def _num_pods(outcome: Outcome) -> int:
    """Return how many pods there were to place, of which it is known what became of them."""
    return len(outcome.placements) + sum(len(group.pods) for group in outcome.unplaced)


def _fit(outcome: Outcome, *, undecided: int = 0) -> str:
    num_placed, total = len(outcome.placements), counted(_num_pods(outcome) + undecided, "pod")
    said = f"{num_placed} of {total} {'has' if num_placed == 1 else 'have'} a node"
    if outcome.victims:
        said += f", {len(outcome.victims)} evicted"
        lost = sum(not victim.target for victim in outcome.victims)
        said += f", {lost} of them without a new node" if lost else ", all of them have a new node"
    return f"{'yes' if outcome.fits else 'no'}: {said}"


def _needed(needed: NodesNeeded) -> str:
    if needed.count is None:
        return f"even {needed.most} more are not enough"
    if not needed.count:
        return "none"
    if needed.count == 1:
        return "1 more"
    fewer = needed.count - 1
    return f"{needed.count} more; {fewer} {'is' if fewer == 1 else 'are'} not enough"


def _usage(answer: Answer) -> Table:
    table = Table("resource", "allocatable", "before", "after", right=(1, 2, 3))
    if answer.compared is not None:
        table.add_column("compared", right=True)
    for name, after in answer.after.resources.items():
        row = [name, _amount(name, after.allocatable), _taken(answer.before, name)]
        row.append(_taken(answer.after, name))
        if answer.compared is not None:
            row.append(_taken(answer.compared.after, name))
        table.add_row(*row)
    usages = [answer.before, answer.after]
    if answer.compared is not None:
        usages.append(answer.compared.after)
    for name in answer.after.imbalance:
        told = (f"{usage.imbalance.get(name, 0.0):.3f}" for usage in usages)
        table.add_row(f"imbalance of {name}", "", *told)
    for name in BALANCED:
        if name in answer.after.fragmentation:
            told = (f"{usage.fragmentation.get(name, 0.0):.1%}" for usage in usages)
            table.add_row(f"fragmentation of {name}", "", *told)
    return table


def _groups(answer: Answer, label: str) -> Table:
    table = Table(label, "nodes", "placed", "cpu", "memory", "pods", right=(1, 2, 3, 4, 5))
    for group in answer.groups[label]:
        shares = (_shares(group.before, group.after, name) for name in ("cpu", "memory", "pods"))
        nodes = str(group.after.nodes)
        table.add_row(group.value or "none", nodes, str(group.placed), *shares)
    return table


def _placements(answer: Answer) -> Iterator[Content]:
    count = Counter(answer.placements.values())
    table = Table("node", "placed", "pods", right=(1,))
    for node, number in count.most_common(NODES_NAMED):
        pods = tuple(pod for pod, where in answer.placements.items() if where == node)
        table.add_row(node, str(number), _some(pods))
    yield table
    if len(count) > NODES_NAMED:
        yield f"and {counted(len(count) - NODES_NAMED, 'more node')}"


def _pod_groups(answer: Answer) -> Table:
    table = Table("pod group", "minCount", "placed", "starts", "why", right=(1, 2))
    for group in answer.pod_groups:
        least = "" if group.min_count is None else str(group.min_count)
        starts = "yes" if group.starts else "no"
        where = f"in {group.topology}" if group.topology else ""
        why = "; ".join(filter(None, (where, group.why)))
        table.add_row(group.pod_group, least, str(group.placed), starts, why)
    return table


def _unplaced(answer: Answer) -> Table:
    table = Table("without a node", "pods", "why", right=(1,))
    for group in answer.unplaced:
        waited = "" if group.asked else " (waited before)"
        table.add_row(f"{group.template}{waited}", str(len(group.pods)), group.message)
    return table


def _victims(answer: Answer) -> Table:
    table = Table("evicted", "priority", "node", "for", "then", right=(1,))
    for victim in answer.victims:
        then = f"to {victim.target}" if victim.target else victim.why
        table.add_row(victim.pod, str(victim.priority), victim.node, victim.preemptor, then)
    return table


def _in_use(answer: Answer) -> str:
    repacked = answer.repacked
    assert repacked is not None
    said = f"{repacked.nodes_before} before, {repacked.nodes_after} after"
    if answer.compared is not None and answer.compared.repacked is not None:
        said += f" ({answer.compared.repacked.nodes_after} compared)"
    return f"{said}; {len(repacked.moves)} of {counted(repacked.pods, 'pod')} moved"


def _repacked(repacked: Repacked) -> Iterator[Content]:
    by_source: dict[str, list[Move]] = {}
    for move in repacked.moves:
        by_source.setdefault(move.source, []).append(move)
    emptied = set(repacked.emptied)
    table = Table("from", "", "moved", "to", right=(2,))
    for source, moves in islice(sorted(by_source.items()), NODES_NAMED):
        targets = _targets(move.target for move in moves)
        table.add_row(
            source, "would be empty" if source in emptied else "", str(len(moves)), targets
        )
    yield table
    if len(by_source) > NODES_NAMED:
        yield f"and {counted(len(by_source) - NODES_NAMED, 'more node')}"
    if repacked.emptied:
        yield ""
        yield f"would be empty: {_some(repacked.emptied, most=NODES_NAMED)}"


def _removable(removable: Removable) -> Iterator[Content]:
    if removable.nodes:
        table = Table("can go", "pods", "to", right=(1,))
        for node in removable.nodes[:NODES_NAMED]:
            table.add_row(node.node, str(len(node.moves)), _targets(node.moves.values()))
        yield ""
        yield table
        if len(removable.nodes) > NODES_NAMED:
            yield f"and {counted(len(removable.nodes) - NODES_NAMED, 'more node')}"
        yield ""
        shares = (
            f"{name} {removable.after.resources[name].share:.0%}"
            for name in (*BALANCED, PODS)
            if name in removable.after.resources
        )
        yield f"without them: {counted(removable.after.nodes, 'node')}, use of {', '.join(shares)}"
    if removable.stays:
        table = Table("stays", "nodes", "why", right=(1,))
        for stays in removable.stays[:NODES_NAMED]:
            table.add_row(_some(stays.nodes), str(len(stays.nodes)), stays.why)
        yield ""
        yield table
        if len(removable.stays) > NODES_NAMED:
            left = sum(len(stay.nodes) for stay in removable.stays[NODES_NAMED:])
            yield f"and {counted(left, 'more node')}"


def _targets(nodes: Iterable[str]) -> str:
    """Name nodes, those that come most often first, with how often."""
    count = Counter(nodes)
    return _some([f"{node} ({number})" for node, number in count.most_common()])


def _some(names: Sequence[str], *, most: int = PODS_NAMED) -> str:
    named = ", ".join(names[:most])
    left = len(names) - most
    return f"{named} and {left} more" if left > 0 else named


def _taken(usage: Usage, name: str) -> str:
    amount = usage.resources.get(name)
    if amount is None:
        return ""
    return f"{_amount(name, amount.requested)} ({amount.share:.0%})"


def _shares(before: Usage, after: Usage, name: str) -> str:
    amounts = (usage.resources.get(name) for usage in (before, after))
    shares = (amount.share if amount else 0.0 for amount in amounts)
    return " > ".join(f"{share:.0%}" for share in shares)


def _amount(name: str, amount: int) -> str:
    """Write an amount for people: cores, GiB, pieces."""
    if name == "cpu":
        return f"{amount / 1000:.1f}"
    if name in _BYTES:
        return f"{amount / _GIB:.1f}Gi"
    return str(amount)
