"""Tries advice before it is given: changes a node in thought, and asks all filters again.

An objection says what would meet it and knows nothing of the others: a label that one plugin asks
for may be what another refuses, and may put terms in force that did not reach the node before.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from berth.insight.explain.changed_node import ChangedNode
from berth.insight.explain.distances import Hold, distance_of
from berth.insight.explain.explanation import NearestMiss, Obstacle
from berth.insight.explain.obstacles import Obstacles
from berth.runtime.tasks import Steps
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import evaluate_all_nodes
from berth.scheduler.framework.placement import Placement

ROUNDS: Final = 3
"""How often what still stands in the way is changed, too, before a node is given up."""
MOST_CHOICES: Final = 4
"""Values that are tried of a label for which any will do."""
MOST_TRIED: Final = 10
"""Nodes that are tried, the nearest first."""


class Misses(NamedTuple):
    """Nodes that miss by little."""

    found: tuple[NearestMiss, ...]
    """Those where what is advised helps first, then those where it may; each the nearest first."""
    num_dropped: int
    """How many nodes were tried in vain."""


def nearest_misses(
    cycle: Cycle,
    rejected: Sequence[tuple[int, tuple[Obstacle, ...]]],
    obstacles: Obstacles,
    *,
    count: int,
) -> Steps[Misses]:
    """Return what *count* nodes need, at most, of *rejected*: rows, the nearest first.

    In steps, none of which takes longer than an attempt; the table of *cycle* must not change.
    """
    helping, hoping, dropped = list[NearestMiss](), list[NearestMiss](), 0
    for row, held_against in rejected[:MOST_TRIED]:
        if len(helping) >= count:
            break
        if distance_of(held_against).hold is Hold.FIXED:
            continue
        miss = yield from _miss(cycle, row, held_against, obstacles)
        if miss is None:
            dropped += 1
        else:
            (helping if miss.is_complete else hoping).append(miss)
    return Misses(tuple([*helping, *hoping][:count]), dropped)


def _miss(
    cycle: Cycle, row: int, held_against: tuple[Obstacle, ...], obstacles: Obstacles
) -> Steps[NearestMiss | None]:
    """Return what it takes for the pod to fit on *row*; None if nothing was found that helps."""
    for choice in range(MOST_CHOICES):
        changed = ChangedNode(cycle.pod, cycle.nodes, row, choice=choice)
        fits = yield from _fits(cycle, changed, held_against, obstacles)
        if fits:
            return changed.in_words(obstacles.beside(row))
        if changed.is_last_choice:
            return None
    return None


def _fits(
    cycle: Cycle, changed: ChangedNode, held_against: tuple[Obstacle, ...], obstacles: Obstacles
) -> Steps[bool]:
    """Change what is in the way, and what is in the way then."""
    for _ in range(ROUNDS):
        if not changed.make(held_against, obstacles):
            return False
        again = Cycle(
            cycle.profile,
            cycle.pod,
            changed.nodes,
            cycle.nominated_pods,
            placement=Placement("", changed.only),
        )
        again.state.on_trial = cycle.state.on_trial
        feasible_nodes = evaluate_all_nodes(again)
        yield
        if feasible_nodes.feasible[changed.row]:
            return True
        obstacles = Obstacles(again, feasible_nodes)
        held_against = obstacles.of(changed.row)
        if not held_against:  # it was not evaluated
            return False
        if all(obstacle.plugin in changed.untried for obstacle in held_against):
            return True
        yield
    return False
