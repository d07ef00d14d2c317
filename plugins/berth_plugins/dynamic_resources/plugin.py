"""DynamicResources: a pod goes where the devices that its claims ask for can be had."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.change import Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.device_demands import CountsDevices, DeviceDemand, DeviceDemands
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.explanation import Explains, Records, SummingUp, SumsUp
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    FilterRunner,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScorePlugin,
    Scores,
)
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scoring import default_normalize
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.framework.verdict import Mask, Verdict, everywhere
from berth_plugins.dynamic_resources.args import DynamicResourcesArgs
from berth_plugins.dynamic_resources.binding import ClaimBinding
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.class_devices import ClassDevices
from berth_plugins.dynamic_resources.counting import Holders, counts_for, on_node, over_all
from berth_plugins.dynamic_resources.deallocation import Deallocation
from berth_plugins.dynamic_resources.demands import DemandCounter
from berth_plugins.dynamic_resources.features import OPTIONAL_NODE_OPERATIONS, Features
from berth_plugins.dynamic_resources.group_claims import GroupClaims
from berth_plugins.dynamic_resources.node_allocatable import GATE, NodeAllocatableResources
from berth_plugins.dynamic_resources.node_search import NodeSearch, claim_in_memory
from berth_plugins.dynamic_resources.pools import shared_pools
from berth_plugins.dynamic_resources.pre_filter import ClaimsPreparation
from berth_plugins.dynamic_resources.record import recorded
from berth_plugins.dynamic_resources.requests import (
    AllocationError,
    NoSuchClassError,
    UnknownRequestError,
    requests_of,
)
from berth_plugins.dynamic_resources.resolution import ClaimOfPod, UnresolvedError, claims_of
from berth_plugins.dynamic_resources.row_rejections import RowRejections
from berth_plugins.dynamic_resources.row_search import search_rows
from berth_plugins.dynamic_resources.state import KEY, DevicesOfPod, ExtendedResources, NodeFind
from berth_plugins.dynamic_resources.waiting_pods import (
    CLAIM_INDEX,
    COUNTED_CLAIM_INDEX,
    PRE_QUEUEING_HINTS,
)
from berth_plugins.shared.device_classes import device_classes, may_be_device
from berth_plugins.shared.device_scoring import DeviceCounting
from berth_plugins.shared.node_rows import rows_of_any_term

CANNOT_FIT: Final = "cannot fit resource"
LEFT_OVER: Final = "cannot schedule extended resource claim"
NOT_AVAILABLE: Final = "resourceclaim not available on the node"
NOT_DECLARED: Final = f"node does not declare {OPTIONAL_NODE_OPERATIONS}"
"""A guess: what kube-scheduler says is not known (1.37 spec N4.10)."""

NO_STATE: Final = Status.error("not found")

MAX_ALTERNATIVES: Final = 8
"""How many alternatives a ``firstAvailable`` may have; the first one scores as much."""

_HOLDERS: Final = f"{KEY}.holders"
"""Where who has which device stands in the state of a question."""


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
    Explains,
    Records,
    SumsUp,
    CountsDevices,
):
    """Allocates ResourceClaims, and reserves them for the pod (spec §5.17).

    The devices are found by Filter on every node, taken in memory by Reserve, and written to the
    claims by PreBind.
    """

    NAME = KEY
    WITHOUT_PRE_FILTER = "not found"
    DECIDES_BY_SIGNATURE = True
    ALLOW_PARALLEL = True
    ARGS = DynamicResourcesArgs

    def __init__(
        self, args: DynamicResourcesArgs | None = None, handle: Handle | None = None
    ) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("DynamicResources: needs a handle to look claims up")
        args = args or DynamicResourcesArgs()
        self._handle = handle
        self._clock = handle.clock
        self._claims = handle.listers.shared(ResourceClaimTracker)
        self._classes = device_classes(handle)
        features = self._features = Features.of(handle.features)
        self._pools = shared_pools(handle.listers, features)
        handle.listers.shared(DeviceCounting).by = ClassDevices(handle)
        self._search = NodeSearch(
            self._claims,
            self._classes,
            self._pools,
            clock=handle.clock,
            timeout=args.filter_timeout.seconds if args.filter_timeout is not None else 0,
            features=features,
        )
        self._claim_index = (
            COUNTED_CLAIM_INDEX if PRE_QUEUEING_HINTS in handle.features else CLAIM_INDEX
        )
        self._groups = GroupClaims(handle)
        timeout = args.binding_timeout.seconds if args.binding_timeout is not None else 0
        self._preparation = ClaimsPreparation(
            self._claims, self._classes, self._groups, timeout=timeout, features=features
        )
        self._binding = ClaimBinding(handle, timeout=timeout)
        self._deallocation = Deallocation(self._binding, handle.pod_groups)
        self._node_allocatable = (
            NodeAllocatableResources(handle, self._claims, self._pools)
            if GATE in handle.features
            else None
        )

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Gate a pod until its claims are there."""
        try:
            self._claims_of(pod.pod)
        except UnresolvedError as exc:
            return Status.unresolvable(str(exc))
        return None

    def _claims_of(self, pod: Pod) -> Sequence[ClaimOfPod]:
        return claims_of(pod, self._claims, self._groups)

    # Filter.

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        if pod.pod.spec.resource_claims:
            return None
        return self._classes.stands_for_none(pod.template.incoming_requested.scalars)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        devices = DevicesOfPod(pod.namespace)
        state.out_of_time.clear()  # what an earlier pass of this attempt had no time for
        state.write(KEY, devices)
        if not pod.pod.spec.resource_claims and not pod.template.incoming_requested.scalars:
            return SKIP
        try:
            claims = self._claims_of(pod.pod)
        except UnresolvedError as exc:
            return Status.unresolvable(str(exc))
        extended = self._extended_resources(pod)
        if not claims and extended is None:
            return SKIP
        refusal = self._preparation.prepare(devices, pod.pod, claims, now=self._clock.now())
        if refusal is None:
            devices.extended = extended
            state.claim_statuses = devices.claim_statuses
        return refusal

    def _extended_resources(self, pod: PodInfo) -> ExtendedResources | None:
        """Return the claim for the extended resources of *pod*, if a class stands for any."""
        amounts = {
            name: amount
            for name, amount in pod.template.incoming_requested.scalars.items()
            if amount and may_be_device(name)
        }
        if not any(self._classes.get_device_class(name) for name in amounts):
            return None
        left_over = self._claims.for_extended_resources(pod.uid)
        if left_over is not None:
            return ExtendedResources(left_over, amounts, is_left_over=True)
        return ExtendedResources(claim_in_memory(pod.pod), amounts)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        """Search on the rows that are left, then see where claims are that have devices already.

        In this order, as kube-scheduler does: where nothing is found, it does not count that a
        claim is elsewhere, and PostFilter leaves the claim alone.
        """
        devices: DevicesOfPod = state.read(KEY)
        rejections = RowRejections(nodes, state.feasible & nodes.exists)
        if devices.extended is not None:
            self._check_extended_resources(devices.extended, rejections)
        if devices.to_allocate or devices.extended is not None:
            out_of_time = search_rows(self._search, devices, pod, rejections)
            if out_of_time:
                state.out_of_time.append(Status.error(out_of_time).of(self.NAME))
        elsewhere = nodes.no_rows()
        for index, where in self._not_there(devices, nodes):
            held_back = rejections.left & where
            if held_back.any():
                devices.unavailable.add(index)
                elsewhere |= held_back
        rejections.reject(NOT_AVAILABLE, elsewhere)
        if devices.skipping:
            held_back = rejections.left & ~_can_skip(nodes)
            if held_back.any():
                devices.unavailable |= devices.skipping
            rejections.reject(NOT_DECLARED, held_back)
        if self._node_allocatable is not None:
            self._node_allocatable.filter(devices, pod.pod, rejections)
        return rejections.verdict()

    def _check_extended_resources(
        self, extended: ExtendedResources, rejections: RowRejections
    ) -> None:
        if extended.is_left_over:
            rejections.reject(LEFT_OVER, rejections.left)
            return
        for name in extended.amounts:
            if self._classes.get_device_class(name) is None:
                rejections.reject(CANNOT_FIT, rejections.left & ~_offers(rejections.nodes, name))

    def _not_there(self, devices: DevicesOfPod, nodes: NodeTable) -> list[tuple[int, Mask]]:
        """Return which allocated claims cannot be used on which rows."""
        return [
            *((index, ~rows_of_any_term(nodes, matcher)) for index, matcher in devices.bound_to),
            *((index, np.ones(nodes.size, bool)) for index in devices.lost),
        ]

    # Explaining.

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        devices: DevicesOfPod = state.read(KEY)
        node = nodes.nodes[row]
        assert node is not None, f"row {row} is empty"
        if devices.extended is not None and devices.extended.is_left_over:
            return
        lacking = _lacking(devices.extended, nodes, row)
        claims, _ = self._search.claims_for(devices, pod.pod, lacking)
        if not claims or node.name in devices.found:
            for index, where in self._not_there(devices, nodes):
                if where[row]:
                    key = devices.claims[index].metadata.key
                    yield Detail(f"claim {key} has its devices on other nodes")
            if OPTIONAL_NODE_OPERATIONS not in node.status.declared_features:
                for index in sorted(devices.skipping):
                    key = devices.claims[index].metadata.key
                    yield Detail(f"claim {key} has devices whose driver the kubelet must skip")
            return
        counts = counts_for(claims)
        for count in counts:
            count.add(node, self._pools.pools_of(node), self._claims.in_use)
        holders: Holders | None = state.get(_HOLDERS)
        if holders is None:
            state.write(_HOLDERS, holders := self._claims.holders())
        yield from on_node(counts, holders) if counts else ()

    def sum_up(self, state: CycleState, pod: PodInfo, nodes: NodeTable, where: Mask) -> SummingUp:
        """Tell how many devices match in the whole cluster, how many are free, who has the rest."""
        devices: DevicesOfPod = state.read(KEY)
        every = frozenset(devices.extended.amounts if devices.extended else ())
        counts = counts_for(self._search.claims_for(devices, pod.pod, every)[0])
        if not counts:
            return ""
        for node in nodes.nodes:
            if node is not None:
                for count in counts:
                    count.add(node, self._pools.pools_of(node), self._claims.in_use)
                yield
        return over_all(counts, self._claims)

    def record(self, state: CycleState, nodes: NodeTable, rows: Mask) -> Mapping[str, Any]:
        """Return the devices that each node would give, if claims are to be allocated."""
        devices: DevicesOfPod | None = state.get(KEY)
        if devices is None or not devices.found:
            return {}
        recorded_devices = {
            name: recorded(find)
            for name in nodes.names(np.flatnonzero(rows))
            if (find := devices.found.get(name)) is not None and find.claims
        }
        return {"devices": recorded_devices} if recorded_devices else {}

    # Counting.

    def device_demands(
        self, pods: Sequence[PodInfo], nodes: NodeTable
    ) -> Mapping[str, DeviceDemands]:
        counter = DemandCounter(self._pools, self._claims.in_use, nodes)
        every = ((pod.key, self._demands_of(pod, counter)) for pod in pods)
        return {key: of_pod for key, of_pod in every if of_pod != DeviceDemands()}

    def _demands_of(self, pod: PodInfo, counter: DemandCounter) -> DeviceDemands:
        is_all = self._extended_resources(pod) is None
        demands: list[DeviceDemand] = []
        try:
            for claim, _ in self._claims_of(pod.pod):
                pending = self._claims.pending_allocation(claim.metadata.uid)
                if claim.status.allocation is not None or pending is not None:
                    continue
                owner = claim.metadata.controller
                if owner is None or owner.uid != pod.uid:  # other pods may use it, too
                    is_all = False
                    continue
                requests = requests_of(claim, self._classes, self._features)
                of_claim = counter.demands(requests)
                demands += of_claim.demands
                is_all = is_all and of_claim.is_all
        except (UnresolvedError, NoSuchClassError, UnknownRequestError, AllocationError):
            is_all = False  # PreFilter tells what it is
        return DeviceDemands(tuple(demands), is_all)

    # PostFilter.

    def post_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        diagnosis: Diagnosis,
        filters: FilterRunner,
    ) -> PostFilterResult:
        """Free a claim that keeps the pod off other nodes, if nobody else uses it."""
        devices: DevicesOfPod | None = state.get(KEY)
        if devices is None:  # a plugin before this one has ended PreFilter (spec §2.8)
            return PostFilterResult(NO_STATE)
        return PostFilterResult(self._deallocation.free_one(devices, pod.pod, state))

    # Score.

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        """Prefer nodes that have what comes earlier in ``firstAvailable``."""
        devices: DevicesOfPod | None = state.get(KEY)
        if devices is None or not any(claim.has_alternatives for claim in devices.to_allocate):
            return everywhere(0, nodes.size)
        scores = np.zeros(nodes.size, np.int64)
        for row in np.flatnonzero(state.feasible).tolist():
            picks = devices.found.get(nodes.name(row))
            if picks is not None:
                scores[row] = _score_of(picks)
        return scores

    def normalize(self, _state: CycleState, _pod: PodInfo, scores: Scores) -> Scores:
        return default_normalize(scores)

    # Reserve and PreBind.

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        devices: DevicesOfPod | None = state.get(KEY)
        if devices is None or devices.is_empty:
            return None
        group = self._groups.scheduled_with(pod.pod)
        given_up = self._binding.take(devices, pod.pod, node_name, group)
        if given_up is not None:
            return Status.error(f"the allocation of claim {given_up} was given up in the meantime")
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        devices: DevicesOfPod | None = state.get(KEY)
        if devices is not None:
            self._binding.give_back(devices, pod.pod)
            if self._node_allocatable is not None:
                self._node_allocatable.clear(devices, pod.pod)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        devices: DevicesOfPod | None = state.get(KEY)
        if devices is None or devices.is_empty:
            return SKIP
        return None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        devices: DevicesOfPod | None = state.get(KEY)
        if devices is None or devices.is_empty:
            return None
        try:
            await self._binding.write(devices, pod.pod, node_name)
            if self._node_allocatable is not None:
                await self._node_allocatable.write(devices, pod.pod, node_name)
        except Exception as exc:  # noqa: BLE001 - however it fails, the attempt has failed
            return Status.error(str(exc))
        return None

    # Queueing.

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        changed = ActionType.ADD | ActionType.UPDATE
        node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        if self._features.optional_node_operations:
            # Guess: kube-scheduler leaves this out, too.
            node |= ActionType.UPDATE_NODE_DECLARED_FEATURE
        generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        # Guess: kube-scheduler leaves these out, and the pods wait for the next flush.
        room = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        return [
            *(
                [ClusterEventWithHint(ClusterEvent(EventResource.POD, room))]
                if self._node_allocatable is not None
                else []
            ),
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, node)),
            ClusterEventWithHint(
                ClusterEvent(EventResource.RESOURCE_CLAIM, changed),
                self.after_claim_change,
                (self._claim_index,),
            ),
            ClusterEventWithHint(ClusterEvent(EventResource.POD, generated), self.after_pod_change),
            ClusterEventWithHint(ClusterEvent(EventResource.DEVICE_CLASS, changed)),
            ClusterEventWithHint(ClusterEvent(EventResource.RESOURCE_SLICE, changed)),
        ]

    def after_claim_change(
        self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim
    ) -> QueueingHint:
        """Queue if devices became free, or a claim of the pod is new or has another status.

        Only once all claims of the pod are there.
        """
        try:
            claims = self._claims_of(pod)
        except UnresolvedError:
            return QueueingHint.SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return QueueingHint.QUEUE
        if all(claim.metadata.uid != new.metadata.uid for claim, _ in claims):
            return QueueingHint.SKIP
        return (
            QueueingHint.SKIP
            if old is not None and old.status == new.status
            else QueueingHint.QUEUE
        )

    def after_pod_change(self, pod: Pod, _old: Pod, new: Pod) -> QueueingHint:
        """Queue if it is this pod, and now all its claims are there."""
        if pod.metadata.uid != new.metadata.uid:
            return QueueingHint.SKIP
        try:
            self._claims_of(new)
        except UnresolvedError:
            return QueueingHint.SKIP
        return QueueingHint.QUEUE


def _lacking(extended: ExtendedResources | None, nodes: NodeTable, row: int) -> frozenset[str]:
    """Return the extended resources that the node does not offer by other means than devices."""
    if extended is None:
        return frozenset()
    node = NodeInfo(nodes, row)
    return frozenset(name for name in extended.amounts if not node.allocatable(name))


def _can_skip(nodes: NodeTable) -> Mask:
    """Return the rows whose kubelets can skip operations of drivers."""
    declared = (node.status.declared_features if node else () for node in nodes.nodes)
    return np.fromiter((OPTIONAL_NODE_OPERATIONS in names for names in declared), bool, nodes.size)


def _offers(nodes: NodeTable, resource: str) -> Mask:
    """Return the rows whose allocatable names *resource*, be it 0."""
    has = (node is not None and resource in node.status.allocatable for node in nodes.nodes)
    return np.fromiter(has, bool, nodes.size)


def _score_of(find: NodeFind) -> int:
    return sum(
        MAX_ALTERNATIVES - index
        for claim, picks in zip(find.claims, find.picks, strict=True)
        for alternatives, index in zip(claim.requests, picks.chosen, strict=True)
        if alternatives[0].is_alternative
    )
