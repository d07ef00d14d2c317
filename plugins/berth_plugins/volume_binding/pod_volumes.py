"""What was decided about one pod's volumes, written out and seen through (spec §5.15)."""

from dataclasses import dataclass, field

import msgspec

from berth.framework.handle import Handle
from berth.framework.pod_info import PodInfo
from berth.objects.meta import ObjectMeta
from berth.objects.node import Node
from berth.objects.storage import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    CSINode,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from berth_plugins.shared.csi_translation import is_migrated_on, kind_of, translated
from berth_plugins.volume_binding.reach import reach_of


@dataclass(slots=True)
class Binding:
    """A claim and the volume that it is to have."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume
    """As it should be; once written, as the API has it."""


@dataclass(slots=True)
class Commitment:
    """What a pod's volumes need before it can start on its node."""

    bindings: list[Binding] = field(default_factory=list)
    provisions: list[PersistentVolumeClaim] = field(default_factory=list)
    """Claims that are to have a new volume, as they should be or as the API has them."""
    assumed: list[PersistentVolume | PersistentVolumeClaim] = field(default_factory=list)
    """What this commitment changed of what is assumed."""

    @property
    def is_empty(self) -> bool:
        return not self.bindings and not self.provisions


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


def as_seen_by(csi_node: CSINode | None, volume: PersistentVolume) -> PersistentVolume:
    """Return *volume* as the node's driver knows it, if one has taken over volumes of its kind.

    ``ValueError`` if the driver could not be told of it.
    """
    kind = kind_of(volume.spec)
    if kind is None or not is_migrated_on(csi_node, kind.plugin):
        return volume
    return translated(volume)


class BindingFailedError(Exception):
    """The volumes will not become what was decided on; the pod has to be tried again."""


class Progress:
    """Looks, at what the watches last told, how far a commitment has come."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._listers = handle.listers

    def is_done(self, commitment: Commitment, pod: PodInfo, node_name: str) -> bool:
        """Whether all claims of *pod* have their volumes.

        What is known of an object is passed over as long as it is older than what was written.
        BindingFailedError if the commitment cannot come true any more.
        """
        row = self._handle.nodes.row_of.get(node_name)
        node = None if row is None else self._handle.nodes.nodes[row]
        if node is None:
            raise BindingFailedError(
                f'failed to get node "{node_name}": node "{node_name}" not found'
            )
        if self._handle.pod(pod.key) is None:
            raise BindingFailedError(f'pod does not exist any more: pod "{pod.name}" not found')
        return all(self._is_bound(binding, node) for binding in commitment.bindings) and all(
            self._is_provisioned(claim, node) for claim in commitment.provisions
        )

    def _is_bound(self, binding: Binding, node: Node) -> bool:
        name = binding.volume.metadata.name
        volume = self._listers.persistent_volumes.get("", name)
        if volume is None:
            raise BindingFailedError(
                f'failed to check binding: persistentvolumes "{name}" not found'
            )
        claim = self._claim(binding.claim, "failed to check binding")
        if is_newer(binding.volume, volume):
            return False
        self._check_reach(volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingFailedError(f'ClaimRef got reset for pv "{name}"')
        return claim.is_fully_bound

    def _is_provisioned(self, written: PersistentVolumeClaim, node: Node) -> bool:
        claim = self._claim(written, "failed to check provisioning pvc")
        if is_newer(written, claim):
            return False
        meta = claim.metadata
        if not meta.annotations:
            raise BindingFailedError(f'selectedNode annotation reset for PVC "{meta.name}"')
        # A provisioner that fails takes the annotation away.
        if meta.annotations.get(SELECTED_NODE, "") != node.metadata.name:
            raise BindingFailedError(f'provisioning failed for PVC "{meta.name}"')
        if claim.spec.volume_name:
            volume = self._listers.persistent_volumes.get("", claim.spec.volume_name)
            if volume is None:  # on its way, or gone and the claim will tell
                return False
            self._check_reach(volume, node)
        return claim.is_fully_bound

    def _claim(self, claim: PersistentVolumeClaim, doing: str) -> PersistentVolumeClaim:
        meta = claim.metadata
        found = self._listers.persistent_volume_claims.get(meta.namespace, meta.name)
        if found is None:
            raise BindingFailedError(f'{doing}: persistentvolumeclaims "{meta.key}" not found')
        return found

    def _check_reach(self, volume: PersistentVolume, node: Node) -> None:
        meta = node.metadata
        csi_node = self._listers.csi_nodes.get("", meta.name)
        try:
            seen = as_seen_by(csi_node, volume)
        except ValueError as exc:
            raise BindingFailedError(
                f"failed to translate pv to csi: could not translate pv: {exc}"
            ) from exc
        if not reach_of(seen).includes(meta.labels):
            raise BindingFailedError(
                f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{meta.name}":'
                " no matching NodeSelectorTerms"
            )


def is_newer(
    written: PersistentVolume | PersistentVolumeClaim,
    known: PersistentVolume | PersistentVolumeClaim,
) -> bool:
    """Whether *known* is of before *written*, by ``resourceVersion``."""
    return _version(written.metadata) > _version(known.metadata)


def _version(meta: ObjectMeta) -> int:
    """Return the version as a number; 0 for none, as the API server takes it."""
    return int(meta.resource_version) if meta.resource_version.isdecimal() else 0
