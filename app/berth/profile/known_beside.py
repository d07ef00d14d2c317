"""What filters say of nodes beside the pods nominated there, kept from pod to pod of a template.

Of a thousand preemptors that wait for their victims, each changes one node for the next attempt.

Exact: what is known of a row is used only while nothing changes on it, while the same pods are
nominated to it, and while all else that the answers of the filters follow from stays equal.
"""

from collections.abc import Hashable, Iterator
from typing import Final

import numpy as np

from berth.framework.diagnosis import Diagnosis
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo, PodTemplate
from berth.framework.status import Code, Status
from berth.framework.verdict import Ints, Mask, Rows

KEPT: Final = 8
"""Templates that are known at once; at 5,000 nodes each takes 100 KiB."""
FITS: Final = -1


class KnownBeside:
    """What is known for pods of one template, on the rows of one table."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._generation = np.full(nodes.size, -1, np.int64)
        """By row, as of when it was asked about."""
        self._version = np.zeros(nodes.size, np.int64)
        """By row, that of the pods nominated to it then."""
        self._outcome = np.full(nodes.size, FITS, np.int32)
        """By row, FITS or the index of a status."""
        self._statuses: list[Status] = []
        self._index_of: dict[Status, int] = {}

    def is_known(self, rows: Rows, version: Ints) -> Mask:
        """Say which of *rows* need not be asked about; *version* is that of their pods now."""
        same_load = self._generation[rows] == self._nodes.generation[rows]
        known: Mask = same_load & (self._version[rows] == version[rows])
        return known

    def learn(self, rows: Rows, found: Diagnosis, version: Ints) -> None:
        """Take in what was *found* about *rows*, by position, beside pods of this *version*."""
        self._generation[rows] = self._nodes.generation[rows]
        self._version[rows] = version[rows]
        self._outcome[rows] = FITS
        for status, places in found.rows_by_status():
            index = self._index_of.get(status)
            if index is None:
                index = self._index_of[status] = len(self._statuses)
                self._statuses.append(status)
            self._outcome[rows[places]] = index
            if status.code is Code.ERROR:
                self._generation[rows[places]] = -1  # the next pod may fare better

    def statuses(self, rows: Rows) -> Iterator[tuple[Status | None, Rows]]:
        """Yield why those of *rows* are rejected that are alike, and which; None: they fit."""
        outcomes = self._outcome[rows]
        for index in np.unique(outcomes).tolist():
            yield None if index == FITS else self._statuses[index], rows[outcomes == index]


class KnownTemplatesBeside:
    """What is known for the templates that were tried last."""

    def __init__(self) -> None:
        self._known: dict[PodTemplate, tuple[Hashable, KnownBeside]] = {}

    def of(self, pod: PodInfo, nodes: NodeTable, follows_from: Hashable) -> KnownBeside:
        """Return what is known for *pod*; nothing yet unless *follows_from* is what it was.

        It is what the answers follow from, beside the template of *pod* and each row.
        """
        value = follows_from, nodes, nodes.node_generation
        kept = self._known.pop(pod.template, None)
        known = kept[1] if kept is not None and kept[0] == value else KnownBeside(nodes)
        if len(self._known) >= KEPT:
            del self._known[next(iter(self._known))]
        self._known[pod.template] = value, known
        return known
