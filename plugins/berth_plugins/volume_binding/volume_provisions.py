"""Places where a new volume can be made for a claim (spec §5.15, provision check)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from berth.kube.objects.quantity import parse, value
from berth.kube.objects.selectors import (
    Operator,
    Requirement,
    check_requirement,
    compile_selector,
)
from berth.kube.objects.storage import CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints, Mask
from berth_plugins.volume_binding.label_rows import rows_meeting

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_NONE: Final = -1


class Provisioning(NamedTuple):
    """Where a claim cannot have a new volume; elsewhere it can."""

    error: str = ""
    """Why it cannot be told for any row."""
    impossible: Mask | None = None
    """The rows where the class makes none; None: nowhere."""
    too_small: Mask | None = None
    """Of the other rows, those without room for it."""


class VolumeProvisions:
    """Looks at classes, drivers and the capacity that these report."""

    def __init__(self, listers: Listers) -> None:
        self._classes = listers.storage_classes
        self._drivers = listers.csi_drivers
        self._capacities: dict[str, ClassCapacities] = {}
        listers.csi_storage_capacities.follow(self._change_capacity)

    def check(self, claim: PersistentVolumeClaim, nodes: NodeTable) -> Provisioning:
        """Say where a volume for *claim* cannot be made."""
        name = claim.storage_class
        if not name:
            return Provisioning(f'no class for claim "{claim.metadata.key}"')
        storage_class = self._classes.get("", name)
        if storage_class is None:
            return Provisioning(f'failed to find storage class "{name}"')
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return Provisioning(impossible=np.ones(nodes.size, bool))
        return Provisioning(
            impossible=~rows_allowed(storage_class, nodes),
            too_small=self._rows_too_small(claim, storage_class, nodes),
        )

    def capacities(self, claim: PersistentVolumeClaim, nodes: NodeTable) -> Ints | None:
        """Return per row how many bytes there are where *claim* would get a volume, -1 if unknown.

        That is ``capacity`` of the report by which the row is not too small; of several the most,
        where kube-scheduler takes any. None if the driver reports nothing.
        """
        storage_class = self._classes.get("", claim.storage_class)
        if storage_class is None or claim.request is None or not self._reports(storage_class):
            return None
        reports = self._capacities.get(storage_class.metadata.name, ClassCapacities())
        return reports.capacities(nodes, at_least=value(parse(claim.request)))

    def _rows_too_small(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, nodes: NodeTable
    ) -> Mask | None:
        if claim.request is None or not self._reports(storage_class):
            return None
        reports = self._capacities.get(storage_class.metadata.name, ClassCapacities())
        mask: Mask = reports.largest_volumes(nodes) < value(parse(claim.request))
        return mask

    def _reports(self, storage_class: StorageClass) -> bool:
        """Whether the driver of *storage_class* reports capacity."""
        driver = self._drivers.get("", storage_class.provisioner)
        return driver is not None and driver.spec.storage_capacity

    def _change_capacity(
        self, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None
    ) -> None:
        if old is not None:
            self._capacities[old.storage_class_name].remove(old)
        if new is not None:
            self._capacities.setdefault(new.storage_class_name, ClassCapacities()).add(new)


# Topology.


def rows_allowed(storage_class: StorageClass, nodes: NodeTable) -> Mask:
    """Return the rows that ``allowedTopologies`` leaves: all if it is empty. Not to be changed."""
    terms = topology_terms(storage_class)
    if terms is None:
        return np.ones(nodes.size, bool)

    def build() -> Mask:
        allowed = nodes.no_rows()
        for term in terms:
            allowed[rows_meeting(nodes, term)] = True
        return allowed

    return nodes.kept(("allowed topologies", terms), build)


def topology_terms(storage_class: StorageClass) -> tuple[tuple[Requirement, ...], ...] | None:
    """Compile ``allowedTopologies``; None if there are none. Terms that cannot be match nothing."""
    if not storage_class.allowed_topologies:
        return None
    terms = []
    for term in storage_class.allowed_topologies:
        requirements = tuple(
            Requirement(written.key, Operator.IN, written.values)
            for written in term.match_label_expressions
        )
        if requirements and _are_valid(requirements):
            terms.append(requirements)
    return tuple(terms)


def _are_valid(requirements: Iterable[Requirement]) -> bool:
    try:
        for requirement in requirements:
            check_requirement(requirement)
    except ValueError:
        return False
    return True


# Capacity.


class Room(NamedTuple):
    """What a driver reports for a part of a cluster, in bytes."""

    largest_volume: int
    capacity: int
    """All that is left, -1 if the driver only tells the largest volume."""


class ClassCapacities:
    """How large a new volume of one class may be, by what drivers report for parts of a cluster.

    Most reports are about one label, often one per node; those are looked up by its value.
    """

    def __init__(self) -> None:
        self._by_label: dict[str, dict[str | None, dict[str, Room]]] = {}
        """Label key, label value, key of the report."""
        self._others: dict[str, tuple[tuple[Requirement, ...], Room]] = {}
        """By the key of the report."""

    def add(self, report: CSIStorageCapacity) -> None:
        """Take in a report; one without nodes or without a size means no room."""
        requirements, size = _nodes_of(report), report.largest_volume
        if requirements is None or size is None:
            return
        told = report.capacity
        room = Room(size, _NONE if told is None else value(parse(told)))
        key = report.metadata.key
        label = _only_label(requirements)
        if label is None:
            self._others[key] = (requirements, room)
        else:
            by_value = self._by_label.setdefault(label.key, {})
            for label_value in label.values:
                by_value.setdefault(label_value, {})[key] = room

    def remove(self, report: CSIStorageCapacity) -> None:
        """Forget a report that was added."""
        key = report.metadata.key
        self._others.pop(key, None)
        label = _only_label(_nodes_of(report) or ())
        if label is None:
            return
        by_value = self._by_label.get(label.key, {})
        for label_value in label.values:
            reports = by_value.get(label_value, {})
            reports.pop(key, None)
            if not reports:
                by_value.pop(label_value, None)
        if not by_value:
            self._by_label.pop(label.key, None)

    def largest_volumes(self, nodes: NodeTable) -> Ints:
        """Return the size in bytes per row, -1 where there is no room at all."""
        return self._most(nodes, lambda room: room.largest_volume)

    def capacities(self, nodes: NodeTable, *, at_least: int) -> Ints:
        """Return all that is left per row where a volume of *at_least* bytes fits, else -1."""
        return self._most(
            nodes, lambda room: room.capacity if room.largest_volume >= at_least else _NONE
        )

    def _most(self, nodes: NodeTable, of: Callable[[Room], int]) -> Ints:
        """Return the most of any report for each row, -1 where there is none."""
        largest = np.full(nodes.size, _NONE, np.int64)
        for key, by_value in self._by_label.items():
            ids = nodes.labels.ids(key)
            sizes = [
                max(map(of, by_value.get(label_value, {}).values()), default=_NONE)
                for label_value in nodes.labels.values(key)
            ]
            np.maximum(largest, np.array(sizes, np.int64)[ids], out=largest)
        for requirements, room in self._others.values():
            rows = rows_meeting(nodes, requirements)
            largest[rows] = np.maximum(largest[rows], of(room))
        return largest


def _nodes_of(report: CSIStorageCapacity) -> tuple[Requirement, ...] | None:
    """Return what the labels of the nodes that can use the storage meet; None if none can."""
    if report.node_topology is None:
        return None
    try:
        return compile_selector(report.node_topology).requirements
    except ValueError:
        return None


def _only_label(requirements: Sequence[Requirement]) -> Requirement | None:
    """Return the requirement if it is one alone, that names values."""
    if len(requirements) == 1 and requirements[0].operator is Operator.IN:
        return requirements[0]
    return None
