"""Devices that stand for resources of the node, with DRANodeAllocatableResources (spec G15.3).

Decision (2026-11): what an allocated claim takes counts for a pod that may have the claim.
kube-scheduler 1.36 counts only claims that it allocates in the same attempt, so that a pod whose
binding has failed once is given a node on which its claims take more than there is.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from berth.kube.objects import pod_group, resources
from berth.kube.objects.devices import Device, ResourceClaim
from berth.kube.objects.pod import NodeAllocatableResourceClaimStatus, Pod
from berth.kube.objects.quantity import NANO, Quantities, canonical, parse
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.status import Code
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.claim_writes import doing
from berth_plugins.dynamic_resources.pools import ResourcePools
from berth_plugins.dynamic_resources.resolution import claim_name
from berth_plugins.dynamic_resources.row_rejections import UNRESOLVABLE, RowRejections
from berth_plugins.dynamic_resources.state import DevicesOfPod

GATE: Final = "DRANodeAllocatableResources"
FIELD: Final = "nodeAllocatableResourceClaimStatuses"
POD_LEVEL: Final = (
    "pod level request for {} is insufficient to cover the aggregated container and"
    " node-allocatable DRA requests"
)

Statuses = tuple[NodeAllocatableResourceClaimStatus, ...]
Allocated = tuple[Device, Quantities | None]
"""A device, and what of its capacity is the claim's; None: the device as a whole."""


class _RefusedError(Exception):
    """The pod cannot use its claims on a node; the text is for people."""

    def __init__(self, reason: str, code: Code = UNRESOLVABLE) -> None:
        super().__init__(reason)
        self.code = code


class NodeAllocatableResources:
    """Counts what devices take of their node, and writes that to the status of pods."""

    def __init__(self, handle: Handle, claims: ResourceClaimTracker, pools: ResourcePools) -> None:
        self._claims = claims
        self._writes = handle.writes
        self._pod = handle.pod
        self._pools = pools

    def filter(self, devices: DevicesOfPod, pod: Pod, rejections: RowRejections) -> None:
        """Reject the rows where the pod does not fit with its claims; note what they take."""
        for row in np.flatnonzero(rejections.left).tolist():
            node = NodeInfo(rejections.nodes, row)
            try:
                statuses = tuple(self._statuses(devices, pod, node))
            except _RefusedError as exc:
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
            if not any(device.node_allocatable_resource_mappings for device, _ in allocated):
                continue
            if _is_shared(claim, devices):
                raise _RefusedError(
                    f"node allocatable resource claim {claim.metadata.name} shared by multiple pods"
                )
            if any(_uses(other.pod, claim) for other in node.pods if other.uid != pod.metadata.uid):
                raise _RefusedError(
                    f"node allocatable resource claim {claim.metadata.name}"
                    " is already used by another pod"
                )
            yield from _status(claim, allocated, pod)
        find = devices.found.get(node.name)
        if find is None:
            return
        for requests, picks in zip(find.claims, find.picks, strict=True):
            # No container names the claim for extended resources: what it takes cannot be counted,
            # and the pod is refused.
            picked = [(pick.found.device, pick.share) for pick in picks.picks]
            yield from _status(requests.claim, picked, pod)

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
        statuses = devices.claim_statuses.get(node_name, ())
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


def _is_shared(claim: ResourceClaim, devices: DevicesOfPod) -> bool:
    """Whether more than one pod may use *claim*, as the pods of a group may."""
    users = claim.status.reserved_for
    of_group = any(user.resource == pod_group.RESOURCE for user in users)
    uid = claim.metadata.uid
    return len(users) > 1 or of_group or uid in devices.groups or uid in devices.shared


def _uses(pod: Pod, claim: ResourceClaim) -> bool:
    return pod.metadata.namespace == claim.metadata.namespace and any(
        status.resource_claim_name == claim.metadata.name
        for status in pod.status.node_allocatable_resource_claim_statuses
    )


def _status(
    claim: ResourceClaim, allocated: Sequence[Allocated], pod: Pod
) -> Iterator[NodeAllocatableResourceClaimStatus]:
    """Yield what the devices of *claim* take, if they take anything."""
    name, amounts = claim.metadata.name, _amounts(claim, allocated)
    if not amounts:
        return
    containers = tuple(_containers_with(name, pod))
    if not containers:
        raise _RefusedError(
            f"claim {name}: node-allocatable resource claim not referenced by any container"
            " within the pod"
        )
    yield NodeAllocatableResourceClaimStatus(
        name,
        containers,
        {
            resource: canonical(amount, binary=resource != resources.CPU)
            for resource, amount in sorted(amounts.items())
        },
    )


def _amounts(claim: ResourceClaim, allocated: Sequence[Allocated]) -> dict[str, int]:
    """Return what devices take of their node, by resource in nano units."""
    amounts: dict[str, int] = {}
    for device, consumed in allocated:
        for resource, mapping in device.node_allocatable_resource_mappings.items():
            written = mapping.allocation_multiplier
            amount = NANO if written is None else parse(written)
            if mapping.capacity_key is not None:
                if consumed is None:
                    raise _RefusedError(
                        f"claim {claim.metadata.key}, device {device.name}: ConsumedCapacity is"
                        f" nil, but Capacity key '{mapping.capacity_key}' is set in"
                        f" NodeAllocatableResourceMappings for resource {resource}",
                        Code.ERROR,
                    )
                if mapping.capacity_key not in consumed:
                    continue
                amount = parse(consumed[mapping.capacity_key]) * amount // NANO
            amounts[resource] = amounts.get(resource, 0) + amount
    return amounts


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
