"""Room for a pod group by resources alone: arithmetic that says which trials are worth making."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import numpy as np

from berth.kube.objects.resources import Resources
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodTemplate
from berth.scheduler.framework.preemption.victim_units import VictimUnit
from berth.scheduler.framework.verdict import Mask

_PODS: Final = 1
"""What a pod takes of the number of pods that a node allows."""


class Room:
    """How many pods of one kind fit once some units are gone, or are put back.

    It counts resources only, so no group fits that has no room here.
    """

    def __init__(
        self,
        nodes: NodeTable,
        template: PodTemplate,
        *,
        usable: Mask,
        gone: Sequence[VictimUnit],
    ) -> None:
        """Count the room on the rows *usable* as if all units of *gone* were; they are there."""
        asked = template.incoming_requested
        self._names = [name for name in nodes.resources if asked.amount(name) > 0]
        self._asked = (_PODS, *_amounts(asked, self._names))
        self._row_of = dict(nodes.row_of)  # nodes may come and go before the last unit is put back
        self._taken: dict[PodTemplate, tuple[int, ...]] = {}
        index = [nodes.resources[name] for name in self._names]
        free = np.vstack(
            [nodes.allowed_pods - nodes.pod_count, (nodes.allocatable - nodes.requested)[index]]
        )
        leaving = [pod for unit in gone for pod in unit.pods if pod.node_name in self._row_of]
        if leaving:
            rows = np.array([self._row_of[pod.node_name] for pod in leaving], np.intp)
            batch = PodBatch.of(leaving)
            np.add.at(free[0], rows, _PODS)
            for column, name in zip(free[1:], self._names, strict=True):
                np.add.at(column, rows, batch.per_template(partial(_amount, name)))
        room = np.maximum(np.min(free // np.array(self._asked)[:, None], axis=0), 0)
        self._room = np.where(usable, room, 0).tolist()
        self._free = list(zip(*free.tolist(), strict=True))
        self.total = sum(self._room)
        """How many pods fit."""

    def put_back(self, unit: VictimUnit, *, keep: int) -> bool:
        """Put *unit* back on its nodes; False, and it stays away, if fewer than *keep* pods fit."""
        free: dict[int, tuple[int, ...]] = {}
        for pod in unit.pods:
            row = self._row_of.get(pod.node_name)
            if row is not None and self._room[row]:
                before = free.get(row) or self._free[row]
                taken = self._taken_by(pod.template)
                free[row] = tuple([have - take for have, take in zip(before, taken, strict=True)])
        rooms = {row: self._room_in(left) for row, left in free.items()}
        total = self.total - sum(self._room[row] - room for row, room in rooms.items())
        if total < keep:
            return False
        for row, room in rooms.items():
            self._room[row] = room
            self._free[row] = free[row]
        self.total = total
        return True

    def _taken_by(self, template: PodTemplate) -> tuple[int, ...]:
        taken = self._taken.get(template)
        if taken is None:
            taken = (_PODS, *_amounts(template.requested, self._names))
            self._taken[template] = taken
        return taken

    def _room_in(self, free: tuple[int, ...]) -> int:
        return max(min([have // asked for have, asked in zip(free, self._asked, strict=True)]), 0)


def _amount(name: str, template: PodTemplate) -> int:
    return template.requested.amount(name)


def _amounts(resources: Resources, names: Iterable[str]) -> tuple[int, ...]:
    return tuple(resources.amount(name) for name in names)
