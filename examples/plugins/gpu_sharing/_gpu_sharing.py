"""What the policies of this folder share: which GPUs a node has, and how much of each is left.

A node offers thousandths of GPUs as ``example.com/gpu-milli``, 1000 for each. A pod that requests
less than 1000 shares one GPU; any other gets whole ones, so its request is a multiple of 1000.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.plugin import (
    CPU,
    SKIP,
    CycleState,
    FilterPlugin,
    Handle,
    Ints,
    LabPlugin,
    Listers,
    NodeTable,
    Plugin,
    PluginArgs,
    PodInfo,
    PreFilterPlugin,
    ReservePlugin,
    Status,
    Verdict,
)

from ._fragmentation import MODEL_LABEL, Fragmentation, PodKind

RESOURCE: Final = "example.com/gpu-milli"
INDEX_ANNOTATION: Final = "example.com/gpu-index"
"""Which GPUs of its node a pod has, as in ``0,1``; of pods that were placed by another process."""
WHOLE: Final = 1000
SHARING: Final = 0
"""The class of pods that share a GPU; that of others is how many GPUs they have."""
NOT_ENOUGH: Final = Status.unschedulable("node(s) didn't have enough free GPUs")


class Demand(NamedTuple):
    """What a pod wants: so many GPUs, and so much of each."""

    gpus: int
    milli: int

    @classmethod
    def of(cls, pod: PodInfo) -> "Demand":
        total = pod.template.requested.scalars.get(RESOURCE, 0)
        return cls(int(total > 0), total) if total < WHOLE else cls(total // WHOLE, WHOLE)

    @property
    def total(self) -> int:
        return self.gpus * self.milli

    @property
    def class_(self) -> int:
        return self.gpus if self.milli == WHOLE else SHARING


class Gpus(NamedTuple):
    """The GPUs of a table of nodes."""

    left: Ints
    """Thousandths left of each GPU; shape (rows, GPUs), 0 for GPUs that a node does not have."""
    number: Ints
    """How many GPUs each node has."""
    classes: Ints
    """Of the pods with GPUs on each node, as a set of bits."""


class GpuSharingArgs(PluginArgs):
    """The sizes that scores are relative to."""

    max_cpu_milli: int = 128_000
    max_gpu_milli: int = 8_000


class GivenGpus(dict[str, tuple[int, ...]]):
    """By UID of a pod, which GPUs of its node it has; the plugins of a scheduler share it."""

    def __init__(self, _listers: Listers) -> None:
        super().__init__()


class GpuColumns(Plugin):
    """Knows the GPUs of all nodes."""

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.handle: Handle = handle
        self._given = handle.listers.shared(GivenGpus)
        self._gpus = Gpus(np.zeros((0, 0), np.int64), *np.zeros((2, 0), np.int64))
        self._generation = -1

    def gpus(self, nodes: NodeTable) -> Gpus:
        """Return the GPUs of *nodes*."""
        if nodes is not self.handle.nodes:
            return self._read(nodes, range(nodes.size))
        if self._generation != nodes.last_generation:
            changed = nodes.rows_changed_since(self._generation)
            read = self._read(nodes, changed)
            if (
                read.left.shape[1] != self._gpus.left.shape[1]
                or len(self._gpus.number) != nodes.size
            ):
                self._gpus = self._read(nodes, range(nodes.size))
            else:
                for column, values in zip(self._gpus, read, strict=True):
                    column[changed] = values
            self._generation = nodes.last_generation
        return self._gpus

    def cpu_left(self, nodes: NodeTable) -> Ints:
        left: Ints = nodes.allocatable[CPU] - nodes.requested[CPU]
        return left

    def _read(self, nodes: NodeTable, rows: Sequence[int]) -> Gpus:
        resource = nodes.resource_rows(RESOURCE)
        counts = np.zeros(nodes.size, np.int64) if resource is None else resource[0] // WHOLE
        width = int(counts.max(initial=0))
        left = np.where(np.arange(width) < counts[rows, np.newaxis], WHOLE, 0)
        classes = np.zeros(len(rows), np.int64)
        for at, row in enumerate(rows):
            for pod in nodes.pods[row].values():
                given = [gpu for gpu in self._given_to(pod) if gpu < width]
                if given:
                    demand = Demand.of(pod)
                    left[at, given] -= demand.milli
                    classes[at] |= 1 << demand.class_
        return Gpus(left, counts[rows], classes)

    def _given_to(self, pod: PodInfo) -> Sequence[int]:
        """Return the GPUs of a pod; none while it is about to get some."""
        given = self._given.get(pod.uid)
        if given is None:
            text = pod.pod.metadata.annotations.get(INDEX_ANNOTATION, "")
            return [int(part) for part in text.split(",") if part.strip().isdecimal()]
        return given


class GpuSharing(GpuColumns, PreFilterPlugin, FilterPlugin, ReservePlugin, LabPlugin):
    """Filters by single GPUs, and chooses those of a pod when it has a node."""

    ARGS = GpuSharingArgs

    def __init__(self, args: GpuSharingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args: GpuSharingArgs = args
        self._fragmentation: Fragmentation | None = None
        self._num_learned: int | None = None
        """From how many running pods; None: from a workload."""

    # The framework's questions.

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        total = pod.template.requested.scalars.get(RESOURCE, 0)
        if not total:
            return SKIP
        if total > WHOLE and total % WHOLE:
            return Status.unresolvable(f"{RESOURCE}: {total} is no multiple of {WHOLE}")
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        demand = Demand.of(pod)
        fitting = np.count_nonzero(self.gpus(nodes).left >= demand.milli, axis=1)
        return Verdict.reject(NOT_ENOUGH, where=fitting < demand.gpus)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Choose the GPUs of *pod*, unless another policy of the profile has: its choice stands."""
        demand = Demand.of(pod)
        if demand.gpus and pod.uid not in self._given:
            row = self.handle.nodes.row_of[node_name]
            left = self.gpus(self.handle.nodes).left[row]
            chosen = self.choose(state, pod, row, left)
            self._given[pod.uid] = tuple(int(gpu) for gpu in chosen)
            left[list(chosen)] -= demand.milli
            self._gpus.classes[row] |= 1 << demand.class_
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._given.pop(pod.uid, None)
        self._generation = -1

    # For policies.

    def choose(self, state: CycleState, pod: PodInfo, row: int, left: Ints) -> Sequence[int]:
        """Return which GPUs of the node in *row* the pod gets: by default the tightest fit."""
        return tightest(Demand.of(pod), left)

    # The lab's.

    def learn(self, pods: Iterable[PodInfo]) -> None:
        """Take the typical pods of a workload to measure fragmentation by."""
        self._fragmentation = Fragmentation.of(kind_of(pod) for pod in pods)
        self._num_learned = None

    @property
    def fragmentation(self) -> Fragmentation:
        """By the typical pods of a workload, or otherwise of those that run.

        These are looked at again once there are twice as many, or half as many.
        """
        if self._fragmentation is None or self._num_learned is not None:
            number = int(self.handle.nodes.pod_count.sum())
            before = self._num_learned
            if before is None or not before // 2 <= number <= 2 * before:
                running = (pod for pods in self.handle.nodes.pods for pod in pods.values())
                self._fragmentation = Fragmentation.of(kind_of(pod) for pod in running)
                self._num_learned = number
        assert self._fragmentation is not None
        return self._fragmentation

    def measure(self) -> Mapping[str, float]:
        """Tell how much of the idle GPUs, and of all, is of no use to typical pods, in percent."""
        nodes = self.handle.nodes
        gpus = self.gpus(nodes)
        fragmented = self.fragmentation.total(nodes, self.cpu_left(nodes), gpus.left)
        all_, idle = int(gpus.number.sum()) * WHOLE, int(gpus.left.sum())
        return {
            "fragmentation of idle GPUs": 100 * fragmented / max(idle, 1),
            "fragmentation of all GPUs": 100 * fragmented / max(all_, 1),
        }


def tightest(demand: Demand, left: NDArray[np.int64]) -> Sequence[int]:
    """Return the GPUs with the least left that is enough, those of lowest index first."""
    enough = np.flatnonzero(left >= demand.milli)
    chosen: list[int] = enough[np.argsort(left[enough], kind="stable")][: demand.gpus].tolist()
    return chosen


def kind_of(pod: PodInfo) -> PodKind:
    demand = Demand.of(pod)
    cpu = pod.template.requested.milli_cpu
    return PodKind(cpu, demand.milli, demand.gpus, models(pod) if demand.gpus else ())


def models(pod: PodInfo) -> tuple[str, ...]:
    """Return the models that *pod* asks for by node affinity; none: any will do."""
    affinity = pod.pod.spec.affinity
    required = affinity and affinity.node_affinity and affinity.node_affinity.required
    return tuple(
        value
        for term in (required.node_selector_terms if required else ())
        for expression in term.match_expressions
        if expression.key == MODEL_LABEL and expression.operator == "In"
        for value in expression.values
    )
