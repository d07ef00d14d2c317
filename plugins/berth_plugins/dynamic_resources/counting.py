"""Counts of devices that would do for a claim: free ones, and who has the others."""

from collections.abc import Iterator, Sequence

import msgspec

from berth.kube.objects.devices import DeviceId, ResourceClaim
from berth.kube.objects.node import Node
from berth.scheduler.framework.change import Change, ChangeKind, Detail
from berth.scheduler.framework.words import counted, listed
from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.pools import Pool, PoolDevice
from berth_plugins.dynamic_resources.requests import (
    IN_MEMORY,
    AllocationError,
    ClaimRequests,
    Request,
)

Holders = dict[DeviceId, list[ResourceClaim]]


class DeviceCount(msgspec.Struct):
    """The devices that match the selectors of one request, and of the class it is for.

    Counted without what only a search can tell: constraints, shared capacities and counters.
    """

    claim: ClaimRequests
    alternatives: tuple[Request, ...]
    matching: set[DeviceId] = msgspec.field(default_factory=set)
    free: set[DeviceId] = msgspec.field(default_factory=set)
    num_nodes: int = 0
    """How many nodes see any of them."""

    @property
    def needed(self) -> int:
        """How many devices the request needs; 0 if all there are, at least."""
        return min(0 if one.takes_all else one.written.count for one in self.alternatives)

    def add(self, node: Node, pools: Sequence[Pool], in_use: AllocatedDevices) -> None:
        """Count what *node* sees, which sees *pools*."""
        devices = {
            device.id
            for pool in pools
            for device in pool.devices
            if device.is_for(node) and any(_selects(one, device) for one in self.alternatives)
        }
        self.matching |= devices
        self.free |= {id_ for id_ in devices if not in_use.is_dedicated(id_)}
        self.num_nodes += bool(devices)

    @property
    def wants(self) -> str:
        """ "As in "claim default/gpu asks for 2 devices of class gpu.example.com"."""
        classes = dict.fromkeys(one.device_class.metadata.name for one in self.alternatives)
        number = counted(self.needed, "device") if self.needed else "all devices"
        whose = "the pod" if self.claim.name == IN_MEMORY else f"claim {self.claim.name}"
        return f"{whose} asks for {number} of class {' or '.join(classes)}"

    def holders(self, holders: Holders) -> list[str]:
        """Return the pods, or else claims, that have matching devices."""
        found = dict.fromkeys(
            name
            for id_ in sorted(self.matching - self.free)
            for claim in holders.get(id_, ())
            for name in _users(claim)
        )
        return list(found)

    def told(self, holders: Holders) -> str:
        """Return "4 devices on 2 nodes match, 1 free, the others held by default/a"."""
        devices, matching = counted(len(self.matching), "device"), len(self.matching)
        where = f"{devices} on {counted(self.num_nodes, 'node')} match{'es' * (matching == 1)}"
        names = self.holders(holders)
        rest = "the others " if self.free else ""
        return f"{where}, {len(self.free)} free" + (
            f", {rest}held by {listed(names)}" if names else ""
        )


def counts_for(claims: Sequence[ClaimRequests]) -> list[DeviceCount]:
    """Return a count for each request of *claims*, of nothing so far."""
    return [DeviceCount(claim, choice) for claim in claims for choice in claim.requests]


def over_all(counts: Sequence[DeviceCount], claims: ResourceClaimTracker) -> str:
    """Say of the requests that there are too few devices for, or else of all, what there is."""
    scarce = [count for count in counts if len(count.free) < max(count.needed, 1)]
    holders = claims.holders()
    return "; ".join(
        f"{count.wants}: {count.told(holders)}"
        if count.matching
        else f"{count.wants}: no device matches on any node"
        for count in scarce or counts
    )


def on_node(counts: Sequence[DeviceCount], holders: Holders) -> Iterator[Detail]:
    """Tell for each request that a node has too few devices for what it has, and who has them."""
    is_told = False
    for count in counts:
        needed, matching, free = max(count.needed, 1), len(count.matching), len(count.free)
        if free >= needed:
            continue
        is_told = True
        if matching < needed:
            yield Detail(f"{count.wants}, {matching or 'none'} here match{'es' * (matching < 2)}")
            continue
        lacking, names = needed - free, count.holders(holders)
        words = f"free {counted(lacking, 'device')} for claim {count.claim.name}"
        change = Change(
            kind=ChangeKind.FREE_DEVICE,
            what=count.claim.name,
            amount=lacking,
            shortfall=lacking / needed,
            words=f"{words}, held by {listed(names)}" if names else words,
        )
        yield Detail(f"{count.wants}: {count.told(holders)}", change)
    if not is_told:
        yield Detail(
            "has matching devices for each request, but not for all together: their constraints,"
            " taints or shared capacity leave too few"
        )


def _selects(request: Request, device: PoolDevice) -> bool:
    """Ask the selectors; one that fails selects nothing, which the search has told as an error."""
    try:
        return request.selects(device, lambda: None)
    except AllocationError:
        return False


def _users(claim: ResourceClaim) -> Iterator[str]:
    """Yield the pods that a claim is reserved for, or else the claim."""
    namespace, consumers = claim.metadata.namespace, claim.status.reserved_for
    for consumer in consumers:
        yield f"{namespace}/{consumer.name}"
    if not consumers:
        yield f"claim {claim.metadata.key}"
