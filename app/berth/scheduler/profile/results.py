"""Results of all plugins of an extension point together."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import Ints, Mask, everywhere

SOME_WAIT: Final = "one or more plugins asked to wait and no plugin rejected pod"


class PreFilterOutcome(msgspec.Struct):
    """What all PreFilter plugins together said (spec §2.3)."""

    status: Status | None = None
    """None: go on. Its plugin is empty when the sets of several plugins have nothing in common."""
    node_names: frozenset[str] | None = None
    """The nodes left in question; None: all."""
    plugins_with_nodes: list[str] = msgspec.field(default_factory=list)

    @property
    def authors(self) -> list[str]:
        """Who leaves nodes out: the plugin that ended PreFilter, or those that named nodes."""
        if self.status is not None and self.status.plugin:
            return [self.status.plugin]
        return self.plugins_with_nodes


def eligible_rows(outcome: PreFilterOutcome, nodes: NodeTable) -> tuple[Mask, Status | None]:
    """Return the rows PreFilter left, and the status that counts for all others (spec §2.3)."""
    if outcome.node_names is None:
        return nodes.exists.copy(), None
    names = " ".join(sorted(outcome.plugins_with_nodes))
    absent = Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")
    return nodes.rows_named(outcome.node_names), absent


class Columns(Mapping[str, Ints]):
    """Columns by name, of which some are one number for all rows, made when looked at."""

    __slots__ = ("_columns", "_size", "_weights")

    def __init__(
        self,
        columns: Mapping[str, Ints | int],
        size: int,
        weights: Mapping[str, int] | None = None,
    ) -> None:
        """Have *size* rows in each column, which is multiplied by its weight if there are any."""
        self._columns = columns
        self._size = size
        self._weights = weights

    def __getitem__(self, name: str) -> Ints:
        column = self._columns[name]
        if self._weights is not None:
            column = column * self._weights[name]
        return everywhere(column, self._size) if isinstance(column, int) else column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class ScoreTable(msgspec.Struct, frozen=True):
    """Scores of the nodes that passed, one column per plugin that scored."""

    rows: NDArray[np.intp]
    raw: Mapping[str, Ints]
    """As the plugin gave them."""
    weighted: Mapping[str, Ints]
    """Normalised to 0..100 and times the plugin's weight."""
    total: Ints
    weights: Mapping[str, int]
    """By plugin, those that applied."""
    extenders: Ints | None = None
    """What of the totals comes from extenders; None if none has scored."""

    def take(self, places: NDArray[np.intp]) -> "ScoreTable":
        """Return a copy of the rows at *places*."""
        return ScoreTable(
            self.rows.take(places),
            {plugin: column.take(places) for plugin, column in self.raw.items()},
            {plugin: column.take(places) for plugin, column in self.weighted.items()},
            self.total.take(places),
            self.weights,
            None if self.extenders is None else self.extenders.take(places),
        )


class PermitWait(msgspec.Struct, frozen=True):
    """Permit plugins want the pod to wait (spec §2.7)."""

    timeouts: Mapping[str, float]
    """By plugin, for how many seconds at most."""
    last_message: str
    """What the last of them said."""

    @property
    def message(self) -> str:
        return f"{self.last_message}, {SOME_WAIT}" if self.last_message else SOME_WAIT
