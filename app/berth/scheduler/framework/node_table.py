"""The cluster as a table: one row per node, one NumPy column per thing that plugins look at."""

import copy
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.node import Node, Taint
from berth.kube.objects.resources import node_allocatable
from berth.scheduler.framework.image_states import ImageStates
from berth.scheduler.framework.label_columns import LabelColumns
from berth.scheduler.framework.large_loads import LargeLoads
from berth.scheduler.framework.node_columns import NodeColumns
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_counters import PodCounters
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.pods_of_part import PodsOfPart
from berth.scheduler.framework.pods_of_rows import PodsByUid, PodsOfRows
from berth.scheduler.framework.port_index import PortIndex
from berth.scheduler.framework.row_memo import Columns, Formula, RowMemo
from berth.scheduler.framework.value_ids import ValueIds
from berth.scheduler.framework.verdict import Ints, Mask

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
"""Indexes of the resources every table has; the first two also of ``non_zero_requested``."""

_NATIVE = ("cpu", "memory", "ephemeral-storage")
_FIRST_CAPACITY = 16
_MANY = 8
"""From so many pods on arrays are worth making."""
_MOST_KEPT = 1_000
"""Answers kept at once; at 5,000 nodes a mask is 5 kB and a column of scores 40 kB."""

T = TypeVar("T")

TaintSet = tuple[Taint, ...]
RowIndex = Sequence[int] | NDArray[np.intp]
"""Rows, one for each of something; a row may come several times."""


class NodeTable:
    """All nodes, or some rows of another table, as columns.

    Rows are slots: stable while a node exists, reused after. Columns cover all slots ever used,
    dead ones too; ``exists`` tells them apart. Plugins read, never write. The live table is
    written by the cache only, synchronously, so within one attempt it does not move.

    Units: CPU in milli-cores, memory and storage in bytes, everything else in the resource's own
    unit; int64 all the way. Sums beyond it are the largest int64.
    """

    def __init__(self) -> None:
        self.size = 0
        """How many slots the columns cover."""
        self.order: NDArray[np.intp] = np.empty(0, np.intp)
        """Existing rows in zone-round-robin order (spec §4.2); kept by the cache."""
        self.nodes: list[Node | None] = []
        self._names: list[str] = []
        self.pods: PodsOfRows | PodsOfPart = PodsOfRows()
        """Per row, the pods on it by uid, assumed ones included, in order of arrival."""
        self.resources: dict[str, int] = {name: i for i, name in enumerate(_NATIVE)}
        """Resource name to its index in ``allocatable`` and ``requested``."""
        self.last_generation = 0
        self.node_generation = 0
        """Bumped whenever a node comes, goes or changes, whatever pods do."""
        self._last_changed, self._last_loaded = LastChanges.none(), LastChanges.none()
        self.labels = LabelColumns(self.nodes)
        self.ports = PortIndex()
        self.images = ImageStates()
        self.pod_counters = PodCounters(self.pods)
        self._taint_sets: ValueIds[TaintSet] = ValueIds(())
        self._shares_taint_sets = False
        self._free: list[int] = []
        self._kept: dict[Hashable, Any] = {}
        self._row_memo = RowMemo()
        self._large = LargeLoads()
        self._columns = NodeColumns.zeros(_FIRST_CAPACITY, resources=len(self.resources))

    # Columns. Each is a view of the slots in use.

    @property
    def exists(self) -> Mask:
        """The rows that hold a node; the others are free slots."""
        return self._columns.exists[: self.size]

    @property
    def unschedulable(self) -> Mask:
        """``spec.unschedulable``."""
        return self._columns.unschedulable[: self.size]

    @property
    def taint_set(self) -> NDArray[np.intp]:
        """Index of the node's taints in ``taint_sets``."""
        return self._columns.taint_set[: self.size]

    @property
    def taint_sets(self) -> Sequence[TaintSet]:
        """Distinct taint lists, the first being empty, as are those that no node has any more."""
        return self._taint_sets.values

    @property
    def allocatable(self) -> Ints:
        """Shape (resources, slots)."""
        return self._columns.allocatable[:, : self.size]

    @property
    def requested(self) -> Ints:
        """Sum of the effective requests of the pods on each node; shape (resources, slots)."""
        return self._columns.requested[:, : self.size]

    @property
    def non_zero_requested(self) -> Ints:
        """CPU and memory with defaults for pods that request none; shape (2, slots)."""
        return self._columns.non_zero_requested[:, : self.size]

    @property
    def free(self) -> Ints:
        """How many pods more each node takes, then what is left of each resource.

        That is ``allowed_pods - pod_count`` and ``allocatable - requested``; shape
        (1 + resources, slots). Free slots lack neither pods nor native resources.
        """
        return self._columns.free[:, : self.size]

    @property
    def allowed_pods(self) -> Ints:
        """How many pods each node takes."""
        return self._columns.allowed_pods[: self.size]

    @property
    def pod_count(self) -> Ints:
        """How many pods are on each node, assumed ones included."""
        return self._columns.pod_count[: self.size]

    @property
    def generation(self) -> Ints:
        """Bumped on every change of a row; values are unique over the life of the table."""
        return self._columns.generation[: self.size]

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Node name to row; of a part, made when first asked for."""
        return {name: row for row, name in enumerate(self._names) if name}

    def __len__(self) -> int:
        """The number of nodes, not of slots."""
        return len(self.row_of)

    def name(self, row: int) -> str:
        """Return the name of the node in *row*, which must hold one."""
        name = self._names[row]
        assert name, f"row {row} is empty"
        return name

    def names(self, rows: Iterable[int]) -> Iterator[str]:
        """Yield the names of the nodes in *rows*."""
        return map(self._names.__getitem__, rows)

    def no_rows(self) -> Mask:
        """Return a new mask in which no row is marked."""
        return np.zeros(self.size, bool)

    def rows_named(self, names: Iterable[str]) -> Mask:
        """Return a mask of the nodes with these names; unknown names are ignored."""
        mask = self.no_rows()
        mask[[self.row_of[name] for name in names if name in self.row_of]] = True
        return mask

    def kept(self, key: Hashable, build: Callable[[], T]) -> T:
        """Return what *build* made for *key*, until a node comes, goes or changes.

        For what follows from nodes alone, whatever pods they run. Not to be changed by anybody; an
        array cannot be. *key* must say all that the answer depends on beside the nodes.
        """
        try:
            value: T = self._kept[key]
        except KeyError:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            value = self._kept[key] = build()
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        return value

    # Changes. Only the owner of the table calls these.

    def _forget_kept(self) -> None:
        """Forget what follows from nodes: one comes, goes or changes."""
        self.node_generation += 1
        self._kept.clear()
        self.pod_counters.forget_domains()

    def add_node(self, node: Node, pods: dict[str, PodInfo] | None = None) -> int:
        """Give *node* a row, with *pods* (by uid) already on it; return the row."""
        if self._free:
            row = self._free.pop()
        else:
            row = self.size
            if row == self._columns.slots:
                columns = self._columns
                self._columns = columns.grown(2 * row, resources=len(columns.allocatable))
            self.size += 1
            self.nodes.append(None)
            self._names.append("")
            self.pods.append({})
            self.labels.add_slot()
        self.row_of[node.metadata.name] = row
        self._names[row] = node.metadata.name
        self.pods[row] = {} if pods is None else pods
        self._columns.exists[row] = True
        self.set_node(row, node)
        for pod in self.pods[row].values():
            self._count(row, pod, 1)
        return row

    def set_node(self, row: int, node: Node) -> None:
        """Take over a new version of the node in *row*."""
        old = self.nodes[row]
        self.nodes[row] = node
        if old is not None and _facts(old) == _facts(node):
            return
        self._forget_kept()
        capacity = node_allocatable(node)
        columns = self._columns
        columns.unschedulable[row] = node.spec.unschedulable
        self._set_taints(row, node.spec.taints)
        columns.allowed_pods[row] = max(capacity.allowed_pods, 0)
        columns.allocatable[:, row] = 0
        columns.allocatable[CPU, row] = capacity.milli_cpu
        columns.allocatable[MEMORY, row] = capacity.memory
        columns.allocatable[EPHEMERAL_STORAGE, row] = capacity.ephemeral_storage
        for name, amount in capacity.scalars.items():
            index = self._resource_index(name)  # may replace the columns
            self._columns.allocatable[index, row] = amount
        self._columns.set_free(row)
        self.labels.set_row(row, node.metadata.labels)
        self.images.set_row(row, old.status.images if old else (), node.status.images)
        self._touch(row)

    def remove_node(self, row: int) -> PodsByUid:
        """Free *row*; return its pods, which go with it."""
        node = self.nodes[row]
        assert node is not None, f"row {row} is empty"
        pods = self.pods.to_change(row)
        for pod in pods.values():
            self.ports.remove(row, pod.template.host_ports)
            self.pod_counters.remove(row, pod)
        self._forget_kept()
        self.images.set_row(row, node.status.images, ())
        self.labels.set_row(row, {})
        self._set_taints(row, ())
        del self.row_of[node.metadata.name]
        self.nodes[row], self._names[row] = None, ""
        self.pods[row] = {}
        self._columns.clear(row)
        self._large.forget(row)
        self._touch(row)
        self._free.append(row)
        return pods

    def add_pod(self, row: int, pod: PodInfo) -> None:
        """Count *pod* on the node in *row*."""
        self.pods.to_change(row)[pod.uid] = pod
        self._count(row, pod, 1)

    def update_pod(self, row: int, pod: PodInfo) -> None:
        """Take over a new version of a pod on the node in *row*; KeyError if it is not there.

        Most updates are of the status, or say what was assumed; then nothing is counted again. An
        API server gives labels to a pod as it binds it (KEP-4742): then only these are.
        """
        pods = self.pods.to_change(row)
        known = pods[pod.uid]
        pods[pod.uid] = pod
        self._touch(row)
        if known.template is pod.template and known.is_terminating == pod.is_terminating:
            return
        if known.template.load == pod.template.load:
            self.pod_counters.remove(row, known)
            self.pod_counters.add(row, pod)
            return
        self._count(row, known, -1)
        self._count(row, pod, 1)

    def remove_pod(self, row: int, pod: PodInfo) -> None:
        """Take *pod* off the node in *row*; KeyError if it is not there."""
        known = self.pods.to_change(row).pop(pod.uid)
        self._count(row, known, -1)

    def add_pods(self, rows: RowIndex, pods: Sequence[PodInfo]) -> None:
        """Count each of *pods* on its row, as :meth:`add_pod` would one after the other."""
        self._change_pods(rows, pods, 1)

    def remove_pods(self, rows: RowIndex, pods: Sequence[PodInfo]) -> None:
        """Take each of *pods* off its row, as :meth:`remove_pod` would one after the other.

        KeyError if one is not there; of a part, once somebody looks at its pods.
        """
        self._change_pods(rows, pods, -1)

    def _change_pods(self, rows: RowIndex, pods: Sequence[PodInfo], sign: int) -> None:
        """Do it at a fraction of the cost of one by one when they are many."""
        index = np.asarray(rows, np.intp)
        assert len(index) == len(pods), "one row for each pod"
        of_rows = index.tolist()
        pods = self.pods.change(of_rows, pods, sign=sign)
        if len(pods) >= _MANY and not self._large:
            batch = PodBatch.of(pods)
            if not any(template.is_large for template in batch.templates):
                self._count_all(index, batch, sign)
                return
        for row, pod in zip(of_rows, pods, strict=True):
            self._count(row, pod, sign)

    def _count_all(self, index: NDArray[np.intp], pods: PodBatch, sign: int) -> None:
        """Count each pod as :meth:`_count` does."""
        # Column by column: in one dimension ufunc.at is several times faster.
        for columns, amounts in (
            (self._columns.requested, pods.native_requests),
            (self._columns.non_zero_requested, pods.non_zero_requests),
        ):
            for column, amount in zip(columns, amounts * sign, strict=False):
                np.add.at(column, index, amount)
        np.add.at(self._columns.pod_count, index, sign)
        self._columns.set_free(index)
        special = pods.is_special
        if special.any():
            for row, pod in zip(index[special].tolist(), pods.take(special), strict=True):
                self._count_special(row, pod.template, sign)
        if self.pod_counters.is_counting:
            if sign > 0:
                self.pod_counters.add_all(index.tolist(), pods)
            else:
                for row, pod in zip(index.tolist(), pods, strict=True):
                    self.pod_counters.remove(row, pod)
        self._columns.generation[index] = np.arange(len(index)) + (self.last_generation + 1)
        self.last_generation += len(index)
        self._last_changed.clear()
        self._last_loaded.clear()

    def _count(self, row: int, pod: PodInfo, sign: int) -> None:
        template = pod.template
        if template.is_large or row in self._large:
            indexes = [self._resource_index(name) for name in template.requested.scalars]
            self._large.count(row, template, sign, self._columns, indexes)
            self._count_ports(row, template, sign)
        else:
            self._columns.count_pod(row, template, sign)
            self._count_special(row, template, sign)
        (self.pod_counters.add if sign > 0 else self.pod_counters.remove)(row, pod)
        self._touch(row)
        self._last_loaded.append((self.last_generation, row))

    def _count_special(self, row: int, template: PodTemplate, sign: int) -> None:
        """Count what few pods have: other resources than the native ones, and host ports."""
        for name, amount in template.requested.scalars.items():
            index = self._resource_index(name)
            self._columns.requested[index : index + 1, row] += sign * amount
            self._columns.free[index + 1 : index + 2, row] -= sign * amount
        self._count_ports(row, template, sign)

    def _count_ports(self, row: int, template: PodTemplate, sign: int) -> None:
        if template.host_ports:
            change = self.ports.add if sign > 0 else self.ports.remove
            change(row, template.host_ports)

    def _touch(self, row: int) -> None:
        self.last_generation += 1
        self._columns.generation[row] = self.last_generation
        self._last_changed.append((self.last_generation, row))

    def rows_changed_since(self, generation: int) -> list[int]:
        """Return the rows whose generation is higher, in ascending order."""
        changed = self._last_changed.since(generation)
        if changed is None:
            changed = np.flatnonzero(self.generation > generation).tolist()
        return changed

    def rows_loaded_since(self, generation: int) -> list[int]:
        """Return those of them on which pods came or went, in ascending order; maybe some more."""
        loaded = self._last_loaded.since(generation)
        return self.rows_changed_since(generation) if loaded is None else loaded

    def _resource_index(self, name: str) -> int:
        index = self.resources.get(name)
        if index is None:
            index = self.resources[name] = len(self.resources)
        if index >= len(self._columns.allocatable):
            # With room for some more: a cluster may have a resource for each of its nodes.
            columns = self._columns
            self._columns = columns.grown(columns.slots, resources=index + 1 + index // 4)
        return index

    def _set_taints(self, row: int, taints: TaintSet) -> None:
        if self._shares_taint_sets:
            self._taint_sets, self._shares_taint_sets = self._taint_sets.copy(), False
        of_row = self._columns.taint_set
        of_row[row] = self._taint_sets.exchange(int(of_row[row]), taints)

    def per_row(self, key: Hashable, formula: Formula) -> Columns:
        """Return columns with one value per slot, computed again only for rows that have changed.

        See :meth:`berth.scheduler.framework.row_memo.RowMemo.columns`.
        """
        return self._row_memo.columns(
            key,
            formula,
            rows=self.size,
            last_generation=self.last_generation,
            changed_since=self.rows_changed_since,
        )

    # Parts of the table.

    def take(self, rows: Iterable[int]) -> "NodeTable":
        """Return a table of *rows* of this one, whose pods may be added and removed freely.

        Preemption and nominated pods ask their "what if" of such tables. What nodes are (labels,
        taints, capacity) is shared or copied; what pods take is copied. Valid within the attempt.
        """
        index = np.fromiter(rows, np.intp)
        part = object.__new__(NodeTable)
        part.size = len(index)
        part._columns, part._large = self._columns.take(index), self._large.take(index)
        part.order = np.arange(part.size)
        some = index.tolist()
        part.nodes = [self.nodes[row] for row in some]
        part._names = [self._names[row] for row in some]
        part.pods = PodsOfPart(self.pods, some)
        part.resources = dict(self.resources)
        part._taint_sets, part._shares_taint_sets = self._taint_sets, True
        part.last_generation = self.last_generation
        part.node_generation = self.node_generation
        part._last_changed, part._last_loaded = LastChanges.none(), LastChanges.none()
        part.labels = self.labels.take(index, part.nodes)
        part.ports = self.ports.take(index)
        part.images = self.images.take(index)
        part.pod_counters = PodCounters(part.pods)
        part._free, part._kept, part._row_memo = [], {}, RowMemo()
        return part

    def with_replicas(self, template: PodTemplate, rows: Ints, counts: Ints) -> "NodeTable":
        """Return *rows*, each with so many more pods of *template*, as far as columns go.

        A row may come several times. Of plugins only those may be asked that go by load: names,
        labels, ports and the pods themselves are not those of *rows*.
        """
        part = copy.copy(self)
        part.size = len(rows)
        part._columns = self._columns.take(rows)
        part._columns.add_replicas(template, counts, self.resources)
        part._kept, part._row_memo = {}, RowMemo()
        return part

    def load(self, row: int) -> bytes:
        """Return what the pods on *row* take, to be compared: all that plugins go by as "load"."""
        return self._columns.load(row)

    def loads(self) -> Ints:
        """Return by row what :meth:`load` has the bytes of; the last is the number of pods."""
        return self._columns.loads(self.size)

    def detached(self) -> "NodeTable":
        """Return a copy of a whole table that stays as it is when this one changes.

        But for the sizes of images. Rows are those of this table. Pods are copied and counted again
        only where they change, here or there.
        """
        twin, generation = copy.copy(self), self.last_generation
        twin._columns, twin._large = self._columns.copy(), self._large.copy()
        twin.order, twin.row_of = self.order.copy(), self.row_of.copy()
        twin.nodes, twin._names = self.nodes.copy(), self._names.copy()
        twin.pods, twin.resources = self.pods.copy(), self.resources.copy()
        twin._last_changed, twin._last_loaded = self._last_changed.copy(), self._last_loaded.copy()
        twin.labels = self.labels.copy(twin.nodes)
        twin.ports = self.ports.copy()
        twin.images = self.images.take(np.arange(self.size))
        twin.pod_counters = PodCounters(
            twin.pods,
            counted_in=self.pod_counters,
            is_same=lambda: self.last_generation == generation,
        )
        twin._taint_sets, twin._shares_taint_sets = self._taint_sets.copy(), False
        twin._free, twin._kept, twin._row_memo = self._free.copy(), {}, RowMemo()
        return twin

    def resource_rows(self, name: str) -> tuple[Ints, Ints] | None:
        """Return (allocatable, requested) of one resource, or None if no node or pod names it."""
        index, allocatable = self.resources.get(name), self.allocatable
        if index is None or index >= len(allocatable):
            return None
        return allocatable[index], self.requested[index]


def _facts(node: Node) -> tuple[object, ...]:
    """Return what of a node plugins go by; heartbeats change conditions."""
    status = node.status
    return (
        node.spec,
        node.metadata.labels,
        status.allocatable,
        status.images,
        status.declared_features,
    )


# Rows of a table that have changed lately.


MOST: Final = 256
"""How many changes are remembered."""


class LastChanges(deque[tuple[int, int]]):
    """Generations, in ascending order, each with the row that changed then."""

    @classmethod
    def none(cls) -> "LastChanges":
        return cls(maxlen=MOST)

    def since(self, generation: int) -> list[int] | None:
        """Return the rows of later changes, in ascending order; None: not all are remembered."""
        rows = set[int]()
        for changed, row in reversed(self):
            if changed <= generation:
                return sorted(rows)
            rows.add(row)
        return None
