"""Defaults of volumes: those of pods, and the sources of PersistentVolumes."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Object: TypeAlias = dict[str, Any]

FILE_MODE: Final = 0o644
TOKEN_SECONDS: Final = 3600
FIELD_REF: Final = {"apiVersion": "v1"}

_SOURCES: Final[Mapping[str, Object]] = {
    "configMap": {"defaultMode": FILE_MODE},
    "secret": {"defaultMode": FILE_MODE},
    "projected": {"defaultMode": FILE_MODE},
    "downwardAPI": {"defaultMode": FILE_MODE},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def default_volume(volume: Object) -> None:
    """Fill in a volume of a pod; one without a source is an empty directory."""
    if not any(source is not None for name, source in volume.items() if name != "name"):
        volume["emptyDir"] = {}
        return
    default_source(volume)
    if volume.get("downwardAPI"):
        _default_downward(volume["downwardAPI"])
    for source in (volume.get("projected") or {}).get("sources") or []:
        if source.get("serviceAccountToken"):
            source["serviceAccountToken"].setdefault("expirationSeconds", TOKEN_SECONDS)
        if source.get("downwardAPI"):
            _default_downward(source["downwardAPI"])
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template and template.get("spec"):
        template["spec"].setdefault("volumeMode", "Filesystem")


def default_source(holder: Object) -> None:
    """Fill in the source of a volume, in a pod or in the spec of a PersistentVolume."""
    for name, source in holder.items():
        if isinstance(source, dict) and name in _SOURCES:
            for field, value in _SOURCES[name].items():
                if source.get(field) in (None, ""):
                    source[field] = value


def fill(obj: Object, defaults: Mapping[str, Any]) -> None:
    """Set what *obj* lacks, or has as zero or as the empty string."""
    for name, value in defaults.items():
        if not obj.get(name):
            obj[name] = value


def default_reference(holder: Object) -> None:
    """Fill in a reference to a field of the pod, or to a resource of a container."""
    if holder.get("fieldRef"):
        fill(holder["fieldRef"], FIELD_REF)
    if holder.get("resourceFieldRef"):
        holder["resourceFieldRef"].setdefault("divisor", "0")


def _default_downward(volume: Object) -> None:
    for item in volume.get("items") or []:
        default_reference(item)
