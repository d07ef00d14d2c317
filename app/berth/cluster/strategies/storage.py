"""Volumes, claims of volumes, their classes, and what storage drivers tell of themselves."""

from berth.cluster.resources import Object
from berth.cluster.strategies.by_schema import unchanged
from berth.cluster.strategies.constraint_table import VOLUME_SOURCES
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.volume_defaults import default_source

FILESYSTEM = "Filesystem"


def default_volume(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", FILESYSTEM)
    default_source(spec)


def check_volume_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse another source; upstream tells the difference as well."""
    errors = []
    after, before = ({key: obj["spec"].get(key) for key in VOLUME_SOURCES} for obj in (new, old))
    if before["csi"] and after["csi"] and not before["csi"].get("controllerExpandSecretRef"):
        after["csi"] = {**after["csi"]}
        after["csi"].pop("controllerExpandSecretRef", None)  # which may come later
    if after != before:
        detail = "spec.persistentvolumesource is immutable after creation"
        errors.append(field_errors.forbidden("spec.persistentvolumesource", detail))
    return errors + unchanged(new, old, "spec.volumeMode", blamed="volumeMode")


def pending_volume(obj: Object) -> Object:
    """Return the status of a new volume."""
    since = obj["metadata"]["creationTimestamp"]
    return {"phase": "Pending", "lastPhaseTransitionTime": since}


def default_claim(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("volumeMode", FILESYSTEM)
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if old and not new:
        spec["dataSourceRef"] = dict(old)
    elif new and not old and not new.get("namespace"):
        spec["dataSource"] = {name: each for name, each in new.items() if name != "namespace"}


def check_claim_update(obj: Object, old_obj: Object) -> list[FieldError]:
    """A claim may be given a volume once, and grow; nothing else."""
    new, old = obj.get("spec") or {}, old_obj.get("spec") or {}
    free = {"resources", "volumeAttributesClassName"}
    if not old.get("volumeName"):
        free.add("volumeName")
    if all(new.get(field) == old.get(field) for field in {*new, *old} - free):
        return []
    detail = (
        "spec is immutable after creation except resources.requests and "
        "volumeAttributesClassName for bound claims"
    )
    return [field_errors.forbidden("spec", detail)]


def default_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def default_driver(obj: Object) -> None:
    spec = obj["spec"]
    for field, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        spec.setdefault(field, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def check_driver_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse what upstream does, in its spelling."""
    return unchanged(new, old, "spec.attachRequired", blamed="spec.attachedRequired")
