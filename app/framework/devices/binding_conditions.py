"""Devices that must get ready before a pod is bound: what their drivers say (spec §5.17)."""

from datetime import UTC, datetime
from typing import Final

from app.objects.devices import ResourceClaim

POLL_INTERVAL: Final = 5.0
"""Seconds between looks at a claim whose devices are not ready."""


class BindingFailedError(Exception):
    """A device says that it will not get ready, or did not in time; the text is for people."""


class BindingTimeoutError(BindingFailedError):
    """A device did not get ready in time."""


def has_conditions(claim: ResourceClaim) -> bool:
    """Whether some device of *claim* must be waited for."""
    return bool(awaited_drivers(claim))


def awaited_drivers(claim: ResourceClaim) -> set[str]:
    """Return the drivers of the devices of *claim* that must be waited for."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation else ()
    return {result.driver for result in results if result.binding_conditions}


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all devices of *claim* are ready; BindingFailedError if one has failed."""
    allocation = claim.status.allocation
    said = {
        (status.id, status.share_id): {c.type for c in status.conditions if c.status == "True"}
        for status in claim.status.devices
    }
    ready = True
    for result in allocation.devices.results if allocation else ():
        true = said.get((result.id, result.share_id), set())
        for condition in result.binding_failure_conditions:
            if condition in true:
                raise BindingFailedError(
                    f"device binding failed: claim={claim.metadata.key}, device={result.id},"
                    f" condition={condition}"
                )
        ready = ready and true.issuperset(result.binding_conditions)
    return ready


def is_late(claim: ResourceClaim, *, timeout: float, now: float) -> bool:
    """Whether *timeout* seconds have passed since *claim* was allocated."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    since = datetime.fromisoformat(allocation.allocation_timestamp).astimezone(UTC)
    return now >= since.timestamp() + timeout


def is_lost(claim: ResourceClaim, *, timeout: float, now: float) -> bool:
    """Whether waiting for the devices of *claim* is in vain."""
    if not has_conditions(claim):
        return False
    try:
        return not is_ready(claim) and is_late(claim, timeout=timeout, now=now)
    except BindingFailedError:
        return True
