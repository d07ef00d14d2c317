"""Conditions of a namespace that is being deleted, about its content.

The conditions, reasons and messages are those of kube-controller-manager
(pkg/controller/namespace/deletion/status_condition_utils.go).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from berth.cluster.resources import Object, ResourceType
from berth.runtime.clock import rfc3339

DISCOVERY_FAILURE: Final = "NamespaceDeletionDiscoveryFailure"
GROUP_VERSION_FAILURE: Final = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT_FAILURE: Final = "NamespaceDeletionContentFailure"
CONTENT_REMAINING: Final = "NamespaceContentRemaining"
FINALIZERS_REMAINING: Final = "NamespaceFinalizersRemaining"

FINE: Final[Mapping[str, tuple[str, str]]] = {
    DISCOVERY_FAILURE: ("ResourcesDiscovered", "All resources successfully discovered"),
    GROUP_VERSION_FAILURE: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT_FAILURE: (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    CONTENT_REMAINING: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS_REMAINING: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""Reason and message of each condition when there is nothing to tell. The first two never have
anything: this controller asks the registry for the kinds, not discovery."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left of one kind."""

    count: int
    finalizers: Counter[str]
    """How many objects each finalizer holds."""
    seconds: float
    """Until the last grace period is over."""


def updated(
    before: Sequence[Object],
    namespace: str,
    remains: Sequence[tuple[ResourceType, Remains]],
    errors: Sequence[str],
    *,
    now: float,
) -> list[Object]:
    """Return the conditions after a round of deletion; *errors* are those of whole kinds.

    Times in *before* stay where the status does not change; so do conditions of others.
    """
    told = _told(namespace, remains, errors)
    after = {each["type"]: each for each in before}
    for type_, fine in FINE.items():
        status = "True" if type_ in told else "False"
        reason, message = told.get(type_, fine)
        old = after.get(type_, {})
        since = old.get("lastTransitionTime") if old.get("status") == status else None
        after[type_] = {
            "type": type_,
            "status": status,
            "lastTransitionTime": since or rfc3339(now),
            "reason": reason,
            "message": message,
        }
    return list(after.values())


def _told(
    namespace: str, remains: Sequence[tuple[ResourceType, Remains]], errors: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Return reason and message of the conditions that are true."""
    told: dict[str, tuple[str, str]] = {}
    failures = [
        *errors,
        *(
            f"unexpected items still remain in namespace: {namespace} for gvr: "
            f"{each.group}/{each.version}, Resource={each.plural}"
            for each, found in remains
            if found.count and not found.finalizers and found.seconds <= 0
        ),
    ]
    if failures:
        listed = ", ".join(sorted(failures))
        told[CONTENT_FAILURE] = (
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {len(failures)} remaining: {listed}",
        )
    left = sorted(
        f"{each.plural}.{each.group} has {found.count} resource instances"
        for each, found in remains
        if found.count
    )
    if left:
        message = f"Some resources are remaining: {', '.join(left)}"
        told[CONTENT_REMAINING] = ("SomeResourcesRemain", message)
    finalizers: Counter[str] = Counter()
    for _, found in remains:
        finalizers.update(found.finalizers)
    held = sorted(f"{name} in {count} resource instances" for name, count in finalizers.items())
    if held:
        told[FINALIZERS_REMAINING] = (
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {', '.join(held)}",
        )
    return told
