"""The claims that a pod's volumes stand for (spec §5.13-5.16)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import PersistentVolumeClaim
from berth.scheduler.framework.events import HintIndex
from berth.scheduler.framework.pod_info import PodInfo


class ClaimVolume(NamedTuple):
    """A volume of a pod that is a claim, its own or one made for it."""

    claim_name: str
    is_ephemeral: bool
    """Whether the claim is made for the pod, from the template in the volume."""


def claim_volumes(pod: Pod) -> Iterator[ClaimVolume]:
    """Yield the volumes of *pod* that are claims, in order."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield ClaimVolume(volume.persistent_volume_claim.claim_name, is_ephemeral=False)
        elif volume.ephemeral is not None:
            yield ClaimVolume(f"{pod.metadata.name}-{volume.name}", is_ephemeral=True)


def own_claims(pod: Pod) -> list[str]:
    """Return the claim names that *pod* is written with, one per volume."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def references(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume of *pod* is *claim*."""
    meta = claim.metadata
    return pod.metadata.namespace == meta.namespace and any(
        volume.claim_name == meta.name for volume in claim_volumes(pod)
    )


def _claim_keys(pod: PodInfo) -> list[tuple[tuple[str, str], ...]]:
    return [tuple((pod.namespace, volume.claim_name) for volume in claim_volumes(pod.pod))]


CLAIM_INDEX: Final = HintIndex(
    _claim_keys, lambda _old, new: ((new.metadata.namespace, new.metadata.name),)
)
"""Finds the pods of a claim that is new or changed."""


def ownership_error(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Say that *claim* was not made for *pod*; "" if it was."""
    owner = claim.metadata.controller
    if owner is not None and owner.uid == pod.metadata.uid:
        return ""
    return f"PVC {claim.metadata.key} was not created for pod {pod.key} (pod is not owner)"
