"""ResourceClaims as the API tells them, with what is assumed on top (spec §4.8)."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from berth.framework.devices.allocated import AllocatedDevices
from berth.objects.devices import (
    EXTENDED_RESOURCE_CLAIM,
    AllocationResult,
    DeviceId,
    ResourceClaim,
)

Change: TypeAlias = Callable[[ResourceClaim | None, ResourceClaim | None], None]
"""Told the old and the new version of a claim; None where there is none."""


class OutOfSyncError(Exception):
    """The claim has changed, or is gone, since what is to be assumed was written."""


class _Known:
    __slots__ = ("api", "latest")

    def __init__(self, claim: ResourceClaim) -> None:
        self.latest = self.api = claim


class ResourceClaims:
    """All claims: the newest of what a watch told and of what we know to have been written.

    Beside that it knows allocations in flight, decided and not yet written. Their devices are in
    use; others must wait for such a claim. It has the shape of an informer's handler; one instance
    is shared by all profiles.
    """

    def __init__(self, claims: Iterable[ResourceClaim] = ()) -> None:
        self.in_use = AllocatedDevices()
        self._claims: dict[tuple[str, str], _Known] = {}
        self._in_flight: dict[str, AllocationResult] = {}
        self._counted: dict[str, AllocationResult] = {}
        self._of_extended_resources: dict[str, ResourceClaim] = {}
        self._followers: list[Change] = []
        for claim in claims:
            self.on_add(claim)

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return the newest version known."""
        known = self._claims.get((namespace, name))
        return None if known is None else known.latest

    def for_extended_resources(self, pod_uid: str) -> ResourceClaim | None:
        """Return the claim that was made for the extended resources of a pod."""
        return self._of_extended_resources.get(pod_uid)

    def holders(self) -> dict[DeviceId, list[ResourceClaim]]:
        """Return the claims that each device in use is allocated to, looking at all of them."""
        found: dict[DeviceId, list[ResourceClaim]] = {}
        for known in self._claims.values():
            allocation = self._counted.get(known.latest.metadata.uid)
            for result in allocation.devices.results if allocation else ():
                if not result.admin_access:
                    found.setdefault(result.id, []).append(known.latest)
        return found

    def follow(self, change: Change) -> None:
        """Call *change* at every change from now on, assumed changes included."""
        self._followers.append(change)

    # What the watch tells.

    def on_add(self, claim: ResourceClaim) -> None:
        key = (claim.metadata.namespace, claim.metadata.name)
        known = self._claims.get(key)
        if known is None:
            self._claims[key] = _Known(claim)
            self._changed(None, claim)
        elif _is_newer(claim, than=known.latest):
            before = known.latest
            known.latest = known.api = claim
            self._changed(before, claim)

    def on_update(self, _old: ResourceClaim, new: ResourceClaim) -> None:
        self.on_add(new)

    def on_delete(self, claim: ResourceClaim) -> None:
        known = self._claims.pop((claim.metadata.namespace, claim.metadata.name), None)
        if known is not None:
            self._changed(known.latest, None)

    # What we assume.

    def assume(self, claim: ResourceClaim) -> None:
        """Take a claim as the API answered our write; OutOfSyncError if a newer one is known."""
        known = self._claims.get((claim.metadata.namespace, claim.metadata.name))
        if known is None:
            raise OutOfSyncError(f"resource claim {claim.metadata.key} is not known")
        if _is_newer(known.latest, than=claim):
            raise OutOfSyncError(
                f"resource claim {claim.metadata.key}: resourceVersion"
                f" {claim.metadata.resource_version} is older than the known"
                f" {known.latest.metadata.resource_version}"
            )
        before, known.latest = known.latest, claim
        self._changed(before, claim)

    def restore(self, namespace: str, name: str) -> None:
        """Go back to what the watch told last; nothing happens if the claim is not known."""
        known = self._claims.get((namespace, name))
        if known is not None and known.latest is not known.api:
            before, known.latest = known.latest, known.api
            self._changed(before, known.api)

    def is_in_flight(self, uid: str) -> bool:
        """Whether an allocation of the claim is decided and not yet written."""
        return uid in self._in_flight

    def start_allocation(self, uid: str, allocation: AllocationResult) -> None:
        """Note that *allocation* is decided; until it is ended its devices are in use."""
        self._in_flight[uid] = allocation
        self._count(uid, allocation)

    def end_allocation(self, claim: ResourceClaim) -> bool:
        """Note that the allocation was written or given up; say whether there was one."""
        uid = claim.metadata.uid
        if self._in_flight.pop(uid, None) is None:
            return False
        latest = self.get(claim.metadata.namespace, claim.metadata.name)
        known = latest is not None and latest.metadata.uid == uid
        self._count(uid, latest.status.allocation if known and latest else None)
        return True

    # What follows.

    def _changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._count(old.metadata.uid, self._in_flight.get(old.metadata.uid))
            self._index(old, None)
        if new is not None:
            uid = new.metadata.uid
            self._count(uid, self._in_flight.get(uid) or new.status.allocation)
            self._index(new, new)
        for change in self._followers:
            change(old, new)

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


def _is_newer(claim: ResourceClaim, *, than: ResourceClaim) -> bool:
    """Compare resource versions, which are integers; another object is newer, too."""
    if claim.metadata.uid != than.metadata.uid:
        return True
    mine, theirs = claim.metadata.resource_version, than.metadata.resource_version
    if not (mine.isdecimal() and theirs.isdecimal()):
        return mine != theirs
    return int(mine) > int(theirs)
