"""Volumes, claims of volumes, their classes, and what storage drivers tell of themselves."""

from berth.cluster.columns.cells import AGE, NAME, dig, listed
from berth.cluster.resources import Column, Object

UNSET = "<unset>"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def text(name: str, path: str, description: str, *, empty: str = "", priority: int = 0) -> Column:
    """Return a column of what the object has at *path*."""
    return Column(
        name,
        "string",
        lambda obj: str(dig(obj, path) or empty),
        description,
        priority=priority,
    )


def flag(name: str, path: str, description: str) -> Column:
    return Column(name, "boolean", lambda obj: bool(dig(obj, path)), description)


def access_modes(modes: list[str]) -> str:
    """Return ``RWO,ROX``: each once, in the order of the table."""
    return ",".join(short for mode, short in MODES.items() if mode in modes)


def phase(obj: Object) -> str:
    """Return the phase, or that it is on its way out."""
    deleted = obj["metadata"].get("deletionTimestamp")
    return "Terminating" if deleted else dig(obj, "status.phase") or ""


def claimed_by(volume: Object) -> str:
    """Return ``namespace/name`` of the claim."""
    reference = dig(volume, "spec.claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def bound(claim: Object, value: str) -> str:
    """Return *value* if the claim has a volume: what is asked for is not what one gets."""
    return value if dig(claim, "spec.volumeName") else ""


def class_name(obj: Object) -> str:
    """Return the name of a class, and whether it is that of claims that name none."""
    name = str(obj["metadata"]["name"])
    annotations = obj["metadata"].get("annotations") or {}
    return f"{name} (default)" if annotations.get(DEFAULT_CLASS) == "true" else name


STATUS = Column("Status", "string", phase, "Where it is in its life.")
STORAGE_CLASS = text("StorageClass", "spec.storageClassName", "The class it belongs to.")
ATTRIBUTES_CLASS = text(
    "VolumeAttributesClass",
    "spec.volumeAttributesClassName",
    "The class that says how the volume behaves.",
    empty=UNSET,
)
VOLUME_MODE = text(
    "VolumeMode", "spec.volumeMode", "A file system or a raw device.", empty=UNSET, priority=1
)

PERSISTENT_VOLUME_COLUMNS = (
    NAME,
    text("Capacity", "spec.capacity.storage", "Its size."),
    Column(
        "Access Modes",
        "string",
        lambda obj: access_modes(listed(obj, "spec.accessModes")),
        "How it can be mounted.",
    ),
    text(
        "Reclaim Policy",
        "spec.persistentVolumeReclaimPolicy",
        "What becomes of it when its claim is gone.",
    ),
    STATUS,
    Column("Claim", "string", claimed_by, "Whose it is."),
    STORAGE_CLASS,
    ATTRIBUTES_CLASS,
    text("Reason", "status.reason", "Why it failed."),
    AGE,
    VOLUME_MODE,
)

PERSISTENT_VOLUME_CLAIM_COLUMNS = (
    NAME,
    STATUS,
    text("Volume", "spec.volumeName", "The volume that it got."),
    Column(
        "Capacity",
        "string",
        lambda obj: bound(obj, str(dig(obj, "status.capacity.storage") or "")),
        "The size of the volume.",
    ),
    Column(
        "Access Modes",
        "string",
        lambda obj: bound(obj, access_modes(listed(obj, "status.accessModes"))),
        "How the volume can be mounted.",
    ),
    STORAGE_CLASS,
    ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
)

STORAGE_CLASS_COLUMNS = (
    Column(NAME.name, NAME.type, class_name, NAME.description, format=NAME.format),
    text("Provisioner", "provisioner", "Who makes the volumes."),
    text("ReclaimPolicy", "reclaimPolicy", "What becomes of a volume without claim."),
    text("VolumeBindingMode", "volumeBindingMode", "Whether claims wait for a pod."),
    flag("AllowVolumeExpansion", "allowVolumeExpansion", "Whether claims may grow."),
    AGE,
)

CSI_NODE_COLUMNS = (
    NAME,
    Column("Drivers", "integer", lambda obj: len(listed(obj, "spec.drivers")), "How many it has."),
    AGE,
)

CSI_DRIVER_COLUMNS = (
    NAME,
    flag("AttachRequired", "spec.attachRequired", "Whether volumes are attached first."),
    flag("PodInfoOnMount", "spec.podInfoOnMount", "Whether it is told of the pod."),
    flag("StorageCapacity", "spec.storageCapacity", "Whether it tells how much room it has."),
    Column(
        "TokenRequests",
        "string",
        lambda obj: (
            ",".join(each.get("audience", "") for each in listed(obj, "spec.tokenRequests"))
            or UNSET
        ),
        "For whom it wants tokens.",
    ),
    flag("RequiresRepublish", "spec.requiresRepublish", "Whether it is called again and again."),
    Column(
        "Modes",
        "string",
        lambda obj: ",".join(listed(obj, "spec.volumeLifecycleModes")),
        "The kinds of volumes it makes.",
    ),
    AGE,
)

CSI_STORAGE_CAPACITY_COLUMNS = (
    NAME,
    text("StorageClassName", "storageClassName", "The class that there is room for."),
    text("Capacity", "capacity", "How much room there is."),
)

VOLUME_ATTACHMENT_COLUMNS = (
    NAME,
    text("Attacher", "spec.attacher", "Who attaches it."),
    text("PV", "spec.source.persistentVolumeName", "What is attached."),
    text("Node", "spec.nodeName", "Where it is attached."),
    flag("Attached", "status.attached", "Whether it is done."),
    AGE,
)
