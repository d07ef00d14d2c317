"""Volumes and what belongs to them in one line, as :mod:`tests.builders` has pods and nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from berth.kube.objects.meta import LabelSelector, ObjectMeta, OwnerReference
from berth.kube.objects.pod import NodeSelector, NodeSelectorTerm, ResourceRequirements
from berth.kube.objects.quantity import Quantity
from berth.kube.objects.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSISource,
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
)
from berth.scheduler.framework.listers import Listers
from tests.builders import HOSTNAME, requirement, term

StorageObject = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)


def volume(
    name: str = "pv",
    *,
    size: Quantity = "10Gi",
    storage_class: str = "local",
    hosts: Sequence[str] | None = None,
    reach: Sequence[NodeSelectorTerm] | None = None,
    claim: ObjectReference | PersistentVolumeClaim | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    phase: str = "",
    labels: Mapping[str, str] = {},
    annotations: Mapping[str, str] = {},
    deleted: str | None = None,
    version: str = "1",
    **source: Any,
) -> PersistentVolume:
    """A volume, of CSI unless *source* says otherwise; *hosts* and *reach* are where it can be."""
    if isinstance(claim, PersistentVolumeClaim):
        claim = reference(claim)
    if hosts is not None:
        reach = [term(requirement(HOSTNAME, "In", *hosts))]
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name,
            uid=f"pv-{name}",
            resource_version=version,
            labels=dict(labels),
            annotations=dict(annotations),
            deletion_timestamp=deleted,
        ),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=tuple(modes),
            claim_ref=claim,
            storage_class_name=storage_class,
            node_affinity=None if reach is None else VolumeNodeAffinity(NodeSelector(tuple(reach))),
            **(source or {"csi": CSISource("csi.example.com", name)}),
        ),
        status=PersistentVolumeStatus(phase or ("Bound" if claim else "Available")),
    )


def claim(
    name: str = "data",
    *,
    ns: str = "default",
    size: Quantity | None = "1Gi",
    storage_class: str = "local",
    modes: Sequence[str] = ("ReadWriteOnce",),
    selector: LabelSelector | None = None,
    bound_to: str = "",
    volume: str = "",
    selected: str | None = None,
    owner: str = "",
    phase: str = "",
    annotations: Mapping[str, str] = {},
    deleted: str | None = None,
    version: str = "1",
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim that waits; *bound_to* a volume it is done, naming a *volume* it is not.

    *owner* is the uid of the pod it was made for, *selected* the node of the annotation.
    """
    marks = {**annotations}
    if bound_to:
        marks[BIND_COMPLETED] = "yes"
    if selected is not None:
        marks[SELECTED_NODE] = selected
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=ns,
            uid=f"pvc-{ns}-{name}",
            resource_version=version,
            annotations=marks,
            deletion_timestamp=deleted,
            owner_references=(OwnerReference("v1", "Pod", "", owner, controller=True),)
            if owner
            else (),
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=tuple(modes),
            selector=selector,
            resources=ResourceRequirements(requests={} if size is None else {"storage": size}),
            volume_name=bound_to or volume,
            storage_class_name=storage_class,
            **spec,
        ),
        status=PersistentVolumeClaimStatus(phase or ("Bound" if bound_to else "Pending")),
    )


def reference(claim: PersistentVolumeClaim, *, uid: str | None = None) -> ObjectReference:
    """What a volume says of its claim."""
    meta = claim.metadata
    return ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid if uid is None else uid,
        resource_version=meta.resource_version,
    )


def storage_class(
    name: str = "local",
    *,
    provisioner: str = "kubernetes.io/no-provisioner",
    mode: str | None = WAIT_FOR_FIRST_CONSUMER,
    topologies: Sequence[Mapping[str, Sequence[str]]] = (),
) -> StorageClass:
    """A class; each of *topologies* has label keys and the values that will do."""
    return StorageClass(
        metadata=_metadata(name),
        provisioner=provisioner,
        volume_binding_mode=mode,
        allowed_topologies=tuple(
            TopologySelectorTerm(
                tuple(TopologySelectorRequirement(k, tuple(values)) for k, values in one.items())
            )
            for one in topologies
        ),
    )


def csi_node(
    name: str = "n1", *, limits: Mapping[str, int | None] = {}, migrated: str = ""
) -> CSINode:
    """What a node says of its drivers; *migrated* are in-tree plugins, with commas."""
    key = "storage.alpha.kubernetes.io/migrated-plugins"
    return CSINode(
        metadata=_metadata(name, annotations={key: migrated} if migrated else {}),
        spec=CSINodeSpec(
            tuple(
                CSINodeDriver(driver, None if count is None else VolumeNodeResources(count))
                for driver, count in limits.items()
            )
        ),
    )


def csi_driver(
    name: str = "csi.example.com", *, capacity: bool = True, required: bool = False
) -> CSIDriver:
    """A driver; where it is *required*, nodes need it for its volumes."""
    spec = CSIDriverSpec(storage_capacity=capacity, prevent_pod_scheduling_if_missing=required)
    return CSIDriver(metadata=_metadata(name), spec=spec)


def storage_capacity(
    name: str = "c",
    *,
    storage_class: str = "dyn",
    nodes: LabelSelector | None = None,
    size: Quantity | None = None,
    largest: Quantity | None = None,
) -> CSIStorageCapacity:
    """What a driver has left: *size* in all, of which one volume may be the *largest*."""
    return CSIStorageCapacity(
        metadata=_metadata(name, ns="kube-system"),
        storage_class_name=storage_class,
        node_topology=nodes,
        capacity=size,
        maximum_volume_size=largest,
    )


def attachment(
    name: str, *, node: str, volume: str | None, attacher: str = "csi.example.com"
) -> VolumeAttachment:
    return VolumeAttachment(
        metadata=_metadata(name),
        spec=VolumeAttachmentSpec(attacher, node, VolumeAttachmentSource(volume)),
    )


def _metadata(name: str, *, ns: str = "", annotations: Mapping[str, str] = {}) -> ObjectMeta:
    return ObjectMeta(
        name=name,
        namespace=ns,
        uid=f"uid-{name}",
        resource_version="1",
        annotations=dict(annotations),
    )


def listers(*objects: StorageObject) -> Listers:
    """Return listers that know *objects*."""
    filled = Listers()
    add(filled, *objects)
    return filled


def add(known: Listers, *objects: StorageObject) -> None:
    """Let *known* have *objects*, in place of older versions."""
    for obj in objects:
        match obj:
            case PersistentVolume():
                known.persistent_volumes.on_add(obj)
            case PersistentVolumeClaim():
                known.persistent_volume_claims.on_add(obj)
            case StorageClass():
                known.storage_classes.on_add(obj)
            case CSINode():
                known.csi_nodes.on_add(obj)
            case CSIDriver():
                known.csi_drivers.on_add(obj)
            case CSIStorageCapacity():
                known.csi_storage_capacities.on_add(obj)
            case VolumeAttachment():
                known.volume_attachments.on_add(obj)
