"""Distances of nodes from fitting, to be compared."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import nsmallest
from typing import Final, NamedTuple

import numpy as np

from berth.insight.explain.explanation import Obstacle
from berth.scheduler.framework.change import ChangeKind
from berth.scheduler.framework.explanation import Objection
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.status import Code
from berth.scheduler.framework.verdict import Ints, Mask

UNRESOLVABLE: Final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE.label
UNSCHEDULABLE: Final = Code.UNSCHEDULABLE.label

EFFORT: Final = {
    ChangeKind.FREE_RESOURCE: 0,
    ChangeKind.FREE_POD_SLOT: 0,
    ChangeKind.FREE_PORT: 0,
    ChangeKind.FREE_DEVICE: 0,
    ChangeKind.DETACH_VOLUME: 0,
    ChangeKind.REMOVE_TAINT: 1,
    ChangeKind.UNCORDON: 1,
    ChangeKind.MOVE_PODS: 1,
    ChangeKind.LABEL_NODE: 2,
    ChangeKind.REQUEST_LESS: 3,
    ChangeKind.EDIT_POD: 3,
}
"""What an operator does first: room comes back by itself as pods end, or another node has it; a
taint can be tolerated, pods can be moved, a label can be set; then the pod itself has to change."""


class Hold(IntEnum):
    """Whether what stands in the way could be changed."""

    CHANGEABLE = 0
    UNKNOWN = 1
    """A plugin says that evicting pods would not help, and not what would."""
    FIXED = 2


class Distance(NamedTuple):
    """How far a node is from fitting, to be compared; the package gives the order."""

    hold: Hold
    """That of the firmest obstacle."""
    reasons: int
    is_unresolvable: bool
    """No eviction helps."""
    effort: int
    """That of the hardest change."""
    shortfall: float
    """What is missing in proportion to what is needed, summed over all objections."""


def distance_of(obstacles: tuple[Obstacle, ...]) -> Distance:
    """Say how far a node is that *obstacles* keep the pod off; without any it was not evaluated.

    An objection without details counts as if all of something were missing; whether it could be
    changed is not known, unless the plugin says that evicting pods may help.
    """
    hold = Hold.CHANGEABLE if obstacles else Hold.FIXED
    effort, shortfall = 0, 0.0
    for obstacle in obstacles:
        for detail in obstacle.details:
            if detail.change is None:
                hold = Hold.FIXED
                shortfall += 1.0
            else:
                effort = max(effort, EFFORT[detail.change.kind])
                shortfall += detail.change.shortfall
        if not obstacle.details:
            if not obstacle.plugin:  # left out by PreFilter, for what the node is
                hold = Hold.FIXED
            elif obstacle.code != UNSCHEDULABLE:
                hold = max(hold, Hold.UNKNOWN)
            effort = max(EFFORT.values())
            shortfall += len(obstacle.reasons)
    return Distance(
        hold,
        sum(len(obstacle.reasons) for obstacle in obstacles),
        any(obstacle.code == UNRESOLVABLE for obstacle in obstacles),
        effort,
        shortfall,
    )


class Columns:
    """Distances of the rows that nobody rejects but plugins that explain columns, by row."""

    def __init__(self, nodes: NodeTable) -> None:
        self.known = nodes.no_rows()
        """Rows whose distance this has."""
        self._nodes = nodes
        self._left_out = nodes.no_rows()
        self._is_fixed = nodes.no_rows()
        self._effort = np.zeros(nodes.size, np.int64)
        self._shortfall = np.zeros(nodes.size)

    def add(self, objections: Iterable[Objection], where: Mask) -> None:
        """Add what the plugin that rejects the rows *where* objects to."""
        explained = self._nodes.no_rows()
        for objection in objections:
            rows = where & objection.where
            explained |= rows
            if objection.kind is None:
                self._is_fixed |= rows
            else:
                np.maximum(self._effort, EFFORT[objection.kind], out=self._effort, where=rows)
            np.add(self._shortfall, objection.shortfall, out=self._shortfall, where=rows)
        self.known |= explained & ~self._left_out
        self.leave_out(where & ~explained)

    def leave_out(self, where: Mask | Sequence[int]) -> None:
        """Leave out rows that somebody else has a say about."""
        self._left_out[where] = True
        self.known[where] = False

    def num_changeable(self, rows: Ints) -> int:
        """Count those of *rows* where all that stands in the way could be changed."""
        return len(rows) - int(np.count_nonzero(self._is_fixed[rows]))

    def nearest(self, rows: Ints, count: int) -> list[int]:
        """Return those *count* of *rows*, of one coarse rank, that are nearest, in no order."""
        if len(rows) <= count:
            return [*rows.tolist()]
        keys = self._shortfall[rows], self._effort[rows], self._is_fixed[rows]
        order = np.lexsort(keys)
        is_equal = np.logical_and.reduce([key == key[order[count - 1]] for key in keys])
        nearer = [place for place in order[:count].tolist() if not is_equal[place]]
        equal = rows[is_equal].tolist()
        chosen = nsmallest(count - len(nearer), equal, key=self._nodes.name)
        return [*rows[nearer].tolist(), *chosen]
