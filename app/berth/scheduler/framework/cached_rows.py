"""Rows that take a pod, and the reasons of others, kept from attempt to attempt.

Of a thousand replicas that preempt one after the other, each changes one or two nodes for the next.
Where filters go by each node alone, their answers about all other nodes stay the same.

Exact, for pods of one template and priority: what is known of a row is forgotten when its node or a
pod on it changes, and when other pods are nominated to it. What else the answers follow from
(:class:`~berth.scheduler.framework.interface.RowByRow`) is up to the owner.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.scheduler.framework.diagnosis import Diagnosis, PluginVerdict
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.nominations import Beside
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Ints, Rows, Verdict

UNKNOWN, PASSES, FAILED = -2, -1, 0
"""Outcomes of rows, beside the indexes of statuses. What failed is asked again next time."""
_UNVERSIONED: Final = -1

Outcomes = NDArray[np.int32]


class CachedRows:
    """What is known of the rows of one table."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._generation = nodes.last_generation
        self._beside: Ints = np.zeros(nodes.size, np.int64)
        """By row, the version of the pods that were nominated to it."""
        self.outcomes: Outcomes = np.full(nodes.size, UNKNOWN, np.int32)
        """By row: UNKNOWN, PASSES, FAILED, or the index of a status."""
        self._statuses: list[Status | None] = [None]
        """By index; those of FAILED differ from row to row."""
        self._index_of: dict[Status, int] = {}
        self._failed: dict[int, Status] = {}

    def index_of(self, status: Status) -> int:
        """Return the index that stands for *status* in ``outcomes``."""
        index = self._index_of.get(status)
        if index is None:
            index = self._index_of[status] = len(self._statuses)
            self._statuses.append(status)
        return index

    def refresh(self, beside: Beside) -> list[int]:
        """Forget the rows whose outcome may be another now, and return them; cover new ones.

        *beside* are the pods nominated to them now.
        """
        new = self._nodes.size - len(self.outcomes)
        if new:
            self.outcomes = np.concatenate([self.outcomes, np.full(new, UNKNOWN, np.int32)])
            self._beside = np.concatenate([self._beside, np.zeros(new, np.int64)])
        rows = [*self._nodes.rows_changed_since(self._generation), *self._failed]
        self._generation = self._nodes.last_generation
        self._failed.clear()
        (others,) = (self._beside != beside.version).nonzero()
        self._beside[others] = beside.version[others]
        rows += others.tolist()
        if beside.own is not None:
            rows.append(beside.own)
            self._beside[beside.own] = _UNVERSIONED
        self.forget(rows)
        return rows

    def forget(self, rows: list[int]) -> None:
        """Have *rows* be unknown."""
        self.outcomes[rows] = UNKNOWN

    def learn(self, rows: Rows, diagnosis: Diagnosis) -> None:
        """Take in what *diagnosis* says of *rows*, by position; those without a status pass."""
        self.outcomes[rows] = PASSES
        for status, places in diagnosis.rows_by_status():
            of_status = rows[places]
            if status.code is Code.ERROR:
                self.outcomes[of_status] = FAILED
                self._failed |= dict.fromkeys(of_status.tolist(), status)
            else:
                self.outcomes[of_status] = self.index_of(status)

    # Answers. All of the rows must be known.

    def rejected(self, rows: Rows, outcomes: Outcomes) -> Iterator[tuple[Status, Rows]]:
        """Yield why those of *rows* are rejected that are alike, and which, by their *outcomes*."""
        is_rejected = outcomes >= 0
        rows, outcomes = rows[is_rejected], outcomes[is_rejected]
        for index in np.bincount(outcomes).nonzero()[0].tolist():
            of_index, status = rows[outcomes == index], self._statuses[index]
            if status is not None:
                yield status, of_index
            else:
                yield from ((self._failed[row], np.array([row])) for row in of_index.tolist())

    def diagnose(self, rows: Rows, outcomes: Outcomes, diagnosis: Diagnosis) -> None:
        """Add to *diagnosis* why some of *rows* are rejected, by their *outcomes*."""
        for status, of_status in self.rejected(rows, outcomes):
            if status.code is Code.ERROR:
                diagnosis.statuses |= dict.fromkeys(of_status.tolist(), status)
                continue
            where = self._nodes.no_rows()
            where[of_status] = True
            diagnosis.verdicts.append(PluginVerdict(status.plugin, Verdict.reject(status, where)))
