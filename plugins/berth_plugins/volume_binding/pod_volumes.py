"""The claims of a pod, and what is decided for them on one node (spec §5.15)."""

import msgspec

from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.storage import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)


class PodVolumeClaims(msgspec.Struct, frozen=True):
    """The claims of a pod that waits for nothing but a node."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    """Those that have their volumes."""
    unbound_delay_binding: tuple[PersistentVolumeClaim, ...] = ()
    """Those whose volumes are chosen with the node."""


class BindingInfo(msgspec.Struct):
    """A claim and the existing volume that it is to have."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume
    """As it should be; once written, as the API has it."""


class PodVolumes(msgspec.Struct):
    """What the claims of a pod need before it can start on its node."""

    static_bindings: list[BindingInfo] = msgspec.field(default_factory=list)
    dynamic_provisions: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    """Claims that are to have a new volume, as they should be or as the API has them."""
    assumed_volumes: list[PersistentVolume] = msgspec.field(default_factory=list)
    assumed_claims: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    """What was assumed on the way, to be reverted if the pod does not get the node."""


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return *volume* as bound to *claim*; itself if it is already.

    A volume that nobody had reserved for the claim is marked as bound automatically.
    """
    meta, spec, reference = volume.metadata, volume.spec, volume.spec.claim_ref
    of_claim = claim.metadata
    is_complete = reference is not None and (
        (reference.namespace, reference.name, reference.uid)
        == (of_claim.namespace, of_claim.name, of_claim.uid)
    )
    if not is_complete:
        reference = ObjectReference(
            kind="PersistentVolumeClaim",
            api_version="v1",
            namespace=of_claim.namespace,
            name=of_claim.name,
            uid=of_claim.uid,
            resource_version=of_claim.resource_version,
        )
        spec = msgspec.structs.replace(spec, claim_ref=reference)
    if not volume.is_bound_to(claim) and BOUND_BY_CONTROLLER not in meta.annotations:
        meta = _annotated(meta, BOUND_BY_CONTROLLER, "yes")
    if spec is volume.spec and meta is volume.metadata:
        return volume
    return msgspec.structs.replace(volume, metadata=meta, spec=spec)


def provisioned_for(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """Return *claim* as asking for a new volume that the node can use; itself if it does."""
    if claim.metadata.annotations.get(SELECTED_NODE) == node_name:
        return claim
    meta = _annotated(claim.metadata, SELECTED_NODE, node_name)
    return msgspec.structs.replace(claim, metadata=meta)


def _annotated(meta: ObjectMeta, key: str, value: str) -> ObjectMeta:
    return msgspec.structs.replace(meta, annotations={**meta.annotations, key: value})
