"""Answers of plugins that go by load, about the loads that rows will have next."""

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints, Rejection, Rows, Verdict


class LookAhead:
    """Answers about some loads of some rows, that came from one question to each plugin."""

    def __init__(
        self,
        rows: Rows,
        nodes: NodeTable,
        verdicts: Mapping[int, Verdict],
        scores: Mapping[str, Ints],
    ) -> None:
        """Take answers about *rows*, in ascending order, with the loads that *nodes* has in order.

        A row that comes several times has one pod more each time. *verdicts* go by index of the
        filter, *scores* by plugin.
        """
        self._rows = array("q", rows.tobytes())
        self._loads = nodes.loads()
        self._rejected = [
            (index, where, verdict)
            for index, verdict in verdicts.items()
            if (where := verdict.rejected()) is not None
        ]
        self.scores: Final = scores
        """By plugin, one for each answer."""

    @property
    def rejects_none(self) -> bool:
        """Whether no filter rejects any of the rows."""
        return not self._rejected

    def is_about(self, row: int) -> bool:
        """Whether there are answers about *row*."""
        place = bisect_left(self._rows, row)
        return place < len(self._rows) and self._rows[place] == row

    def first_of(self, row: int) -> int:
        """Return where the first answers about *row* are, of which there must be any."""
        return bisect_left(self._rows, row)

    def place_of(self, row: int, pod_count: int, load: bytes) -> int | None:
        """Return where the answers about *row* with *load* are; None: they are not here."""
        rows, loads = self._rows, self._loads
        place = bisect_left(rows, row)
        if place < len(rows) and rows[place] == row:
            place += pod_count - loads.item(place, -1)
            if 0 <= place < len(rows) and rows[place] == row and loads[place].tobytes() == load:
                return place
        return None

    def rejections(self, place: int) -> tuple[int, list[Rejection]] | None:
        """Return the index of the first filter that rejects, and for what; None: all pass."""
        for index, where, verdict in self._rejected:
            if where[place]:
                return index, [
                    rejection for rejection in verdict.rejections if rejection.where[place]
                ]
        return None

    def scores_at(self, place: int) -> dict[str, int]:
        """Return the scores by plugin."""
        return {name: column.item(place) for name, column in self.scores.items()}
