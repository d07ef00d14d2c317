"""Plugins that can answer about one row of the table, at much less than the cost of a column.

For plugins that come with berth and go by load: of replicas that are placed one after the other,
each changes one row for the next. An answer is that of ``filter`` or ``score`` about the row, which
a property of each such plugin compares; None leaves it to these.
"""

from abc import abstractmethod

from berth.scheduler.framework.interface import FilterPlugin, ScorePlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo


class FiltersRows(FilterPlugin):
    """A filter whose answer about a row follows from the load of this row."""

    @abstractmethod
    def passes_row(self, pod: PodInfo, nodes: NodeTable, row: int) -> bool | None:
        """Return whether :meth:`filter` lets *pod* onto *row*; None if only that can tell."""


class ScoresRows(ScorePlugin):
    """A plugin whose score of a row follows from the load of this row, and is not normalised."""

    @abstractmethod
    def score_row(self, pod: PodInfo, nodes: NodeTable, row: int) -> int | None:
        """Return what :meth:`score` gives *row*; None if only that can tell."""
