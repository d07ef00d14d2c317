"""Writes what was decided about claims: allocated, reserved, given back (spec §5.17)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from berth.kube.objects.devices import (
    FINALIZER,
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    claim_body,
    new_claim_body,
)
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.framework.writes import ConflictError, ResourceClaimWrites

TRIES: Final = 5
RETRY_DELAY: Final = 0.01
"""Seconds between tries when a claim was changed since it was read."""


class ClaimWriteError(Exception):
    """A claim cannot be had any more, or not be written; the text is for people."""


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Have errors say what was being done, in kube-scheduler's words."""
    try:
        yield
    except ConflictError as exc:
        raise ConflictError(f"{what}: {exc}") from exc
    except Exception as exc:
        raise ClaimWriteError(f"{what}: {exc}") from exc


class ClaimWrites:
    """Makes the writes for one claim at a time; a claim that was changed is read again."""

    def __init__(
        self, writer: ResourceClaimWrites, clock: Clock, *, has_status: bool = True
    ) -> None:
        """*has_status*: claims have what drivers say of devices (DRAResourceClaimDeviceStatus)."""
        self._writer = writer
        self._clock = clock
        self._has_status = has_status

    async def create(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """Create the claim for the extended resources of *pod*."""
        name = f"{pod.metadata.name}-extended-resources-"
        with doing(f"create claim for extended resources {claim.metadata.namespace}/"):
            return await self._writer.create(new_claim_body(claim, generate_name=name))

    async def reserve(
        self,
        claim: ResourceClaim,
        consumer: ResourceClaimConsumerReference,
        allocation: AllocationResult | None,
    ) -> ResourceClaim:
        """Write that *consumer* uses the claim, and its *allocation* if it has none yet.

        Raises ClaimWriteError when the claim went away or elsewhere in the meantime, or cannot be
        written; ConflictError when others keep changing it.
        """
        for tries_left in reversed(range(TRIES)):
            try:
                return await self._reserve(claim, consumer, allocation)
            except ConflictError:
                if not tries_left:
                    raise
            with doing(f"get updated claim {claim.metadata.key} after conflict"):
                claim = await self._read_again(claim)
        raise AssertionError("unreachable: the last try returns or raises")

    async def _reserve(
        self,
        claim: ResourceClaim,
        consumer: ResourceClaimConsumerReference,
        allocation: AllocationResult | None,
    ) -> ResourceClaim:
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimWriteError(f"claim {claim.metadata.key} got deleted in the meantime")
        body = claim_body(claim)
        if allocation is not None:
            if claim.status.allocation is not None:
                raise ClaimWriteError(
                    f"claim {claim.metadata.key} got allocated elsewhere in the meantime"
                )
            finalizers = body["metadata"].setdefault("finalizers", [])
            if FINALIZER not in finalizers:
                finalizers.append(FINALIZER)
                with doing(f"add finalizer to claim {claim.metadata.key}"):
                    body = claim_body(await self._writer.update(body))
            body.setdefault("status", {})["allocation"] = msgspec.to_builtins(allocation)
        elif claim.status.allocation is None:
            raise ClaimWriteError(
                f"claim {claim.metadata.key} got deallocated elsewhere in the meantime"
            )
        status = body.setdefault("status", {})
        used_by = [*status.get("reservedFor", ()), msgspec.to_builtins(consumer)]
        status["reservedFor"] = used_by
        added = "reservation" if allocation is None else "allocation and reservation"
        with doing(f"add {added} to claim {claim.metadata.key}"):
            return await self._writer.update_status(body)

    async def release(
        self, claim: ResourceClaim, consumer: ResourceClaimConsumerReference
    ) -> ResourceClaim:
        """Write that *consumer* does not use the claim after all."""
        meta = claim.metadata
        patch = {
            "metadata": {"uid": meta.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": consumer.uid}]},
        }
        return await self._writer.patch_status(meta.namespace, meta.name, patch)

    async def deallocate(self, claim: ResourceClaim, pod: Pod) -> None:
        """Take the devices away from a claim, unless others than *pod* use it by now."""
        for tries_left in reversed(range(TRIES)):
            if not may_be_deallocated(claim, pod):
                return
            body = claim_body(claim)
            fields = ("allocation", "reservedFor", "devices")
            for field in fields if self._has_status else fields[:2]:
                body.setdefault("status", {}).pop(field, None)
            try:
                await self._writer.update_status(body)
            except ConflictError:
                if not tries_left:
                    raise
            else:
                return
            claim = await self._read_again(claim)

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim that nobody uses, so at once."""
        for tries_left in reversed(range(TRIES)):
            body = claim_body(claim)
            finalizers = body["metadata"].get("finalizers", [])
            if FINALIZER not in finalizers:
                break
            finalizers.remove(FINALIZER)
            try:
                await self._writer.update(body)
            except ConflictError:
                if not tries_left:
                    raise
                claim = await self._read_again(claim)
            else:
                break
        await self._writer.delete(claim.metadata.namespace, claim.metadata.name)

    async def _read_again(self, claim: ResourceClaim) -> ResourceClaim:
        await self._clock.sleep(RETRY_DELAY)
        return await self._writer.get(claim.metadata.namespace, claim.metadata.name)


def may_be_deallocated(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether nobody but *pod* has an allocated claim."""
    users = {consumer.uid for consumer in claim.status.reserved_for}
    return claim.status.allocation is not None and users <= {pod.metadata.uid}
