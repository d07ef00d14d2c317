"""The choice of this node over the next best: scores side by side."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Final

import numpy as np

from berth.insight.explain.explanation import Choice, NodeScore, PluginScore
from berth.scheduler.decisions import RankedNode
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints
from berth.scheduler.profile.results import ScoreTable

EXTENDERS: Final = "extenders"
"""Stands for all of them, where plugins are named."""


def scores_of(table: ScoreTable, nodes: NodeTable, *, limit: int) -> Iterator[NodeScore]:
    """Put the *limit* best scores of a decision into words, best first, equal ones by name."""
    rows = table.rows
    best = _best(table.total, lambda i: nodes.name(rows[i]), limit=min(limit, len(rows)))
    for place in best:
        yield score_at(table, nodes, place)


def score_at(table: ScoreTable, nodes: NodeTable, place: int) -> NodeScore:
    """Put the scores of the node at *place* of *table* into words."""
    ranked = RankedNode(
        nodes.name(int(table.rows[place])),
        int(table.total[place]),
        {plugin: int(column[place]) for plugin, column in table.raw.items()},
        {plugin: int(column[place]) for plugin, column in table.weighted.items()},
        0 if table.extenders is None else int(table.extenders[place]),
    )
    return node_score(ranked, weights=table.weights)


def _best(total: Ints, name: Callable[[int], str], *, limit: int) -> Sequence[int]:
    """Return where the *limit* highest totals are, the highest first, equal ones by name.

    Names are compared of those only that are as good as the last one of the best.
    """
    if not limit:
        return []
    last = np.partition(total, len(total) - limit)[len(total) - limit]
    better = np.flatnonzero(total > last).tolist()
    equal = np.flatnonzero(total == last).tolist()
    best = sorted(better, key=lambda i: (-total[i], name(i)))
    return best + nsmallest(limit - len(best), equal, key=name)


def node_score(ranked: RankedNode, *, weights: Mapping[str, int]) -> NodeScore:
    """Add what the weights say to what was recorded."""
    return NodeScore(
        node=ranked.name,
        total=ranked.total,
        extenders=ranked.extenders,
        plugins={
            plugin: PluginScore(
                raw=ranked.raw[plugin],
                normalized=weighted // weights[plugin],
                weight=weights[plugin],
                weighted=weighted,
            )
            for plugin, weighted in ranked.weighted.items()
        },
    )


def choose(chosen: str, scores: Sequence[NodeScore], *, equals: int) -> Choice:
    """Tell why *chosen* won.

    *scores* are those of the best nodes, best first, or none if there was only one; *equals* says
    how many other nodes have the same total.
    """
    best = next((score for score in scores if score.node == chosen), None)
    runner_up = next((score for score in scores if score.node != chosen), None)
    if best is None or runner_up is None:
        total = best.total if best else None
        return Choice(node=chosen, total=total, words=f"{chosen}, the only node that fits")
    differences = _differences(best, runner_up)
    decided_by = ""
    if equals:
        why = f"chance decides between {equals + 1} nodes with the same total"
    else:
        decided_by = max(differences, key=lambda plugin: differences[plugin], default="")
        why = f"{decided_by} makes the largest difference ({differences.get(decided_by, 0):+})"
    return Choice(
        node=chosen,
        total=best.total,
        equals=equals,
        runner_up=runner_up.node,
        runner_up_total=runner_up.total,
        decided_by=decided_by,
        differences=differences,
        words=f"{chosen} ({best.total}) before {runner_up.node} ({runner_up.total}): {why}",
    )


def _differences(best: NodeScore, other: NodeScore) -> dict[str, int]:
    plugins: Iterable[str] = best.plugins
    differences = {p: best.plugins[p].weighted - other.plugins[p].weighted for p in plugins}
    by_extenders = best.extenders - other.extenders
    return differences | {EXTENDERS: by_extenders} if by_extenders else differences
