"""Volumes, claims of volumes, their classes, and what storage drivers tell of themselves."""

from berth.cluster.resources import Object
from berth.cluster.strategies import plain
from berth.cluster.strategies.quantities import validate_quantity
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.volume_defaults import default_source

FILESYSTEM = "Filesystem"


def _default_volume(spec: Object) -> None:
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", FILESYSTEM)
    default_source(spec)


def _check_volume(spec: Object) -> list[FieldError]:
    errors = [
        field_errors.required(f"spec.{field}")
        for field in ("accessModes", "capacity")
        if not spec.get(field)
    ]
    for name, quantity in (spec.get("capacity") or {}).items():
        errors += validate_quantity(quantity, f"spec.capacity[{name}]")
    return errors


def _default_claim(spec: Object) -> None:
    spec.setdefault("volumeMode", FILESYSTEM)
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if old and not new:
        spec["dataSourceRef"] = dict(old)
    elif new and not old and not new.get("namespace"):
        spec["dataSource"] = {name: each for name, each in new.items() if name != "namespace"}


def _check_claim(spec: Object) -> list[FieldError]:
    errors = []
    if not spec.get("accessModes"):
        errors.append(
            field_errors.required("spec.accessModes", "at least 1 access mode is required")
        )
    resources = spec.get("resources")
    requests = resources.get("requests") if isinstance(resources, dict) else None
    if not isinstance(requests, dict) or "storage" not in requests:
        errors.append(field_errors.required("spec.resources[storage]"))
    for name, quantity in (requests or {}).items():
        errors += validate_quantity(quantity, f"spec.resources.requests[{name}]")
    return errors


def _update_claim(new: Object, old: Object) -> list[FieldError]:
    """A claim may be given a volume once, and grow; nothing else."""
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


def _default_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _default_driver(spec: Object) -> None:
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


PERSISTENT_VOLUME = plain.of_spec(
    namespaced=False, default=_default_volume, check=_check_volume, status={"phase": "Pending"}
)
PERSISTENT_VOLUME_CLAIM = plain.of_spec(
    namespaced=True,
    default=_default_claim,
    check=_check_claim,
    check_update=_update_claim,
    status={"phase": "Pending"},
)
STORAGE_CLASS = plain.without_spec(
    namespaced=False, default=_default_class, required=("provisioner",)
)
CSI_NODE = plain.of_spec(namespaced=False)
CSI_DRIVER = plain.of_spec(namespaced=False, default=_default_driver)
CSI_STORAGE_CAPACITY = plain.without_spec(namespaced=True, required=("storageClassName",))
VOLUME_ATTACHMENT = plain.of_spec(
    namespaced=False, check_update=plain.immutable, status={"attached": False}
)
