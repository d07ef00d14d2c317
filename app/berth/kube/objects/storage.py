"""Volumes and what they are made of: claims, classes, drivers and their capacities."""

from typing import Any

import msgspec

from berth.kube.objects.meta import KubeStruct, LabelSelector, ObjectMeta
from berth.kube.objects.pod import (
    AWSElasticBlockStore,
    AzureDisk,
    CinderVolume,
    GCEPersistentDisk,
    NodeSelector,
    ResourceRequirements,
)
from berth.kube.objects.quantity import Quantities, Quantity, check_quantities, parse, value

FILESYSTEM = "Filesystem"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named the class before there was a field; it still wins."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim that the volume controller is done with; its value does not matter."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation of a volume that was bound automatically, not by its author."""
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
"""Annotation, ``true`` on the StorageClass of claims that name none."""
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotation of a CSINode: the in-tree plugins, with commas, whose work drivers do there."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation by which the scheduler has a claim's volume provisioned for a node."""


class ObjectReference(KubeStruct, frozen=True, gc=False):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


# Persistent volumes.


class CSISource(KubeStruct, frozen=True, gc=False):
    driver: str = ""
    volume_handle: str = ""


class PortworxVolume(KubeStruct, frozen=True, gc=False):
    volume_id: str = msgspec.field(default="", name="volumeID")


class VolumeNodeAffinity(KubeStruct, frozen=True, gc=False):
    required: NodeSelector | None = None


class PersistentVolumeSpec(KubeStruct, frozen=True, gc=False):
    capacity: Quantities = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str = FILESYSTEM
    volume_attributes_class_name: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None

    def __post_init__(self) -> None:
        check_quantities("capacity", self.capacity)


class PersistentVolumeStatus(KubeStruct, frozen=True, gc=False):
    phase: str = ""


class PersistentVolume(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()
    raw: bytes = b""
    """The JSON that it was decoded from, by :func:`decoder`: an update must send all of it."""

    @property
    def storage_class(self) -> str:
        """The name of its class, "" for none."""
        return self.metadata.annotations.get(BETA_CLASS, self.spec.storage_class_name)

    @property
    def size(self) -> int:
        """Its capacity in nano bytes."""
        return parse(self.spec.capacity.get("storage", 0))

    def is_bound_to(self, claim: "PersistentVolumeClaim") -> bool:
        """Whether it is bound to *claim*, or reserved for a claim of that name."""
        reference, meta = self.spec.claim_ref, claim.metadata
        return (
            reference is not None
            and (reference.namespace, reference.name) == (meta.namespace, meta.name)
            and reference.uid in ("", meta.uid)
        )


# Persistent volume claims.


class PersistentVolumeClaimSpec(KubeStruct, frozen=True, gc=False):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str = ""
    volume_mode: str = FILESYSTEM
    volume_attributes_class_name: str = ""


class PersistentVolumeClaimStatus(KubeStruct, frozen=True, gc=False):
    phase: str = ""


class PersistentVolumeClaim(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()
    raw: bytes = b""
    """The JSON that it was decoded from, by :func:`decoder`: an update must send all of it."""

    @property
    def storage_class(self) -> str:
        """The name of its class, "" for none."""
        return self.metadata.annotations.get(BETA_CLASS, self.spec.storage_class_name)

    @property
    def request(self) -> Quantity | None:
        """How much it asks for, as written; None if it does not say."""
        return self.spec.resources.requests.get("storage")

    @property
    def requested_size(self) -> int:
        """How much it asks for in nano bytes, 0 if it does not say."""
        return parse(self.request or 0)

    @property
    def is_fully_bound(self) -> bool:
        """Whether it has a volume and the volume controller is done with both."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations


# Classes.


class TopologySelectorRequirement(KubeStruct, frozen=True, gc=False):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(KubeStruct, frozen=True, gc=False):
    match_label_expressions: tuple[TopologySelectorRequirement, ...] = ()


class StorageClass(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


# Drivers.


class VolumeNodeResources(KubeStruct, frozen=True, gc=False):
    count: int | None = None


class CSINodeDriver(KubeStruct, frozen=True, gc=False):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(KubeStruct, frozen=True, gc=False):
    nullable_drivers: tuple[CSINodeDriver, ...] | None = msgspec.field(default=(), name="drivers")
    """As written: a node that has none yet has ``"drivers": null``."""


class CSINode(KubeStruct, frozen=True, gc=False):
    """Named after its node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()

    @property
    def limits(self) -> dict[str, int]:
        """How many volumes of each driver the node takes; drivers without a limit are absent."""
        return {
            driver.name: driver.allocatable.count
            for driver in self.spec.nullable_drivers or ()
            if driver.allocatable is not None and driver.allocatable.count is not None
        }

    @property
    def drivers(self) -> frozenset[str]:
        """The names of the drivers that are installed on the node."""
        return frozenset(driver.name for driver in self.spec.nullable_drivers or ())


class CSIDriverSpec(KubeStruct, frozen=True, gc=False):
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None

    def __post_init__(self) -> None:
        given = {"capacity": self.capacity, "maximumVolumeSize": self.maximum_volume_size}
        for field, quantity in given.items():
            if quantity is not None:
                check_quantities(field, {"storage": quantity})

    @property
    def largest_volume(self) -> int | None:
        """The size in bytes of the largest volume that it has room for; None if it is unknown."""
        told = self.capacity if self.maximum_volume_size is None else self.maximum_volume_size
        return None if told is None else value(parse(told))


class VolumeAttachmentSource(KubeStruct, frozen=True, gc=False):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(KubeStruct, frozen=True, gc=False):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


# What is written back.


def volume_body(volume: PersistentVolume) -> bytes:
    """Return the JSON of *volume* for a PUT: what it was decoded from, with what we change in it.

    That is the annotations and the claim. ``metadata.resourceVersion`` is that of the version that
    was read, so that the API refuses if somebody else changed it meanwhile. ``ValueError`` if
    *volume* was not made by :func:`berth.kube.objects.raw.decoder`.
    """
    body = _body(volume)
    if volume.spec.claim_ref is not None:
        body["spec"]["claimRef"] = msgspec.to_builtins(volume.spec.claim_ref)
    return msgspec.json.encode(body)


def claim_body(claim: PersistentVolumeClaim) -> bytes:
    """Return the JSON of *claim* for a PUT, as :func:`volume_body`; we change the annotations."""
    return msgspec.json.encode(_body(claim))


def _body(obj: PersistentVolume | PersistentVolumeClaim) -> dict[str, Any]:
    if not obj.raw:
        raise ValueError(f"{type(obj).__name__} {obj.metadata.key}: not decoded from the API")
    body: dict[str, Any] = msgspec.json.decode(obj.raw)
    body |= {"kind": type(obj).__name__, "apiVersion": "v1"}  # items of lists come without
    if obj.metadata.annotations:
        body["metadata"]["annotations"] = obj.metadata.annotations
    return body
