"""The level ``restricted``: what hardened pods do."""

from typing import Final

from berth.cluster.pod_security import baseline
from berth.cluster.pod_security.violations import (
    Check,
    Violation,
    containers_where,
    named,
    plural,
    quoted,
    security_of,
    setters,
)
from berth.cluster.resources import Object

VOLUMES: Final = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
OTHER_VOLUMES: Final = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
]


def privilege_escalation(_metadata: Object, spec: Object) -> Violation | None:
    if _is_windows(spec):
        return None
    names = containers_where(
        spec, lambda each: security_of(each).get("allowPrivilegeEscalation") is not False
    )
    if not names:
        return None
    said = "must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", f"{named('container', names)} {said}")


def capabilities(_metadata: Object, spec: Object) -> Violation | None:
    if _is_windows(spec):
        return None

    def of(container: Object, field: str) -> list[str]:
        found: list[str] = (security_of(container).get("capabilities") or {}).get(field) or []
        return found

    def added(container: Object) -> list[str]:
        return [each for each in of(container, "add") if each != "NET_BIND_SERVICE"]

    reason = "unrestricted capabilities"
    names = containers_where(spec, lambda each: "ALL" not in of(each, "drop"))
    said = []
    if names:
        said.append(
            f'{named("container", names)} must set securityContext.capabilities.drop=["ALL"]'
        )
    too_many = baseline.not_default(reason, spec, added)
    if too_many is not None:
        said.append(too_many.detail)
    return Violation(reason, "; ".join(said)) if said else None


def volumes(_metadata: Object, spec: Object) -> Violation | None:
    names, kinds = [], set()
    for volume in spec.get("volumes") or ():
        # A volume without a source is an emptyDir.
        if len(volume) == 1 or not VOLUMES.isdisjoint(volume):
            continue
        names.append(volume.get("name") or "")
        kinds.add(next((kind for kind in OTHER_VOLUMES if kind in volume), "unknown"))
    if not names:
        return None
    uses = "uses" if len(names) == 1 else "use"
    said = f"{named('volume', names)} {uses} restricted {plural('volume type', kinds)}"
    return Violation("restricted volume types", f"{said} {quoted(sorted(kinds))}")


def run_as_non_root(_metadata: Object, spec: Object) -> Violation | None:
    def wanted(holder: Object) -> bool | None:
        found: bool | None = security_of(holder).get("runAsNonRoot")
        return found

    reason = "runAsNonRoot != true"
    who = setters(spec, lambda security: security.get("runAsNonRoot") is False)
    if who:
        return Violation(reason, f"{who} must not set securityContext.runAsNonRoot=false")
    silent = containers_where(spec, lambda each: wanted(each) is None)
    if wanted(spec) or not silent:
        return None
    said = f"pod or {named('container', silent)} must set securityContext.runAsNonRoot=true"
    return Violation(reason, said)


def run_as_user(_metadata: Object, spec: Object) -> Violation | None:
    who = setters(spec, lambda security: security.get("runAsUser") == 0)
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp(metadata: Object, spec: Object) -> Violation | None:
    if _is_windows(spec):
        return None
    explicit = baseline.seccomp(metadata, spec)
    if explicit is not None or (security_of(spec).get("seccompProfile") or {}).get("type"):
        return explicit
    silent = containers_where(
        spec, lambda each: not (security_of(each).get("seccompProfile") or {}).get("type")
    )
    if not silent:
        return None
    said = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {named('container', silent)} {said}")


def _is_windows(spec: Object) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


REPLACED: Final = (baseline.capabilities, baseline.host_path_volumes, baseline.seccomp)
"""Checks of the level below that are done here, and stricter."""

CHECKS: Final[tuple[Check, ...]] = (
    *(each for each in baseline.CHECKS if each not in REPLACED),
    privilege_escalation,
    capabilities,
    volumes,
    run_as_non_root,
    run_as_user,
    seccomp,
)
