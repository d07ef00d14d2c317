"""Parts of the cluster that a group of pods may be placed in as a whole (spec G10)."""

from typing import Final, NamedTuple

import msgspec
import numpy as np

from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import Mask


class Placement(msgspec.Struct, frozen=True, eq=False):
    """Nodes that all pods of a group may go to."""

    name: str
    rows: Mask | None = None
    """Which rows of the table they are; None: all."""

    def rows_of(self, nodes: NodeTable) -> Mask:
        return nodes.exists if self.rows is None else self.rows & nodes.exists

    def size(self, nodes: NodeTable) -> int:
        """Return how many nodes there are."""
        return len(nodes) if self.rows is None else int(np.count_nonzero(self.rows_of(nodes)))


EVERYWHERE: Final = Placement("")


class PlacementProgress(NamedTuple):
    """How far a group has been placed."""

    remaining: int
    """Pods that have not been tried yet."""
    scheduled: int
    """Pods that have nodes, those of earlier cycles among them."""


class Assignment(NamedTuple):
    """A pod, and the node that it would get."""

    pod: PodInfo
    node_name: str


class PodGroupPlacement(msgspec.Struct, frozen=True):
    """A placement in which enough pods of a group get nodes."""

    placement: Placement
    proposed: tuple[Assignment, ...]
    """The pods that would get a node there."""
    scheduled: int
    """How many pods of the group have one already."""
    state: CycleState | None = None
    """What plugins wrote while the group was tried there: ``state.placement`` of its pods."""
