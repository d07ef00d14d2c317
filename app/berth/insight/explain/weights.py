"""Weights of score plugins with which another node would have been chosen."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from berth.insight.explain.explanation import ResponseModel
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints
from berth.scheduler.profile.results import ScoreTable

LARGEST: Final = 100
"""No larger weight is looked at. Weights of the in-tree plugins are at most 3 by default."""


class WeightChange(ResponseModel):
    """The smallest change of one plugin's weight, upwards or downwards, that changes the node."""

    plugin: str
    weight: int
    """The one that counted."""
    other_weight: int
    """The nearest one with which another node is better. 0: the plugin does not score."""
    node: str
    """The best one then; of equally good ones the smallest name."""
    words: str


def weight_changes(scores: ScoreTable, nodes: NodeTable, chosen: str) -> tuple[WeightChange, ...]:
    """Return the changes that take *chosen*, one of the best, its place; the smallest first.

    All else stays the same: normalised scores do not depend on weights. With weight ``w`` of a
    plugin, node ``n`` is better than the chosen one ``c`` if ``w * (normalized[n] - normalized[c])
    > rest[c] - rest[n]``, where ``rest`` is the total without that plugin.
    """
    place = int(np.flatnonzero(scores.rows == nodes.row_of[chosen])[0])
    changes = [
        change for plugin in scores.weighted for change in _changes(scores, nodes, place, plugin)
    ]
    return tuple(sorted(changes, key=lambda change: abs(change.other_weight - change.weight)))


def _changes(
    scores: ScoreTable, nodes: NodeTable, place: int, plugin: str
) -> Iterator[WeightChange]:
    weight, weighted = scores.weights[plugin], scores.weighted[plugin]
    normalized, rest = weighted // weight, scores.total - weighted
    gain, lack = normalized - normalized[place], rest[place] - rest
    for other in _nearest(gain, lack):
        total = rest + other * normalized
        node = min(nodes.name(int(row)) for row in scores.rows[total == total.max()])
        how = "more" if other > weight else "less"
        words = (
            f"{node}, with weight {other} of {plugin} or {how} (it was {weight})"
            if other
            else f"{node}, without the scores of {plugin}"
        )
        yield WeightChange(plugin=plugin, weight=weight, other_weight=other, node=node, words=words)


def _nearest(gain: Ints, lack: Ints) -> Iterator[int]:
    """Yield the largest weight below, and the smallest above, with which a node is better.

    A node is better with weight ``w`` if ``w * gain > lack``; with the present one none is.
    """
    loses, wins = gain < 0, gain > 0
    if loses.any() and (below := int(((-lack[loses] - 1) // -gain[loses]).max())) >= 0:
        yield below
    if wins.any() and (above := int((lack[wins] // gain[wins]).min()) + 1) <= LARGEST:
        yield above
