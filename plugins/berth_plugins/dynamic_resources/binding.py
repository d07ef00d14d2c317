"""From devices found to claims written: what Reserve, PreBind and Unreserve do (spec §5.17)."""

import logging
from collections.abc import Sequence
from typing import Final

from berth.clock import rfc3339
from berth.framework.assume_cache import OutOfSyncError
from berth.framework.handle import Handle
from berth.framework.outcomes import DeviceWait
from berth.objects.devices import AllocationResult, ResourceClaim
from berth.objects.pod import Pod
from berth_plugins.dynamic_resources.binding_conditions import (
    POLL_INTERVAL,
    BindingFailedError,
    BindingTimeoutError,
    awaited_drivers,
    has_conditions,
    is_late,
    is_ready,
)
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.claim_writes import ClaimWriteError, ClaimWrites, doing
from berth_plugins.dynamic_resources.node_search import claim_in_memory
from berth_plugins.dynamic_resources.requests import IN_MEMORY
from berth_plugins.dynamic_resources.results import allocation_of
from berth_plugins.dynamic_resources.state import DevicesOfPod

log = logging.getLogger(__name__)

APPEARANCE_POLL_INTERVAL: Final = 1.0
APPEARANCE_TIMEOUT: Final = 120.0
"""How often, and how long, we look for a claim that we have created, in seconds."""


class ClaimBinding:
    """Takes devices in memory, writes that to their claims, and gives them back.

    Until the watch tells of what was written, the devices are kept in use by an allocation in
    flight.
    """

    def __init__(self, handle: Handle, *, timeout: float) -> None:
        """*timeout* is how many seconds after their allocation devices must be ready."""
        self._handle = handle
        self._writes = handle.writes
        self._claim_writes = ClaimWrites(handle.writes.resource_claims, handle.clock)
        self._clock = handle.clock
        self._claims = handle.listers.shared(ResourceClaimTracker)
        self._timeout = timeout

    # In memory.

    def take(self, devices: DevicesOfPod, node_name: str) -> None:
        """Note that what was found on the node is taken."""
        timestamp = rfc3339(self._clock.now())
        find = devices.found[node_name]
        for claim, picks in zip(find.claims, find.picks, strict=True):
            uid = claim.claim.metadata.uid
            allocation = allocation_of(
                claim, picks, node_name=node_name, rng=self._handle.rng, timestamp=timestamp
            )
            devices.allocations[uid] = allocation
            self._claims.signal_claim_pending_allocation(uid, allocation)

    def give_back(self, devices: DevicesOfPod, pod: Pod) -> None:
        """Undo :meth:`take`, and whatever :meth:`write` has come to."""
        for claim in devices.claims:
            meta = claim.metadata
            if self._claims.remove_claim_pending_allocation(claim):
                self._claims.assumed_claim_restore(meta.namespace, meta.name)
            if claim.status.allocation is not None and claim.is_reserved_for(pod.metadata.uid):
                self._release(claim, pod)
        extended = devices.extended
        if extended is not None and not extended.is_left_over:
            self._claims.remove_claim_pending_allocation(claim_in_memory(pod))
            if extended.claim.metadata.name != IN_MEMORY:
                self.delete(extended.claim)

    # To the API, by and by.

    def _release(self, claim: ResourceClaim, pod: Pod) -> None:
        async def release() -> None:
            await self._claim_writes.release(claim, pod)

        self._writes.start(f"release claim {claim.metadata.key}", release)

    def deallocate(self, claim: ResourceClaim, pod: Pod) -> None:
        """Take the devices away from a claim that nobody but *pod* uses."""

        async def deallocate() -> None:
            await self._claim_writes.deallocate(claim, pod)

        self._writes.start(f"deallocate claim {claim.metadata.key}", deallocate)

    def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim that was made for extended resources."""

        async def delete() -> None:
            await self._claim_writes.delete(claim)

        self._writes.start(f"delete claim {claim.metadata.key}", delete)

    # To the API, while the pod's binding waits.

    async def write(self, devices: DevicesOfPod, pod: Pod, node_name: str) -> None:
        """Allocate and reserve all claims, and wait until their devices are ready.

        Raises ClaimWriteError, ConflictError and BindingFailedError.
        """
        for index, claim in enumerate(devices.claims):
            if not claim.is_reserved_for(pod.metadata.uid):
                allocation = devices.allocations.get(claim.metadata.uid)
                devices.claims[index] = await self._reserve(claim, pod, allocation)
        claims = list(devices.claims)
        extended = await self._write_extended_resources(devices, pod, node_name)
        if extended is not None:
            claims.append(extended)
        await self._wait_until_ready(claims, pod, node_name)

    async def _reserve(
        self, claim: ResourceClaim, pod: Pod, allocation: AllocationResult | None
    ) -> ResourceClaim:
        written = await self._claim_writes.reserve(claim, pod, allocation)
        try:
            self._claims.assume_claim_after_api_call(written)
        except OutOfSyncError as exc:  # the watch was faster, or somebody else
            log.debug("claim not assumed", extra={"claim": claim.metadata.key, "why": str(exc)})
        self._claims.remove_claim_pending_allocation(claim)
        return written

    async def _write_extended_resources(
        self, devices: DevicesOfPod, pod: Pod, node_name: str
    ) -> ResourceClaim | None:
        """Create the claim for extended resources, if any; tell the pod what of it is for whom."""
        find, extended = devices.found.get(node_name), devices.extended
        if extended is None or find is None or not find.mappings:
            return None
        in_memory = find.claims[-1].claim
        extended.claim = await self._claim_writes.create(in_memory, pod)
        allocation = devices.allocations[in_memory.metadata.uid]
        extended.claim = await self._claim_writes.reserve(extended.claim, pod, allocation)
        written = extended.claim

        async def hand_over() -> None:
            await self._hand_over(in_memory, written)

        if has_conditions(written):  # what is said of the devices is read from the watch
            await hand_over()
        else:
            self._writes.start(f"await claim {written.metadata.key}", hand_over)
        status = {
            "resourceClaimName": written.metadata.name,
            "requestMappings": [
                {
                    "containerName": mapping.container_name,
                    "resourceName": mapping.resource_name,
                    "requestName": mapping.request_name,
                }
                for mapping in find.mappings
            ],
        }
        with doing(f"update pod {pod.key} ExtendedResourceClaimStatus"):
            await self._writes.patch_pod_status(pod, {"extendedResourceClaimStatus": status})
        return written

    async def _hand_over(self, in_memory: ResourceClaim, written: ResourceClaim) -> None:
        """Keep the devices in use until the watch tells of the claim that was created."""
        end = self._clock.monotonic() + APPEARANCE_TIMEOUT
        meta = written.metadata
        while self._claims.get(meta.namespace, meta.name) is None:
            if not self._claims.claim_has_pending_allocation(in_memory.metadata.uid):
                return  # given back
            if self._clock.monotonic() >= end:
                log.warning("created claim does not appear", extra={"claim": meta.key})
                break
            await self._clock.sleep(APPEARANCE_POLL_INTERVAL)
        else:
            try:
                self._claims.assume_claim_after_api_call(written)
            except OutOfSyncError as exc:
                log.debug("claim not assumed", extra={"claim": meta.key, "why": str(exc)})
        self._claims.remove_claim_pending_allocation(in_memory)

    async def _wait_until_ready(
        self, claims: Sequence[ResourceClaim], pod: Pod, node_name: str
    ) -> None:
        drivers = sorted(set[str]().union(*map(awaited_drivers, claims)))
        if not drivers:
            return
        self._writes.event(
            pod,
            type="Normal",
            reason="BindingConditionsPending",
            action="Scheduling",
            note=f"waiting for binding conditions for device on node {node_name}",
        )
        started = self._clock.monotonic()

        def tell(status: DeviceWait) -> None:
            seconds = self._clock.monotonic() - started
            for driver in drivers:
                self._handle.outcomes.waited_for_devices(
                    pod.spec.scheduler_name, driver, status, seconds=seconds
                )

        try:
            await self._poll(claims, pod, deadline=started + self._timeout)
        except Exception as exc:
            tell(_how_it_ended(exc))
            raise
        tell("success")

    async def _poll(self, claims: Sequence[ResourceClaim], pod: Pod, *, deadline: float) -> None:
        """Return when all claims are ready; *deadline* is on the monotonic clock."""
        while not self._are_ready(claims, pod):
            left = deadline - self._clock.monotonic()
            await self._clock.sleep(min(POLL_INTERVAL, left))
            if left <= POLL_INTERVAL:
                raise BindingTimeoutError("device binding timeout: context deadline exceeded")

    def _are_ready(self, claims: Sequence[ResourceClaim], pod: Pod) -> bool:
        """Look at what the watch last told; the first claim that is not ready decides."""
        for claim in claims:
            meta = claim.metadata
            newest = self._claims.get(meta.namespace, meta.name)
            if newest is None:
                raise ClaimWriteError(f'could not find ResourceClaim "{meta.key}"')
            # A claim that lost its allocation, or its reservation, is waited for in vain: when the
            # time is up the pod is tried again.
            if not is_ready(newest) or not newest.is_reserved_for(pod.metadata.uid):
                if is_late(newest, timeout=self._timeout, now=self._clock.now()):
                    raise BindingTimeoutError(f"device binding timeout: claim={meta.name}")
                return False
        return True


def _how_it_ended(error: Exception) -> DeviceWait:
    match error:
        case BindingTimeoutError():
            return "timeout"
        case BindingFailedError():
            return "failure"
        case _:
            return "error"
