"""Volumes, claims of volumes, their classes, and what storage drivers tell of themselves."""

from berth.cluster.columns.cells import NONE, UNSET, Cells, dig, flag, length, listed, text
from berth.cluster.resources import Object

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


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


PERSISTENT_VOLUME_CELLS: Cells = {
    "Capacity": text("spec.capacity.storage"),
    "Access Modes": lambda obj: access_modes(listed(obj, "spec.accessModes")),
    "Reclaim Policy": text("spec.persistentVolumeReclaimPolicy"),
    "Status": phase,
    "Claim": claimed_by,
    "StorageClass": text("spec.storageClassName"),
    "VolumeAttributesClass": text("spec.volumeAttributesClassName", empty=UNSET),
    "Reason": text("status.reason"),
    "VolumeMode": text("spec.volumeMode", empty=UNSET),
}

PERSISTENT_VOLUME_CLAIM_CELLS: Cells = {
    "Status": phase,
    "Volume": text("spec.volumeName"),
    "Capacity": lambda obj: bound(obj, str(dig(obj, "status.capacity.storage") or "")),
    "Access Modes": lambda obj: bound(obj, access_modes(listed(obj, "status.accessModes"))),
    "StorageClass": text("spec.storageClassName"),
    "VolumeAttributesClass": text("spec.volumeAttributesClassName", empty=UNSET),
    "VolumeMode": text("spec.volumeMode", empty=UNSET),
}

STORAGE_CLASS_CELLS: Cells = {
    "Name": class_name,
    "Provisioner": text("provisioner"),
    "ReclaimPolicy": text("reclaimPolicy", empty="Delete"),
    "VolumeBindingMode": text("volumeBindingMode", empty="Immediate"),
    "AllowVolumeExpansion": flag("allowVolumeExpansion"),
}

CSI_NODE_CELLS: Cells = {
    "Drivers": length("spec.drivers"),
}

CSI_DRIVER_CELLS: Cells = {
    "AttachRequired": lambda obj: dig(obj, "spec.attachRequired") is not False,
    "PodInfoOnMount": flag("spec.podInfoOnMount"),
    "StorageCapacity": flag("spec.storageCapacity"),
    "TokenRequests": lambda obj: (
        ",".join(each.get("audience", "") for each in listed(obj, "spec.tokenRequests")) or UNSET
    ),
    "RequiresRepublish": flag("spec.requiresRepublish"),
    "Modes": lambda obj: ",".join(listed(obj, "spec.volumeLifecycleModes")) or NONE,
}

CSI_STORAGE_CAPACITY_CELLS: Cells = {
    "StorageClassName": text("storageClassName"),
    "Capacity": text("capacity"),
}

VOLUME_ATTACHMENT_CELLS: Cells = {
    "Attacher": text("spec.attacher"),
    "PV": text("spec.source.persistentVolumeName"),
    "Node": text("spec.nodeName"),
    "Attached": flag("status.attached"),
}
