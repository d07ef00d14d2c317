"""Writes to claims before the binding of a pod that was decided about."""

from collections.abc import Iterable, Iterator

from berth.insight.shadow.changes import Change
from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)


def is_reserved_by(change: Change, pods: Iterable[Pod]) -> Iterator[Pod]:
    """Yield those of *pods* that the other scheduler may have decided about, as *change* tells.

    That is so when a claim gets the node that its volume is to be made for, when a volume is
    promised to a claim, and when a device claim is reserved for the pod (spec §5). Of several pods
    that share a volume claim, any may be the one.
    """
    match change.old, change.new:
        case PersistentVolumeClaim() as old, PersistentVolumeClaim() as new:
            before, now = (
                claim.metadata.annotations.get(SELECTED_NODE, "") for claim in (old, new)
            )
            if now and now != before:
                yield from _using(new.metadata.namespace, new.metadata.name, pods)
        case PersistentVolume() as volume, PersistentVolume() as promised:
            ref = promised.spec.claim_ref
            is_ours = BOUND_BY_CONTROLLER in promised.metadata.annotations
            if ref is not None and volume.spec.claim_ref is None and is_ours:
                yield from _using(ref.namespace, ref.name, pods)
        case ResourceClaim() as free, ResourceClaim() as reserved:
            for pod in pods:
                uid = pod.metadata.uid
                if reserved.is_reserved_for(uid) and not free.is_reserved_for(uid):
                    yield pod


def _using(namespace: str, claim: str, pods: Iterable[Pod]) -> Iterator[Pod]:
    for pod in pods:
        if pod.metadata.namespace == namespace and claim in _volume_claims(pod):
            yield pod


def _volume_claims(pod: Pod) -> Iterator[str]:
    """Yield the names of the volume claims of *pod*."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"


def has_claims(pod: Pod) -> bool:
    """Whether the other scheduler may have to write claims before it binds *pod*."""
    return bool(pod.spec.resource_claims) or any(True for _ in _volume_claims(pod))


def share_a_volume(one: Pod, other: Pod) -> bool:
    """Whether both pods use the same volume claim."""
    is_near = one.metadata.namespace == other.metadata.namespace
    return is_near and not {*_volume_claims(one)}.isdisjoint(_volume_claims(other))
