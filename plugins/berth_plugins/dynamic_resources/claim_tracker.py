"""What the allocations of ResourceClaims come to, those in flight included (spec §4.8, §5.17)."""

from berth.framework.assume_cache import resource_claim_cache
from berth.framework.listers import Listers
from berth.objects.devices import (
    EXTENDED_RESOURCE_CLAIM,
    AllocationResult,
    DeviceId,
    ResourceClaim,
)
from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices


class ResourceClaimTracker:
    """Which devices are in use: those of all claims, and of allocations in flight.

    An allocation is in flight while it is decided and not yet written. Its devices are in use, and
    others must wait for its claim. All profiles share one tracker, in ``Listers.shared``.
    """

    def __init__(self, listers: Listers) -> None:
        self.in_use = AllocatedDevices()
        self.cache = resource_claim_cache(listers)
        self._in_flight: dict[str, AllocationResult] = {}
        self._counted: dict[str, AllocationResult] = {}
        self._of_extended_resources: dict[str, ResourceClaim] = {}
        self.cache.follow(self._on_change)

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return the newest version known."""
        return self.cache.get(namespace, name)

    def for_extended_resources(self, pod_uid: str) -> ResourceClaim | None:
        """Return the claim that was made for the extended resources of a pod."""
        return self._of_extended_resources.get(pod_uid)

    def holders(self) -> dict[DeviceId, list[ResourceClaim]]:
        """Return the claims that each device in use is allocated to, looking at all of them."""
        found: dict[DeviceId, list[ResourceClaim]] = {}
        for claim in self.cache:
            allocation = self._counted.get(claim.metadata.uid)
            for result in allocation.devices.results if allocation else ():
                if not result.admin_access:
                    found.setdefault(result.id, []).append(claim)
        return found

    # What is decided and not yet reported by the watch.

    def assume_claim_after_api_call(self, claim: ResourceClaim) -> None:
        """Take a claim as the API answered our write; OutOfSyncError if a newer one is known."""
        self.cache.assume(claim)

    def assumed_claim_restore(self, namespace: str, name: str) -> None:
        """Go back to what the watch reported; nothing happens if the claim is not assumed."""
        self.cache.restore(namespace, name)

    def claim_has_pending_allocation(self, uid: str) -> bool:
        return uid in self._in_flight

    def signal_claim_pending_allocation(self, uid: str, allocation: AllocationResult) -> None:
        """Note that *allocation* is decided; until it is removed its devices are in use."""
        self._in_flight[uid] = allocation
        self._count(uid, allocation)

    def remove_claim_pending_allocation(self, claim: ResourceClaim) -> bool:
        """Note that the allocation was written or given up; say whether there was one."""
        uid = claim.metadata.uid
        if self._in_flight.pop(uid, None) is None:
            return False
        latest = self.get(claim.metadata.namespace, claim.metadata.name)
        known = latest is not None and latest.metadata.uid == uid
        self._count(uid, latest.status.allocation if known and latest else None)
        return True

    # What follows.

    def _on_change(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._count(old.metadata.uid, self._in_flight.get(old.metadata.uid))
            self._index(old, None)
        if new is not None:
            uid = new.metadata.uid
            self._count(uid, self._in_flight.get(uid) or new.status.allocation)
            self._index(new, new)

    def _count(self, uid: str, allocation: AllocationResult | None) -> None:
        before = self._counted.pop(uid, None)
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
