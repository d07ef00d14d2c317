"""In-tree volume kinds, whose volumes CSI drivers have taken over (spec §5.15, §5.16)."""

from collections.abc import Callable
from typing import Final

import msgspec

from berth.kube.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Volume
from berth.kube.objects.storage import (
    MIGRATED_PLUGINS,
    CSINode,
    PersistentVolume,
    PersistentVolumeSpec,
    PortworxVolume,
    VolumeNodeAffinity,
)

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"

_UNSPECIFIED: Final = "UNSPECIFIED"
_AWS_URL: Final = "aws://"
_SEPARATOR: Final = "__"
"""Between the zones of a volume that is in several."""


class InTreeKind(msgspec.Struct, frozen=True):
    """An in-tree volume plugin and the CSI driver in its place."""

    plugin: str
    driver: str
    is_migrated: bool = True
    """Whether the scheduler counts its volumes as the driver's."""
    topology_key: str = ""
    """The label by which the driver knows zones; "" if node affinity stays as it is."""


AWS_EBS: Final = InTreeKind(
    "kubernetes.io/aws-ebs", "ebs.csi.aws.com", topology_key="topology.ebs.csi.aws.com/zone"
)
GCE_PD: Final = InTreeKind(
    "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", topology_key="topology.gke.io/zone"
)
AZURE_DISK: Final = InTreeKind("kubernetes.io/azure-disk", "disk.csi.azure.com")
AZURE_FILE: Final = InTreeKind("kubernetes.io/azure-file", "file.csi.azure.com", is_migrated=False)
CINDER: Final = InTreeKind(
    "kubernetes.io/cinder",
    "cinder.csi.openstack.org",
    topology_key="topology.cinder.csi.openstack.org/zone",
)
PORTWORX: Final = InTreeKind("kubernetes.io/portworx-volume", "pxd.portworx.com")
VSPHERE: Final = InTreeKind(
    "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", is_migrated=False
)

BY_PLUGIN: Final = {
    kind.plugin: kind
    for kind in (AWS_EBS, GCE_PD, AZURE_DISK, AZURE_FILE, CINDER, PORTWORX, VSPHERE)
}


# Which volumes.


def kind_of(source: PersistentVolumeSpec | Volume) -> InTreeKind | None:
    """Return the in-tree kind of a persistent volume or of one written in a pod; None: neither.

    Only of those that are migrated; the others are nobody's volumes to the scheduler.
    """
    if source.aws_elastic_block_store is not None:
        return AWS_EBS
    if source.gce_persistent_disk is not None:
        return GCE_PD
    if source.azure_disk is not None:
        return AZURE_DISK
    if source.cinder is not None:
        return CINDER
    if _portworx(source) is not None:
        return PORTWORX
    return None


def _portworx(source: PersistentVolumeSpec | Volume) -> PortworxVolume | None:
    return source.portworx_volume if isinstance(source, PersistentVolumeSpec) else None


def is_migrated_on(csi_node: CSINode | None, plugin: str) -> bool:
    """Whether the node says that a driver does the work of in-tree *plugin* there."""
    if csi_node is None:
        return False
    return plugin in csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


# How the driver calls a volume.


def volume_handle(
    source: PersistentVolumeSpec | Volume, labels: dict[str, str] | None = None
) -> str:
    """Return the driver's name for a volume of an in-tree kind.

    *labels* are those of the persistent volume; they tell the zones of a GCE disk. ``ValueError``
    names what cannot be translated.
    """
    if source.aws_elastic_block_store is not None:
        return _ebs_volume_id(source.aws_elastic_block_store.volume_id)
    if source.gce_persistent_disk is not None:
        return _gce_disk_id(source.gce_persistent_disk.pd_name, labels or {})
    if source.azure_disk is not None:
        return source.azure_disk.disk_uri
    if source.cinder is not None:
        return source.cinder.volume_id
    portworx = _portworx(source)
    if portworx is not None:
        return portworx.volume_id
    raise ValueError("not a volume of an in-tree kind")


def _ebs_volume_id(written: str) -> str:
    """Return ``vol-1`` for ``vol-1``, ``aws:///vol-1`` and ``aws://zone/vol-1``."""
    if not written.startswith(_AWS_URL):
        return written
    _, _, path = written.removeprefix(_AWS_URL).partition("/")
    volume_id = path.strip("/")
    if not volume_id.startswith("vol-") or "/" in volume_id:
        raise ValueError(f"awsElasticBlockStore.volumeID {written!r}: no volume id in it")
    return volume_id


def _gce_disk_id(name: str, labels: dict[str, str]) -> str:
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or _UNSPECIFIED).split(_SEPARATOR)
    if len(zones) == 1:
        return f"projects/{_UNSPECIFIED}/zones/{zones[0]}/disks/{name}"
    regions = {zone.rpartition("-")[0] for zone in zones if zone.count("-") == 2}
    if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
        raise ValueError(f"zones {zones}: not of one region")
    return f"projects/{_UNSPECIFIED}/regions/{regions.pop()}/disks/{name}"


# Where it can be reached from.


def translated(volume: PersistentVolume) -> PersistentVolume:
    """Return *volume*, of an in-tree kind, with node affinity in the words of its driver.

    The zones that it names, or has as a label, are looked for under the driver's own key.
    ``ValueError`` if the driver could not be told of the volume.
    """
    volume_handle(volume.spec, volume.metadata.labels)
    kind = kind_of(volume.spec)
    if kind is None or not kind.topology_key:
        return volume
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    terms = required.node_selector_terms if required else ()
    labels = volume.metadata.labels
    keys = {expression.key for term in terms for expression in term.match_expressions}
    is_beta = ZONE not in keys and (
        BETA_ZONE in keys or (ZONE not in labels and BETA_ZONE in labels)
    )
    zone = BETA_ZONE if is_beta else ZONE
    renamed = {zone: kind.topology_key} if _values(terms, zone) else {}
    if not renamed and zone in labels:
        zones = sorted({part.strip() for part in labels[zone].split(_SEPARATOR)} - {""})
        if zones:
            within = NodeSelectorRequirement(kind.topology_key, "In", tuple(zones))
            terms = tuple(
                msgspec.structs.replace(term, match_expressions=(*term.match_expressions, within))
                for term in terms or (NodeSelectorTerm(),)
            )
    if is_beta and _values(terms, BETA_REGION):
        renamed[BETA_REGION] = REGION
    terms = _with_keys(terms, lambda key: renamed.get(key, key))
    if required is None and not terms:
        return volume
    affinity = VolumeNodeAffinity(NodeSelector(terms))
    spec = msgspec.structs.replace(volume.spec, node_affinity=affinity)
    return msgspec.structs.replace(volume, spec=spec)


def _values(terms: tuple[NodeSelectorTerm, ...], key: str) -> bool:
    """Whether some requirement on *key* names a value."""
    return any(
        expression.values
        for term in terms
        for expression in term.match_expressions
        if expression.key == key
    )


def _with_keys(
    terms: tuple[NodeSelectorTerm, ...], rename: Callable[[str], str]
) -> tuple[NodeSelectorTerm, ...]:
    return tuple(
        msgspec.structs.replace(
            term,
            match_expressions=tuple(
                msgspec.structs.replace(expression, key=rename(expression.key))
                for expression in term.match_expressions
            ),
        )
        for term in terms
    )
