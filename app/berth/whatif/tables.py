"""An answer as tables for people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from berth.tables import Content, Stack, Table
from berth.whatif.answer import (
    Answer,
    Move,
    NodesNeeded,
    Outcome,
    Removable,
    Repacked,
    Usage,
)
from berth.whatif.usage import BALANCED, PODS

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
    yield "fits", _fit(answer, undecided=undecided)
    if answer.nodes_needed is not None:
        yield "nodes needed", _needed(answer.nodes_needed)
    if answer.compared is not None:
        yield "compared", f"{_fit(answer.compared)}; {answer.moved} pods placed differently"
    if answer.repacked is not None:
        yield "nodes in use", _in_use(answer)
    if answer.removable is not None:
        names = [each.node for each in answer.removable.nodes]
        yield "can go", _some(names, most=NODES_NAMED) if names else "no node"
        bare = answer.removable.without_controller
        if bare:
            yield "but", f"nobody makes {_some(bare)} again: no controller owns them"
    if answer.admission:
        yield "admission", answer.admission
    for note in answer.notes:
        yield "note", note


def _fit(outcome: Outcome, *, undecided: int = 0) -> str:
    without = sum(len(group.pods) for group in outcome.unplaced)
    total = len(outcome.placements) + without + undecided
    said = f"{len(outcome.placements)} of {total} pods have a node"
    if outcome.victims:
        said += f", {len(outcome.victims)} evicted"
    return f"{'yes' if outcome.fits else 'no'}: {said}"


def _needed(needed: NodesNeeded) -> str:
    if needed.count is None:
        return f"{needed.most} more are not enough"
    if not needed.count:
        return "none"
    if needed.count == 1:
        return "1 more"
    return f"{needed.count} more; {needed.count - 1} are not enough"


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
        yield f"and {len(count) - NODES_NAMED} more nodes"


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
    table = Table("evicted", "priority", "node", "for", right=(1,))
    for victim in answer.victims:
        table.add_row(victim.pod, str(victim.priority), victim.node, victim.preemptor)
    return table


def _in_use(answer: Answer) -> str:
    found = answer.repacked
    assert found is not None
    said = f"{found.nodes_before} before, {found.nodes_after} after"
    if answer.compared is not None and answer.compared.repacked is not None:
        said += f" ({answer.compared.repacked.nodes_after} compared)"
    return f"{said}; {len(found.moves)} of {found.pods} pods moved"


def _repacked(found: Repacked) -> Iterator[Content]:
    by_source: dict[str, list[Move]] = {}
    for move in found.moves:
        by_source.setdefault(move.source, []).append(move)
    emptied = set(found.emptied)
    table = Table("from", "", "moved", "to", right=(2,))
    for source, moves in islice(sorted(by_source.items()), NODES_NAMED):
        targets = _targets(move.target for move in moves)
        table.add_row(source, "empty then" if source in emptied else "", str(len(moves)), targets)
    yield table
    if len(by_source) > NODES_NAMED:
        yield f"and {len(by_source) - NODES_NAMED} more nodes"
    if found.emptied:
        yield ""
        yield f"empty then: {_some(found.emptied, most=NODES_NAMED)}"


def _removable(found: Removable) -> Iterator[Content]:
    if found.nodes:
        table = Table("can go", "pods", "to", right=(1,))
        for each in found.nodes[:NODES_NAMED]:
            table.add_row(each.node, str(len(each.moves)), _targets(each.moves.values()))
        yield ""
        yield table
        if len(found.nodes) > NODES_NAMED:
            yield f"and {len(found.nodes) - NODES_NAMED} more nodes"
        yield ""
        shares = (
            f"{name} {found.after.resources[name].share:.0%}"
            for name in (*BALANCED, PODS)
            if name in found.after.resources
        )
        yield f"without them: {found.after.nodes} nodes, use of {', '.join(shares)}"
    if found.stays:
        table = Table("stays", "nodes", "why", right=(1,))
        for stays in found.stays[:NODES_NAMED]:
            table.add_row(_some(stays.nodes), str(len(stays.nodes)), stays.why)
        yield ""
        yield table
        if len(found.stays) > NODES_NAMED:
            yield f"and {sum(len(each.nodes) for each in found.stays[NODES_NAMED:])} more nodes"


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
    found = (usage.resources.get(name) for usage in (before, after))
    shares = (amount.share if amount else 0.0 for amount in found)
    return " > ".join(f"{share:.0%}" for share in shares)


def _amount(name: str, amount: int) -> str:
    """Write an amount for people: cores, GiB, pieces."""
    if name == "cpu":
        return f"{amount / 1000:.1f}"
    if name in _BYTES:
        return f"{amount / _GIB:.1f}Gi"
    return str(amount)
