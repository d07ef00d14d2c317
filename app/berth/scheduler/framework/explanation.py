"""Explanations by plugins of one node: the numbers, and what would help."""

from abc import abstractmethod
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from berth.scheduler.framework.change import Change, ChangeKind, Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import Mask


class Explains(Plugin):
    """A Filter plugin that can tell more of one node than the reasons in its verdict."""

    @abstractmethod
    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterable[Detail]:
        """Tell everything that the filter holds against *row*, which it has rejected.

        Called when somebody asks, never in a scheduling attempt, with the *state* that PreFilter
        of the same question has written. As in Filter, the table that is given is evaluated.
        """


class Move(NamedTuple):
    """A pod that leaves a node, or comes to it."""

    row: int
    pod: PodInfo
    comes: bool = False


class MovesPods(Explains):
    """A Filter plugin whose MovePods changes can be tried out before they are advised."""

    @abstractmethod
    def moves(
        self, change: Change, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterable[Move] | None:
        """Name pods that are to move for *change*, which :meth:`explain` told of *row*.

        A pod that comes may be one that there is not yet. None if nobody can tell.
        """


@dataclass(frozen=True, slots=True)
class Objection:
    """One detail of many rows at once, without its words."""

    where: Mask
    kind: ChangeKind | None
    """Of the change that would help; None: nothing short of another node or another pod would."""
    shortfall: NDArray[np.float64] | float = 1.0
    """Of each row, or of all."""


class ExplainsColumns(Explains):
    """A Filter plugin that can also tell how far off all rows are, faster than one by one."""

    @abstractmethod
    def objections(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Iterable[Objection]:
        """Tell what :meth:`explain` holds against each row, in the order of its details.

        Rows without an objection are asked about one by one.
        """


SummingUp: TypeAlias = Generator[None, None, str]
"""What there is to say, after so many steps between which others may have a turn."""


class SumsUp(Plugin):
    """A Filter plugin that can tell of the whole cluster what no single node shows."""

    @abstractmethod
    def sum_up(self, state: CycleState, pod: PodInfo, nodes: NodeTable, where: Mask) -> SummingUp:
        """Say in a clause how much there is of what the rows *where* lack, and who holds it.

        "port 80/TCP is taken on 3 nodes by default/a, default/b and default/c"; empty if there is
        nothing to add to the reasons. *where* are the rows that the filter has rejected, called as
        :meth:`Explains.explain`; a step takes no longer than one node of that.
        """


class Records(Plugin):
    """A plugin whose findings on nodes are part of the record of a decision."""

    @abstractmethod
    def record(self, state: CycleState, nodes: NodeTable, rows: Mask) -> Mapping[str, Any]:
        """Return the findings on *rows*, which passed all filters, as JSON would have them.

        Called after the cycle that has written *state*; empty if there is nothing to record.
        """
