"""Devices that stand for resources of the node, with DRANodeAllocatableResources.

Spec G15.3, and 1.37 spec N4.11 for what differs in the second alpha.

Decision (2026-11): what an allocated claim takes counts for a pod that may have the claim.
kube-scheduler 1.36 counts only claims that it allocates in the same attempt, so that a pod whose
binding has failed once is given a node on which its claims take more than there is.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np

from berth.kube.objects import pod_group, resources
from berth.kube.objects.devices import Device, ResourceClaim
from berth.kube.objects.pod import (
    NodeAllocatableMappedResources,
    NodeAllocatableOverheadResources,
    NodeAllocatableResourceClaimStatus,
    Pod,
)
from berth.kube.objects.quantity import NANO, Quantities, Quantity, canonical, parse
from berth.runtime.release import Behaviour
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.status import Code
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.claim_writes import doing
from berth_plugins.dynamic_resources.pools import ResourcePools
from berth_plugins.dynamic_resources.requests import IN_MEMORY
from berth_plugins.dynamic_resources.resolution import claim_name
from berth_plugins.dynamic_resources.row_rejections import UNRESOLVABLE, RowRejections
from berth_plugins.dynamic_resources.state import DevicesOfPod

GATE: Final = "DRANodeAllocatableResources"
FIELD: Final = "nodeAllocatableResourceClaimStatuses"
SECOND_ALPHA: Final = Behaviour(
    "1.37",
    "N4.11",
    "Devices that stand for resources of the node say so in nodeAllocatableResources, with an"
    " overhead for their users, and claims for them need no container.",
)
POD_LEVEL: Final = (
    "pod level request for {} is insufficient to cover the aggregated container and"
    " node-allocatable DRA requests"
)

Statuses = tuple[NodeAllocatableResourceClaimStatus, ...]
Allocated = tuple[Device, Quantities | None]
"""A device, and what of its capacity is the claim's; None: the device as a whole."""


class RefusedError(Exception):
    """The pod cannot use its claims on a node; the text is for people."""

    def __init__(self, reason: str, code: Code = UNRESOLVABLE) -> None:
        super().__init__(reason)
        self.code = code


class NodeAllocatableResources:
    """Counts what devices take of their node, and writes that to the status of pods."""

    def __init__(self, handle: Handle, claims: ResourceClaimTracker, pools: ResourcePools) -> None:
        self._claims = claims
        self._alpha: _Alpha = _SecondAlpha() if SECOND_ALPHA in handle.features else _FirstAlpha()
        self._writes = handle.writes
        self._pod = handle.pod
        self._pools = pools

    def filter(self, devices: DevicesOfPod, pod: Pod, rejections: RowRejections) -> None:
        """Reject the rows where the pod does not fit with its claims; note what they take."""
        for row in np.flatnonzero(rejections.left).tolist():
            node = NodeInfo(rejections.nodes, row)
            try:
                statuses = self._alpha.in_order(self._statuses(devices, pod, node))
            except RefusedError as exc:
                rejections.reject_row(row, str(exc), exc.code)
                continue
            devices.claim_statuses[node.name] = statuses
            if not statuses:
                continue
            status = msgspec.structs.replace(
                pod.status, node_allocatable_resource_claim_statuses=statuses
            )
            with_claims = msgspec.structs.replace(pod, status=status)
            for reason, code in _lacking(with_claims, node):
                rejections.reject_row(row, reason, code)

    def _statuses(
        self, devices: DevicesOfPod, pod: Pod, node: NodeInfo
    ) -> Iterator[NodeAllocatableResourceClaimStatus]:
        for claim in devices.claims:
            allocated = self._allocated(claim, node)
            if not any(self._alpha.takes(device) for device, _ in allocated):
                continue
            others = (other.pod for other in node.pods if other.uid != pod.metadata.uid)
            self._alpha.check_sharing(claim, allocated, devices, pod, others)
            yield from self._alpha.status(claim, allocated, pod)
        find = devices.found.get(node.name)
        if find is None:
            return
        for requests, picks in zip(find.claims, find.picks, strict=True):
            # No container names the claim for extended resources: in 1.36 what it takes cannot be
            # counted, and the pod is refused.
            picked = [(pick.found.device, pick.share) for pick in picks.picks]
            yield from self._alpha.status(requests.claim, picked, pod)

    def _allocated(self, claim: ResourceClaim, node: NodeInfo) -> list[Allocated]:
        """Return the devices that *claim* has, as far as the node can use them."""
        pending = self._claims.pending_allocation(claim.metadata.uid)
        allocation = claim.status.allocation or (pending.allocation if pending else None)
        if allocation is None:
            return []
        results = allocation.devices.results
        wanted = {result.id for result in results}
        published = {
            device.id: device.device
            for pool in self._pools.pools_of(node.node)
            for device in pool.devices
            if device.id in wanted
        }
        return [
            (published[result.id], result.consumed_capacity or None)
            for result in results
            if result.id in published
        ]

    async def write(self, devices: DevicesOfPod, pod: Pod, node_name: str) -> None:
        """Tell the pod what its claims take of its node. Raises ClaimWriteError, ConflictError."""
        statuses = _with_names(devices.claim_statuses.get(node_name, ()), devices)
        stored = self._pod(pod.key)
        told = stored.status.node_allocatable_resource_claim_statuses if stored else ()
        if statuses == told:
            return
        devices.has_told_pod = True  # even if it fails: the answer may have got lost
        with doing(f"update pod {pod.key} NodeAllocatableResourceClaimStatuses"):
            await self._writes.patch_pod_status(pod, {FIELD: msgspec.to_builtins(statuses)})

    def clear(self, devices: DevicesOfPod, pod: Pod) -> None:
        """Take back what the pod was told, if it was told anything."""
        if not devices.has_told_pod:
            return
        devices.has_told_pod = False

        async def clear() -> None:
            await self._writes.patch_pod_status(pod, {FIELD: []})

        self._writes.start(f"clear {FIELD} of pod {pod.key}", clear)


class _Alpha(Protocol):
    """What devices say of the resources of their node, and how pods are told."""

    def takes(self, device: Device) -> bool:
        """Whether *device* takes anything of its node."""
        ...

    def check_sharing(
        self,
        claim: ResourceClaim,
        allocated: Sequence[Allocated],
        devices: DevicesOfPod,
        pod: Pod,
        others: Iterable[Pod],
    ) -> None:
        """Raise RefusedError if *pod* must not use *claim*, for *others* on the node may."""
        ...

    def status(
        self, claim: ResourceClaim, allocated: Sequence[Allocated], pod: Pod
    ) -> Iterator[NodeAllocatableResourceClaimStatus]:
        """Yield what the devices of *claim* take, if they take anything."""
        ...

    def in_order(self, statuses: Iterable[NodeAllocatableResourceClaimStatus]) -> Statuses:
        """Return *statuses* in the order in which the pod is told."""
        ...


class _FirstAlpha:
    """As in 1.36."""

    def takes(self, device: Device) -> bool:
        return bool(device.node_allocatable_resource_mappings)

    def check_sharing(
        self,
        claim: ResourceClaim,
        allocated: Sequence[Allocated],
        devices: DevicesOfPod,
        pod: Pod,
        others: Iterable[Pod],
    ) -> None:
        name, users = claim.metadata.name, claim.status.reserved_for
        of_group = any(user.resource == pod_group.RESOURCE for user in users)
        if len(users) > 1 or of_group or _may_be_shared(claim, devices):
            raise RefusedError(f"node allocatable resource claim {name} shared by multiple pods")
        if any(_uses(other, claim) for other in others):
            raise RefusedError(
                f"node allocatable resource claim {name} is already used by another pod"
            )

    def status(
        self, claim: ResourceClaim, allocated: Sequence[Allocated], pod: Pod
    ) -> Iterator[NodeAllocatableResourceClaimStatus]:
        name, amounts = claim.metadata.name, Counter[str]()
        for device, consumed in allocated:
            for resource, mapping in device.node_allocatable_resource_mappings.items():
                multiplier, key = mapping.allocation_multiplier, mapping.capacity_key
                units = NANO if key is None else _consumed(claim, device, key, resource, consumed)
                if units is not None:
                    amounts[resource] += _times(units, multiplier)
        if not amounts:
            return
        containers = tuple(_containers_with(name, pod))
        if not containers:
            raise RefusedError(
                f"claim {name}: node-allocatable resource claim not referenced by any container"
                " within the pod"
            )
        written: Quantities = {
            resource: _written(resource, amounts[resource]) for resource in sorted(amounts)
        }
        yield NodeAllocatableResourceClaimStatus(name, containers, written)

    def in_order(self, statuses: Iterable[NodeAllocatableResourceClaimStatus]) -> Statuses:
        return tuple(statuses)


class _SecondAlpha:
    """As in 1.37."""

    def takes(self, device: Device) -> bool:
        return bool(device.node_allocatable_resources)

    def check_sharing(
        self,
        claim: ResourceClaim,
        allocated: Sequence[Allocated],
        devices: DevicesOfPod,
        pod: Pod,
        others: Iterable[Pod],
    ) -> None:
        """Let pods share what is overhead only; what is mapped is one pod's."""
        if not any(_is_mapped(device) for device, _ in allocated):
            return
        uid, users = pod.metadata.uid, claim.status.reserved_for
        if (
            any(user.uid != uid for user in users)
            or _may_be_shared(claim, devices)
            or any(_uses(other, claim) for other in others)
        ):
            raise RefusedError(
                f"node allocatable resource claim {claim.metadata.name} has a mapped device and"
                " cannot be shared across pods"
            )

    def status(
        self, claim: ResourceClaim, allocated: Sequence[Allocated], pod: Pod
    ) -> Iterator[NodeAllocatableResourceClaimStatus]:
        mapped, per_pod, per_container = Counter[str](), Counter[str](), Counter[str]()
        for device, consumed in allocated:
            for resource, of_device in device.node_allocatable_resources.items():
                mapping, overhead = of_device.mapping, of_device.overhead
                if mapping is not None and mapping.capacity_key:
                    units = _consumed(claim, device, mapping.capacity_key, resource, consumed)
                    if units is not None:
                        mapped[resource] += _times(units, mapping.capacity_multiplier)
                elif mapping is not None and mapping.device_multiplier is not None:
                    mapped[resource] += parse(mapping.device_multiplier)
                if overhead is not None and overhead.per_pod is not None:
                    per_pod[resource] += parse(overhead.per_pod)
                if overhead is not None and overhead.per_container is not None:
                    per_container[resource] += parse(overhead.per_container)
        if not mapped and not per_pod and not per_container:
            return
        name = claim.metadata.name
        yield NodeAllocatableResourceClaimStatus(
            name,
            tuple(_containers_with(name, pod)),
            mapping=tuple(
                NodeAllocatableMappedResources(resource, _written(resource, mapped[resource]))
                for resource in sorted(mapped)
            ),
            overhead=tuple(
                NodeAllocatableOverheadResources(
                    resource,
                    _written(resource, per_pod[resource]) if resource in per_pod else None,
                    _written(resource, per_container[resource])
                    if resource in per_container
                    else None,
                )
                for resource in sorted(per_pod.keys() | per_container.keys())
            ),
        )

    def in_order(self, statuses: Iterable[NodeAllocatableResourceClaimStatus]) -> Statuses:
        return tuple(sorted(statuses, key=lambda status: status.resource_claim_name))


def _is_mapped(device: Device) -> bool:
    return any(each.mapping is not None for each in device.node_allocatable_resources.values())


def _may_be_shared(claim: ResourceClaim, devices: DevicesOfPod) -> bool:
    """Whether other pods of the group of the pod may use *claim*."""
    uid = claim.metadata.uid
    return uid in devices.groups or uid in devices.shared


def _uses(pod: Pod, claim: ResourceClaim) -> bool:
    return pod.metadata.namespace == claim.metadata.namespace and any(
        status.resource_claim_name == claim.metadata.name
        for status in pod.status.node_allocatable_resource_claim_statuses
    )


def _consumed(
    claim: ResourceClaim, device: Device, key: str, resource: str, consumed: Quantities | None
) -> int | None:
    """Return how much of the capacity *key* is the claim's, in nano units; None if nothing is."""
    if consumed is None:
        field = "NodeAllocatableResourceMappings"
        if resource in device.node_allocatable_resources:
            field = "NodeAllocatableResources"
        raise RefusedError(
            f"claim {claim.metadata.key}, device {device.name}: ConsumedCapacity is nil, but"
            f" Capacity key '{key}' is set in {field} for resource {resource}",
            Code.ERROR,
        )
    return parse(consumed[key]) if key in consumed else None


def _times(units: int, multiplier: Quantity | None) -> int:
    return units if multiplier is None else units * parse(multiplier) // NANO


def _written(resource: str, amount: int) -> str:
    return canonical(amount, binary=resource != resources.CPU)


def _with_names(statuses: Statuses, devices: DevicesOfPod) -> Statuses:
    """Name the claim for extended resources as it was created."""
    extended = devices.extended
    return tuple(
        msgspec.structs.replace(status, resource_claim_name=extended.claim.metadata.name)
        if extended is not None and status.resource_claim_name == IN_MEMORY
        else status
        for status in statuses
    )


def _containers_with(claim: str, pod: Pod) -> Iterator[str]:
    """Yield the names of the containers that use the claim of a name."""
    entries = {
        resource_claim.name
        for resource_claim in pod.spec.resource_claims
        if claim_name(pod, resource_claim) == claim
    }
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if any(used.name in entries for used in container.resources.claims):
            yield container.name


def _lacking(pod: Pod, node: NodeInfo) -> Iterator[tuple[str, Code]]:
    """Yield why *pod*, with what its claims take, does not fit on a node."""
    insufficient = resources.insufficient_at_pod_level(pod)
    if insufficient:
        yield POD_LEVEL.format(insufficient[0]), UNRESOLVABLE
        return
    needed = resources.requested_with_claims(pod)
    hugepages = (name for name in needed.scalars if name.startswith("hugepages-"))
    native = (resources.CPU, resources.MEMORY, resources.EPHEMERAL_STORAGE)
    for resource in (*native, *hugepages):
        amount, allocatable = needed.amount(resource), node.allocatable(resource)
        if amount and amount > allocatable - node.requested(resource):
            can_ever = amount <= allocatable
            code = Code.UNSCHEDULABLE if can_ever else UNRESOLVABLE
            yield f"Insufficient {resource}", code
