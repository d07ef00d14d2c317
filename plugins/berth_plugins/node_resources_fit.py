"""NodeResourcesFit: a pod goes where what it requests is left, rather to the emptier nodes."""

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Final, Literal

import numpy as np
from pydantic import BaseModel, field_validator, model_validator

from berth.kube.objects import resources
from berth.kube.objects.devices import DeviceClass
from berth.kube.objects.names import is_qualified_name
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.resources import Resources, is_extended
from berth.scheduler.framework.change import ChangeKind, Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.deferred_resize import RESIZES_PREEMPT
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintIndex,
    QueueingHint,
)
from berth.scheduler.framework.explanation import ExplainsColumns, Objection, SummingUp, SumsUp
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    Input,
    PlacementScorePlugin,
    PluginArgs,
    PreFilterPlugin,
    PreScorePlugin,
    Scores,
)
from berth.scheduler.framework.key_index import Choices
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import PodGroupPlacement
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.single_rows import FiltersRows, ScoresRows
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import PASS, Ints, Mask, Rejection, Verdict
from berth_plugins.shared.cpu_and_memory import CpuAndMemory, least_allocated_of, weights_of
from berth_plugins.shared.device_classes import DeviceClassResolver, device_classes, resource_names
from berth_plugins.shared.device_scoring import DeviceScoring
from berth_plugins.shared.resource_allocation import (
    DEFAULT_RESOURCES,
    ResourceSpec,
    ResourceStrategy,
    UtilizationShapePoint,
    check_shape,
    least_allocated,
    most_allocated,
    requested_to_capacity_ratio,
    scored_resources,
)
from berth_plugins.shared.resource_shortage import (
    NATIVE_INDEX,
    NOTHING,
    Need,
    in_all,
    lack,
    lacks_in_columns,
    too_many_pods,
)

TOO_MANY_PODS: Final = "Too many pods"
NO_NEED: Final = int(np.iinfo(np.int64).min)
"""As little is left everywhere."""

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"


class RequestedToCapacityRatioParam(BaseModel):
    """The scoring curve of strategy RequestedToCapacityRatio."""

    model_config = PluginArgs.model_config

    shape: tuple[UtilizationShapePoint, ...] = ()
    """Points of the curve, by increasing utilization."""

    @model_validator(mode="after")
    def _check(self) -> "RequestedToCapacityRatioParam":
        check_shape(self.shape)
        return self


class ScoringStrategy(BaseModel):
    """How nodes are ranked, and by which resources."""

    model_config = PluginArgs.model_config

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = LEAST_ALLOCATED
    """The function that ranks a resource."""
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    """Resources that count, with weights."""
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None
    """The shape, for RequestedToCapacityRatio."""

    @field_validator("resources")
    @classmethod
    def _check_resources(cls, specs: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
        for i, spec in enumerate(specs):
            if not 0 <= spec.weight <= 100:
                raise ValueError(
                    f"resources[{i}].weight: Invalid value: {spec.weight}: resource weight of"
                    f" {spec.name} not in valid range [1, 100]"
                )
        return specs or DEFAULT_RESOURCES

    @model_validator(mode="after")
    def _check(self) -> "ScoringStrategy":
        wanted = self.type == REQUESTED_TO_CAPACITY_RATIO
        given = self.requested_to_capacity_ratio is not None
        if wanted and not given:
            raise ValueError(f"requestedToCapacityRatio: Required value with type {self.type}")
        if given and not wanted:
            raise ValueError(f"requestedToCapacityRatio: Forbidden with type {self.type}")
        return self

    def compiled(self) -> ResourceStrategy:
        match self.type, self.requested_to_capacity_ratio:
            case "RequestedToCapacityRatio", RequestedToCapacityRatioParam(shape=shape):
                return requested_to_capacity_ratio(shape)
            case "MostAllocated", _:
                return most_allocated
            case _:
                return least_allocated


class NodeResourcesFitArgs(PluginArgs):
    """What the filter leaves to others, and how the score ranks.

    ``ignoredByScheduler`` resources of extenders take the place of ``ignored_resources``; that is
    up to the caller.
    """

    ignored_resources: tuple[str, ...] = ()
    """Extended resources that the filter ignores."""
    ignored_resource_groups: tuple[str, ...] = ()
    """Groups of extended resources that the filter ignores: the part before ``/``."""
    scoring_strategy: ScoringStrategy = ScoringStrategy()
    """How nodes are ranked."""

    @field_validator("ignored_resources")
    @classmethod
    def _check_resources(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for i, name in enumerate(names):
            if not is_qualified_name(name):
                raise ValueError(
                    f"ignoredResources[{i}]: Invalid value: {name!r}: not a qualified name"
                )
        return names

    @field_validator("ignored_resource_groups")
    @classmethod
    def _check_groups(cls, groups: tuple[str, ...]) -> tuple[str, ...]:
        for i, group in enumerate(groups):
            if "/" in group:
                raise ValueError(
                    f"ignoredResourceGroups[{i}]: Invalid value: {group!r}: must not contain '/'"
                )
            if not is_qualified_name(group):
                raise ValueError(
                    f"ignoredResourceGroups[{i}]: Invalid value: {group!r}: not a qualified name"
                )
        return groups


class NodeResourcesFit(
    PreFilterPlugin,
    FiltersRows,
    PreScorePlugin,
    ScoresRows,
    PlacementScorePlugin,
    EnqueueExtensions,
    ExplainsColumns,
    SumsUp,
):
    """Rejects nodes that lack what the pod requests, telling each lack (spec §5.8).

    A lack is unresolvable where the node could not serve the request even if it were empty.
    """

    NAME = "NodeResourcesFit"
    WITHOUT_PRE_FILTER = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
    INPUTS = Input.LOAD | Input.CONTAINERS
    PREFERRED_PLACEMENT = "the one that will be fuller"
    DECIDES_BY_SIGNATURE = True
    ARGS = NodeResourcesFitArgs

    def __init__(
        self, args: NodeResourcesFitArgs | None = None, handle: Handle | None = None
    ) -> None:
        super().__init__(args, handle)
        args = args or NodeResourcesFitArgs()
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._resources = args.scoring_strategy.resources
        self._strategy = args.scoring_strategy.compiled()
        self._weights = weights_of(self._resources) if self._strategy is least_allocated else None
        handle = handle or Handle(NodeTable())
        self._classes = device_classes(handle)
        self._devices = DeviceScoring(handle, (resource.name for resource in self._resources))
        self._resizes_preempt = RESIZES_PREEMPT in handle.features

    def for_deferred_resizes(self) -> "ResizeFit":
        return ResizeFit(self)

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return self._classes.stands_for_none(pod.template.incoming_requested.scalars)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        """Never skips: every pod needs a place on its node."""
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        requests = pod.template.incoming_requested
        native = _native_needs(requests)
        short = nodes.free[: len(native)] < native
        is_short = bool(np.count_nonzero(short))
        if not is_short and not requests.scalars:
            return PASS
        rejections = []
        if is_short and np.count_nonzero(short[0]):  # a quarter of what any() takes
            rejections.append(Rejection(TOO_MANY_PODS, Code.UNSCHEDULABLE, short[0]))
        for need in self.needs_of(pod):
            index = NATIVE_INDEX.get(need.name)
            if index is None:
                backed = self.is_backed(need)
                rejections.extend(_lacks_of_scalar(nodes, need, backed_by_devices=backed))
            elif is_short:
                rejections.extend(_lacks(short[1 + index], nodes.allocatable[index], need))
        return Verdict(tuple(rejections))

    def passes_row(self, pod: PodInfo, nodes: NodeTable, row: int) -> bool | None:
        requests = pod.template.incoming_requested
        if requests.scalars:
            return None
        pods, cpu, memory, storage = nodes.free[:4, row].tolist()
        return (
            pods >= 1
            and (cpu >= requests.milli_cpu or not requests.milli_cpu)
            and (memory >= requests.memory or not requests.memory)
            and (storage >= requests.ephemeral_storage or not requests.ephemeral_storage)
        )

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        count, allowed = int(nodes.pod_count[row]), int(nodes.allowed_pods[row])
        if count >= allowed:
            yield too_many_pods(count, allowed)
        for need in self.needs_of(pod):
            rows = nodes.resource_rows(need.name)
            allocatable, requested = (int(rows[0][row]), int(rows[1][row])) if rows else (0, 0)
            if self.is_backed(need) and not allocatable:
                continue
            if allocatable - requested < need.amount:
                yield lack(need, allocatable, free=allocatable - requested)

    def sum_up(self, state: CycleState, pod: PodInfo, nodes: NodeTable, where: Mask) -> SummingUp:
        """Tell of what only some nodes have, such as GPUs, how much there is and who has it."""
        clauses = []
        for need in self.needs_of(pod):
            yield
            if need.name in NATIVE_INDEX or self.is_backed(need):
                continue
            rows = nodes.resource_rows(need.name)
            having = nodes.no_rows() if rows is None else nodes.exists & (rows[0] > 0)
            if rows is None or not having.any():
                clauses.append(f"no node has {need.name}")
                continue
            if not (having & (rows[0] - rows[1] < need.amount)).any():
                continue
            holders: list[str] = []
            for row in np.flatnonzero(having).tolist():
                pods = nodes.pods[row].values()
                holders += [p.key for p in pods if p.template.requested.amount(need.name)]
                yield
            total, taken = (sum(amounts[having].tolist()) for amounts in rows)
            clauses.append(in_all(need.name, total, total - taken, int(having.sum()), holders))
        return "; ".join(clauses)

    def needs_of(self, pod: PodInfo) -> tuple[Need, ...]:
        """Return what *pod* requests that the filter does not ignore."""
        return pod.template.memo((self, "needs"), lambda: tuple(self._needs(pod)))

    def _needs(self, pod: PodInfo) -> Iterator[Need]:
        for name, amount in _amounts(pod.template.incoming_requested):
            if not self._is_ignored(name):
                yield Need(name, amount, f"Insufficient {name}")

    def objections(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Iterator[Objection]:
        yield Objection(nodes.pod_count >= nodes.allowed_pods, ChangeKind.FREE_POD_SLOT)
        for need in self.needs_of(pod):
            rows = nodes.resource_rows(need.name) or (NOTHING, NOTHING)
            yield from lacks_in_columns(need, *rows, is_backed=self.is_backed(need))

    def is_backed(self, need: Need) -> bool:
        """Whether devices stand for the resource on nodes that have none of it (spec §5.8)."""
        return self._classes.get_device_class(need.name) is not None

    def _is_ignored(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        """Never skips; the requests are part of the pod's template."""
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        requests = pod.template.fit_score_requests
        if self._weights is not None and (kept := CpuAndMemory.of(nodes)) is not None:
            scores = kept.least_allocated(requests, self._weights)
            if scores is not None:
                return scores
        devices = self._devices.counts_for(requests, nodes)
        scored = scored_resources(nodes, self._resources, requests, non_zero=True, devices=devices)
        return self._strategy(scored, nodes.size)

    def score_row(self, pod: PodInfo, nodes: NodeTable, row: int) -> int | None:
        if self._weights is None:
            return None
        return least_allocated_of(nodes, row, pod.template.fit_score_requests, self._weights)

    def placement_score(self, candidate: PodGroupPlacement, nodes: NodeTable) -> int:
        """Prefer the parts of the cluster that would be fuller, whatever the strategy (G10.5)."""
        rows = np.flatnonzero(candidate.placement.rows_of(nodes))
        requests = [assignment.pod.template.fit_score_requests for assignment in candidate.proposed]
        total = weights = 0
        for resource in self._resources if requests else ():
            asks = next(
                (request for request in requests if request.amount(resource.name)), requests[0]
            )
            for scored in scored_resources(nodes, [resource], asks, rows, non_zero=True):
                allocatable = sum(scored.capacity.allocatable.tolist())
                if allocatable == 0:
                    continue
                wanted = sum(request.amount(resource.name) for request in requests)
                requested = min(wanted + sum(scored.used.tolist()), allocatable)
                total += requested * 100 // allocatable * scored.weight
                weights += scored.weight
        return total // weights if weights else 0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pod_gone = ClusterEvent(EventResource.POD, ActionType.DELETE)
        scaled_down = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCALE_DOWN)
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        device_class = ClusterEvent(EventResource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
        events = [
            ClusterEventWithHint(pod_gone, after_pod_deletion),
            ClusterEventWithHint(scaled_down, after_scale_down),
            ClusterEventWithHint(
                node, partial(after_node_change, classes=self._classes), (SIZE_INDEX,)
            ),
        ]
        if self._resizes_preempt:
            scaled_up = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCALE_UP)
            events.append(ClusterEventWithHint(scaled_up, after_scale_up))
        if self._classes.gives_extended_resources:
            events.append(ClusterEventWithHint(device_class, after_device_class_change))
        return events


class ResizeFit(FilterPlugin):
    """Rejects the node of a pod that lacks what the pod is to have more (1.37 spec N12.2).

    What the node counts for the pod is not asked for twice. Decision (2026-11): nor is its place
    among the pods of the node, as kube-scheduler 1.37 does, by which on a node with as many pods as
    it takes no resize would ever fit.
    """

    NAME = NodeResourcesFit.NAME

    def __init__(self, fit: NodeResourcesFit) -> None:
        super().__init__()
        self._fit = fit

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        row = nodes.row_of.get(pod.pod.spec.node_name)
        counted = None if row is None else nodes.pods[row].get(pod.uid)
        if row is None or counted is None:
            return self._fit.filter(state, pod, nodes)
        rejections, where = list[Rejection](), nodes.no_rows()
        where[row] = True
        for need in self._fit.needs_of(pod):
            rows = nodes.resource_rows(need.name)
            allocatable, requested = (int(rows[0][row]), int(rows[1][row])) if rows else (0, 0)
            if not allocatable and self._fit.is_backed(need):
                continue
            more = max(need.amount - counted.template.requested.amount(need.name), 0)
            if allocatable - requested < more:
                never = need.amount > allocatable
                code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if never else Code.UNSCHEDULABLE
                rejections.append(Rejection(need.reason, code, where))
        return Verdict(tuple(rejections))


def _native_needs(requests: Resources) -> Ints:
    """Return what must be left of ``nodes.free``, from its first row to the last that matters."""
    needs = [1, requests.milli_cpu or NO_NEED, requests.memory or NO_NEED]
    if requests.ephemeral_storage:
        needs.append(requests.ephemeral_storage)
    return np.array(needs, np.int64)[:, np.newaxis]


def _lacks_of_scalar(
    nodes: NodeTable, need: Need, *, backed_by_devices: bool
) -> Iterator[Rejection]:
    """Yield the rows where less than *need* is left of a resource that is not native.

    One *backed_by_devices* is DynamicResources' matter where the node itself has none.
    """
    rows = nodes.resource_rows(need.name)
    if rows is None and backed_by_devices:
        return
    if rows is None:  # neither nodes nor their pods know the resource
        nowhere = np.ones(nodes.size, bool)
        yield Rejection(need.reason, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, nowhere)
        return
    allocatable, requested = rows
    short = allocatable - requested < need.amount
    if backed_by_devices:
        short &= allocatable > 0
    yield from _lacks(short, allocatable, need)


def _lacks(short: Mask, allocatable: Ints, need: Need) -> Iterator[Rejection]:
    """Yield those of the *short* rows where evicting pods may help, if any, and those where nothing
    can."""
    if not np.count_nonzero(short):
        return
    never = short & (allocatable < need.amount)
    if np.count_nonzero(never):
        yield Rejection(need.reason, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, never)
        short = short & ~never
    yield Rejection(need.reason, Code.UNSCHEDULABLE, short)


def _amounts(requests: Resources) -> Iterator[tuple[str, int]]:
    """Yield what is requested by name, in the order of the filter's reasons, without zeros."""
    for name in ("cpu", "memory", "ephemeral-storage", *requests.scalars):
        amount = requests.amount(name)
        if amount:
            yield name, amount


def after_pod_deletion(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    """Queue if the deleted pod had a place, which matters to *pod*."""
    if _is_elsewhere(pod, old):
        return QueueingHint.SKIP
    had_place = old.spec.node_name or old.status.nominated_node_name
    return QueueingHint.QUEUE if had_place else QueueingHint.SKIP


def after_scale_down(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
    """Queue if it is this pod, or one on a node that gave back something this pod requests."""
    if new.metadata.uid == pod.metadata.uid:
        return QueueingHint.QUEUE
    if not new.spec.node_name or _is_elsewhere(pod, new):
        return QueueingHint.SKIP
    before, after = resources.requested(old), resources.requested(new)
    wanted = _amounts(resources.requested(pod))
    freed = any(before.amount(name) > after.amount(name) for name, _ in wanted)
    return QueueingHint.QUEUE if freed else QueueingHint.SKIP


def after_scale_up(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
    """Queue if it is this pod, which waits for room to be resized: others may have to go now."""
    is_this = new.metadata.uid == pod.metadata.uid and bool(pod.spec.node_name)
    return QueueingHint.QUEUE if is_this else QueueingHint.SKIP


def _is_elsewhere(pod: Pod, other: Pod) -> bool:
    """Whether *pod* waits to be resized on its node, where *other* neither was nor was to be."""
    node = pod.spec.node_name
    return bool(node) and node not in (other.spec.node_name, other.status.nominated_node_name)


def after_node_change(
    pod: Pod, old: Node | None, new: Node, *, classes: DeviceClassResolver | None = None
) -> QueueingHint:
    """Queue if the pod fits the node once it is empty, and the node is new or gained something.

    What counts as gained: room for more pods, or more of a resource that the pod requests. What
    devices stand for fits where the node itself has none, and always counts as gained.
    """
    if pod.spec.node_name and new.metadata.name != pod.spec.node_name:
        return QueueingHint.SKIP
    wanted = dict(_amounts(resources.incoming_requested(pod)))
    backed = {name for name in wanted if classes and classes.get_device_class(name)}
    after = resources.node_allocatable(new)
    lacking = [name for name, amount in wanted.items() if after.amount(name) < amount]
    if after.allowed_pods < 1 or any(name not in backed or after.amount(name) for name in lacking):
        return QueueingHint.SKIP
    if old is None or backed:
        return QueueingHint.QUEUE
    before = resources.node_allocatable(old)
    gained = after.allowed_pods > before.allowed_pods or any(
        after.amount(name) > before.amount(name) for name in wanted
    )
    return QueueingHint.QUEUE if gained else QueueingHint.SKIP


def _size(pod: PodInfo) -> Choices:
    """Return the number of binary digits of what *pod* requests of cpu and memory."""
    asked = pod.template.incoming_requested
    return [((asked.milli_cpu.bit_length(), asked.memory.bit_length()),)]


def _sizes_that_fit(_old: Node | None, new: Node) -> Iterator[Hashable]:
    """Yield the sizes of pods that may fit on the node; larger ones lack something of it."""
    has = resources.node_allocatable(new)
    return product(range(has.milli_cpu.bit_length() + 1), range(has.memory.bit_length() + 1))


SIZE_INDEX: Final = HintIndex(_size, _sizes_that_fit)
"""Finds the pods that are not too large for a node, give or take a factor of two."""


def after_device_class_change(pod: Pod, old: DeviceClass | None, new: DeviceClass) -> QueueingHint:
    """Queue if the pod requests an extended resource that the class stands for since now."""
    before = set() if old is None else set(resource_names(old))
    wanted = dict(_amounts(resources.incoming_requested(pod)))
    return (
        QueueingHint.QUEUE
        if wanted.keys() & (set(resource_names(new)) - before)
        else QueueingHint.SKIP
    )
