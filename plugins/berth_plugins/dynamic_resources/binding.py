"""From devices found to claims written: what Reserve, PreBind and Unreserve do (spec §5.17)."""

import logging
from collections.abc import Sequence
from typing import Final

from berth.kube.objects.devices import ResourceClaim, ResourceClaimConsumerReference
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import GroupKey, PodGroup
from berth.runtime.clock import rfc3339
from berth.scheduler.framework.assume_cache import OutOfSyncError
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.outcomes import DeviceWait
from berth_plugins.dynamic_resources.binding_conditions import (
    POLL_INTERVAL,
    BindingFailedError,
    BindingTimeoutError,
    awaited_drivers,
    has_conditions,
    is_late,
    is_ready,
)
from berth_plugins.dynamic_resources.claim_tracker import PendingAllocation, ResourceClaimTracker
from berth_plugins.dynamic_resources.claim_writes import ClaimWriteError, ClaimWrites, doing
from berth_plugins.dynamic_resources.features import Features
from berth_plugins.dynamic_resources.group_claims import consumer_of, consumer_of_group
from berth_plugins.dynamic_resources.node_search import claim_in_memory
from berth_plugins.dynamic_resources.requests import IN_MEMORY
from berth_plugins.dynamic_resources.results import allocation_of
from berth_plugins.dynamic_resources.state import DevicesOfPod, NodeFind

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
        self._features = Features.of(handle.features)
        self._claim_writes = ClaimWrites(
            handle.writes.resource_claims,
            handle.clock,
            has_status=self._features.device_status,
        )
        self._clock = handle.clock
        self._claims = handle.listers.shared(ResourceClaimTracker)
        self._timeout = timeout

    # In memory.

    def take(
        self, devices: DevicesOfPod, pod: Pod, node_name: str, group: GroupKey | None
    ) -> str | None:
        """Note that what was found on the node is taken, and that *pod* counts on what it shares.

        The pods of *group* may share what is taken. Returns the key of a claim that the pod was to
        share and whose devices are given up by now; None if there is none.
        """
        timestamp = rfc3339(self._clock.now())
        find = devices.found.get(node_name) or NodeFind()
        for requests, picks in zip(find.claims, find.picks, strict=True):
            uid = requests.claim.metadata.uid
            allocation = allocation_of(
                requests,
                picks,
                node_name=node_name,
                rng=self._handle.rng,
                timestamp=timestamp,
                features=self._features,
            )
            pending = PendingAllocation(allocation, group, {pod.metadata.uid})
            devices.pending[uid] = pending
            self._claims.signal_claim_pending_allocation(uid, pending)
        for claim in devices.claims:
            meta = claim.metadata
            if meta.uid not in devices.shared:
                continue
            shared = self._claims.pending_allocation(meta.uid)
            if shared is not None:
                shared.sharers.add(pod.metadata.uid)
                devices.pending[meta.uid] = shared
            elif self._newest(claim).status.allocation is None:
                return meta.key
        return None

    def give_back(self, devices: DevicesOfPod, pod: Pod) -> None:
        """Undo :meth:`take`, and whatever :meth:`write` has come to."""
        for claim in devices.claims:
            meta = claim.metadata
            pending = devices.pending.pop(meta.uid, None)
            if pending is not None and self._claims.leave_pending_allocation(
                claim, pending, pod.metadata.uid
            ):
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
            await self._claim_writes.release(claim, consumer_of(pod))

        self._writes.start(f"release claim {claim.metadata.key}", release)

    def unreserve_group(self, claim: ResourceClaim, group: PodGroup) -> None:
        """Take a claim away from *group*, unless some of its pods are on nodes by then."""
        meta = group.metadata
        key = GroupKey(meta.namespace, meta.name)

        async def unreserve() -> None:
            async with self._claims.write_lock(claim.metadata.uid):
                state = self._handle.pod_groups.get(key)
                if state is not None and state.scheduled_pods_count:
                    return
                if not self._newest(claim).is_reserved_for(meta.uid):
                    return  # another pod of the group has done it
                written = await self._claim_writes.release(claim, consumer_of_group(group))
                self._assume(written)

        self._writes.start(f"unreserve claim {claim.metadata.key} for pod group {key}", unreserve)

    def deallocate(self, claim: ResourceClaim, pod: Pod) -> None:
        """Take the devices away from a claim that nobody but *pod* uses."""

        async def deallocate() -> None:
            async with self._claims.write_lock(claim.metadata.uid):
                await self._claim_writes.deallocate(self._newest(claim), pod)

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
            devices.claims[index] = await self._reserve(claim, devices, pod)
        claims = list(devices.claims)
        extended = await self._write_extended_resources(devices, pod, node_name)
        if extended is not None:
            claims.append(extended)
        await self._wait_until_ready(claims, devices, pod, node_name)

    async def _reserve(
        self, claim: ResourceClaim, devices: DevicesOfPod, pod: Pod
    ) -> ResourceClaim:
        """Write the claim, one pod after the other: what one wrote the others need not write."""
        uid = claim.metadata.uid
        consumer = _consumer(claim, devices, pod)
        async with self._claims.write_lock(uid):
            claim = self._newest(claim)
            pending = devices.pending.get(uid)
            if pending is not None and pending.is_in(claim):  # and we may not know that we did it
                self._claims.end_pending_allocation(claim, pending)
            if pending is None or pending.is_written:
                if claim.is_reserved_for(consumer.uid):
                    return claim
                written = await self._claim_writes.reserve(claim, consumer, None)
            else:
                written = await self._claim_writes.reserve(claim, consumer, pending.allocation)
            self._assume(written)
            if pending is not None:
                self._claims.end_pending_allocation(claim, pending)
        return written

    def _newest(self, claim: ResourceClaim) -> ResourceClaim:
        """Return *claim* as it is known by now."""
        meta = claim.metadata
        newest = self._claims.get(meta.namespace, meta.name)
        return claim if newest is None or newest.metadata.uid != meta.uid else newest

    def _assume(self, written: ResourceClaim) -> None:
        try:
            self._claims.assume_claim_after_api_call(written)
        except OutOfSyncError as exc:  # the watch was faster, or somebody else
            log.debug("claim not assumed", extra={"claim": written.metadata.key, "why": str(exc)})

    async def _write_extended_resources(
        self, devices: DevicesOfPod, pod: Pod, node_name: str
    ) -> ResourceClaim | None:
        """Create the claim for extended resources, if any; tell the pod what of it is for whom."""
        find, extended = devices.found.get(node_name), devices.extended
        if extended is None or find is None or not find.mappings:
            return None
        in_memory = find.claims[-1].claim
        extended.claim = await self._claim_writes.create(in_memory, pod)
        allocation = devices.pending[in_memory.metadata.uid].allocation
        extended.claim = await self._claim_writes.reserve(
            extended.claim, consumer_of(pod), allocation
        )
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
            if self._claims.pending_allocation(in_memory.metadata.uid) is None:
                return  # given back
            if self._clock.monotonic() >= end:
                log.warning("created claim does not appear", extra={"claim": meta.key})
                break
            await self._clock.sleep(APPEARANCE_POLL_INTERVAL)
        else:
            self._assume(written)
        self._claims.remove_claim_pending_allocation(in_memory)

    async def _wait_until_ready(
        self, claims: Sequence[ResourceClaim], devices: DevicesOfPod, pod: Pod, node_name: str
    ) -> None:
        if not self._features.binding_conditions:
            return
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
            await self._poll(claims, devices, pod, deadline=started + self._timeout)
        except Exception as exc:
            tell(_how_it_ended(exc))
            raise
        tell("success")

    async def _poll(
        self, claims: Sequence[ResourceClaim], devices: DevicesOfPod, pod: Pod, *, deadline: float
    ) -> None:
        """Return when all claims are ready; *deadline* is on the monotonic clock."""
        while not self._are_ready(claims, devices, pod):
            left = deadline - self._clock.monotonic()
            await self._clock.sleep(min(POLL_INTERVAL, left))
            if left <= POLL_INTERVAL:
                raise BindingTimeoutError("device binding timeout: context deadline exceeded")

    def _are_ready(self, claims: Sequence[ResourceClaim], devices: DevicesOfPod, pod: Pod) -> bool:
        """Look at what the watch last told; the first claim that is not ready decides."""
        for claim in claims:
            meta = claim.metadata
            newest = self._claims.get(meta.namespace, meta.name)
            if newest is None:
                raise ClaimWriteError(f'could not find ResourceClaim "{meta.key}"')
            # A claim that lost its allocation, or its reservation, is waited for in vain: when the
            # time is up the pod is tried again.
            consumer = _consumer(claim, devices, pod)
            if not is_ready(newest) or not newest.is_reserved_for(consumer.uid):
                if is_late(newest, timeout=self._timeout, now=self._clock.now()):
                    raise BindingTimeoutError(f"device binding timeout: claim={meta.name}")
                return False
        return True


def _consumer(
    claim: ResourceClaim, devices: DevicesOfPod, pod: Pod
) -> ResourceClaimConsumerReference:
    """Return whom *claim* is reserved for: the group of *pod*, if it is the group's."""
    group = devices.groups.get(claim.metadata.uid)
    return consumer_of(pod) if group is None else consumer_of_group(group)


def _how_it_ended(error: Exception) -> DeviceWait:
    match error:
        case BindingTimeoutError():
            return "timeout"
        case BindingFailedError():
            return "failure"
        case _:
            return "error"
