"""Checks that the claims of a pod have become what was decided (spec §5.15, PreBind)."""

from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.node import Node
from berth.kube.objects.storage import (
    SELECTED_NODE,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
)
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.pod_info import PodInfo
from berth_plugins.shared.csi_translation import is_migrated_on, kind_of, translated
from berth_plugins.volume_binding.node_affinity import node_affinity_of
from berth_plugins.volume_binding.pod_volumes import BindingInfo, PodVolumes


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


class BindingCheck:
    """Looks, at what the watches last reported, how far the volumes of a pod have come."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._listers = handle.listers

    def check_bindings(self, volumes: PodVolumes, pod: PodInfo, node_name: str) -> bool:
        """Whether all claims of *pod* have their volumes.

        What is known of an object is passed over as long as it is older than what was written.
        BindingFailedError if the claims cannot have them any more.
        """
        row = self._handle.nodes.row_of.get(node_name)
        node = None if row is None else self._handle.nodes.nodes[row]
        if node is None:
            raise BindingFailedError(
                f'failed to get node "{node_name}": node "{node_name}" not found'
            )
        if self._handle.pod(pod.key) is None:
            raise BindingFailedError(f'pod does not exist any more: pod "{pod.name}" not found')
        return all(self._is_bound(binding, node) for binding in volumes.static_bindings) and all(
            self._is_provisioned(claim, node) for claim in volumes.dynamic_provisions
        )

    def _is_bound(self, binding: BindingInfo, node: Node) -> bool:
        name = binding.volume.metadata.name
        volume = self._listers.persistent_volumes.get("", name)
        if volume is None:
            raise BindingFailedError(
                f'failed to check binding: persistentvolumes "{name}" not found'
            )
        claim = self._claim(binding.claim, "failed to check binding")
        if is_newer(binding.volume, volume):
            return False
        self._check_node_affinity(volume, node)
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
            self._check_node_affinity(volume, node)
        return claim.is_fully_bound

    def _claim(self, claim: PersistentVolumeClaim, doing: str) -> PersistentVolumeClaim:
        meta = claim.metadata
        current = self._listers.persistent_volume_claims.get(meta.namespace, meta.name)
        if current is None:
            raise BindingFailedError(f'{doing}: persistentvolumeclaims "{meta.key}" not found')
        return current

    def _check_node_affinity(self, volume: PersistentVolume, node: Node) -> None:
        meta = node.metadata
        csi_node = self._listers.csi_nodes.get("", meta.name)
        try:
            seen = as_seen_by(csi_node, volume)
        except ValueError as exc:
            raise BindingFailedError(
                f"failed to translate pv to csi: could not translate pv: {exc}"
            ) from exc
        if not node_affinity_of(seen).matches(meta.labels):
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
