"""Allocations of ResourceClaims, those in flight included (spec §4.8, §5.17)."""

import asyncio
from collections.abc import Iterator
from weakref import WeakValueDictionary

import msgspec

from berth.kube.objects.devices import (
    EXTENDED_RESOURCE_CLAIM,
    AllocationResult,
    DeviceId,
    ResourceClaim,
)
from berth.kube.objects.pod_group import GroupKey
from berth.scheduler.framework.assume_cache import resource_claim_cache
from berth.scheduler.framework.listers import Listers
from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices


class PendingAllocation(msgspec.Struct, eq=False):
    """An allocation that is decided and not yet written."""

    allocation: AllocationResult
    group: GroupKey | None = None
    """Whose pods may share it; None: nobody but the pod that it was made for."""
    sharers: set[str] = msgspec.field(default_factory=set)
    """UIDs of the pods that count on it."""
    is_written: bool = False
    """Whether one of the sharers has written it to the claim."""

    def is_in(self, claim: ResourceClaim) -> bool:
        """Whether *claim* has just these devices."""
        written = claim.status.allocation
        return written is not None and _devices_of(written) == _devices_of(self.allocation)


class ResourceClaimTracker:
    """Which devices are in use: those of all claims, and of allocations in flight.

    An allocation is in flight while it is decided and not yet written. Its devices are in use, and
    others must wait for its claim. All profiles share one tracker, in ``Listers.shared``.
    """

    def __init__(self, listers: Listers) -> None:
        self.in_use = AllocatedDevices()
        self.cache = resource_claim_cache(listers)
        self._in_flight: dict[str, PendingAllocation] = {}
        self._counted: dict[str, AllocationResult] = {}
        self._of_extended_resources: dict[str, ResourceClaim] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.cache.follow(self._on_change)

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return the newest version known."""
        return self.cache.get(namespace, name)

    def __iter__(self) -> Iterator[ResourceClaim]:
        """Yield the newest versions known of all claims."""
        return iter(self.cache)

    def allocation(self, claim: ResourceClaim) -> AllocationResult | None:
        """Return what counts as allocated to *claim*: what is in flight, or else written."""
        return self._counted.get(claim.metadata.uid)

    def for_extended_resources(self, pod_uid: str) -> ResourceClaim | None:
        """Return the claim that was made for the extended resources of a pod."""
        return self._of_extended_resources.get(pod_uid)

    def holders(self) -> dict[DeviceId, list[ResourceClaim]]:
        """Return the claims that each device in use is allocated to, looking at all of them."""
        holders: dict[DeviceId, list[ResourceClaim]] = {}
        for claim in self:
            allocation = self.allocation(claim)
            for result in allocation.devices.results if allocation else ():
                if not result.admin_access:
                    holders.setdefault(result.id, []).append(claim)
        return holders

    # What is decided and not yet reported by the watch.

    def assume_claim_after_api_call(self, claim: ResourceClaim) -> None:
        """Take a claim as the API answered our write; OutOfSyncError if a newer one is known."""
        self.cache.assume(claim)

    def assumed_claim_restore(self, namespace: str, name: str) -> None:
        """Go back to what the watch reported; nothing happens if the claim is not assumed."""
        self.cache.restore(namespace, name)

    def pending_allocation(self, uid: str) -> PendingAllocation | None:
        """Return the allocation in flight for the claim of a UID; None if there is none."""
        return self._in_flight.get(uid)

    def signal_claim_pending_allocation(self, uid: str, pending: PendingAllocation) -> None:
        """Note that *pending* is decided; until it is removed its devices are in use."""
        self._in_flight[uid] = pending
        self._count(uid, pending.allocation)

    def leave_pending_allocation(
        self, claim: ResourceClaim, pending: PendingAllocation, pod_uid: str
    ) -> bool:
        """Note that a pod does not count on *pending* any more; say whether that was its end.

        It ends with its last sharer, unless it had ended before because it was written.
        """
        pending.sharers.discard(pod_uid)
        if pending.sharers or self._in_flight.get(claim.metadata.uid) is not pending:
            return False
        return self.remove_claim_pending_allocation(claim)

    def end_pending_allocation(self, claim: ResourceClaim, pending: PendingAllocation) -> None:
        """Note that *pending* was written."""
        pending.is_written = True
        if self._in_flight.get(claim.metadata.uid) is pending:
            self.remove_claim_pending_allocation(claim)

    def remove_claim_pending_allocation(self, claim: ResourceClaim) -> bool:
        """Note that the allocation was written or given up; say whether there was one."""
        uid = claim.metadata.uid
        if self._in_flight.pop(uid, None) is None:
            return False
        latest = self.get(claim.metadata.namespace, claim.metadata.name)
        known = latest is not None and latest.metadata.uid == uid
        self._count(uid, latest.status.allocation if known and latest else None)
        return True

    def write_lock(self, uid: str) -> asyncio.Lock:
        """Return what is held while the status of the claim of a UID is written.

        So that pods that share a claim do not write its allocation twice.
        """
        lock = self._locks.get(uid)
        if lock is None:
            lock = self._locks[uid] = asyncio.Lock()
        return lock

    # What follows.

    def _on_change(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._count(old.metadata.uid, self._decided(old.metadata.uid))
            self._index(old, None)
        if new is not None:
            uid = new.metadata.uid
            self._count(uid, self._decided(uid) or new.status.allocation)
            self._index(new, new)

    def _decided(self, uid: str) -> AllocationResult | None:
        pending = self._in_flight.get(uid)
        return None if pending is None else pending.allocation

    def _count(self, uid: str, allocation: AllocationResult | None) -> None:
        before = self._counted.pop(uid, None)
        if before is not None and allocation is not None and _are_same(before, allocation):
            self._counted[uid] = allocation
            return
        if before is not None:
            self.in_use.remove(before)
        if allocation is not None:
            self._counted[uid] = allocation
            self.in_use.add(allocation)

    def _index(self, claim: ResourceClaim, now: ResourceClaim | None) -> None:
        owner = claim.metadata.controller
        if owner is None or claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) != "true":
            return
        if now is None:
            self._of_extended_resources.pop(owner.uid, None)
        else:
            self._of_extended_resources[owner.uid] = now


def _devices_of(allocation: AllocationResult) -> list[tuple[DeviceId, str | None]]:
    return [(result.id, result.share_id) for result in allocation.devices.results]


def _are_same(one: AllocationResult, other: AllocationResult) -> bool:
    """Whether both have the same devices, and as much of each."""
    return one.devices.results == other.devices.results
