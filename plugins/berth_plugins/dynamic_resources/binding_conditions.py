"""Devices that must get ready before a pod is bound: what their drivers say (spec §5.17)."""

from datetime import UTC, datetime
from typing import Final

from berth.kube.objects.devices import ResourceClaim

_ESCAPES: Final = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
    '"': r"\"", "\\": r"\\",
}  # fmt: skip

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
    """Whether *claim* is allocated and all of its devices are ready.

    Raises BindingFailedError if a device has failed. The first device that is not ready decides:
    what is said of later ones does not count yet. Only devices with binding conditions can fail.
    """
    allocation = claim.status.allocation
    if allocation is None:
        return False
    said = {
        (status.id, status.share_id): {c.type: c for c in status.conditions if c.status == "True"}
        for status in claim.status.devices
    }
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        true = said.get((result.id, result.share_id), {})
        for name in result.binding_failure_conditions:
            if name in true:
                condition = true[name]
                raise BindingFailedError(
                    f"device binding failed: claim={claim.metadata.name},"
                    f" reason={condition.reason}, message={_quoted(condition.message)}"
                )
        if not true.keys() >= set(result.binding_conditions):
            return False
    return True


def is_late(claim: ResourceClaim, *, timeout: float, now: float) -> bool:
    """Whether more than *timeout* seconds have passed since *claim* was allocated."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    since = datetime.fromisoformat(allocation.allocation_timestamp).astimezone(UTC)
    return now > since.timestamp() + timeout


def is_lost(claim: ResourceClaim, *, timeout: float, now: float) -> bool:
    """Whether waiting for the devices of *claim* is in vain."""
    if not has_conditions(claim):
        return False
    try:
        return not is_ready(claim) and is_late(claim, timeout=timeout, now=now)
    except BindingFailedError:
        return True


def _quoted(text: str) -> str:
    """Return *text* as Go's ``%q`` prints it."""
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
