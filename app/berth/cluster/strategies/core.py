"""Kinds of core and storage: what the server sets, and which changes it takes."""

from typing import Final

from berth.cluster.resources import Object, section
from berth.cluster.schemas import builtin
from berth.cluster.schemas.go_value import go_diff
from berth.cluster.schemas.types import Schema
from berth.cluster.strategies import metadata
from berth.cluster.strategies.by_schema import unchanged
from berth.cluster.strategies.constraint_table import CONSTRAINTS
from berth.cluster.strategies.defaults import fill_namespace
from berth.cluster.strategies.kind_constraints import VOLUME_SOURCES
from berth.cluster.strategies.quantities import parse_or_none
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

FROZEN: Final = "field is immutable when `immutable` is set"
BOUND_CLAIM: Final = (
    "spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)


def prepare_namespace(new: Object, old: Object | None) -> None:
    """Only the finalize subresource takes a finalizer of ``spec`` away."""
    spec = section(new, "spec")
    if old is None:
        fill_namespace(new)  # a generated name is new
        finalizers = spec.setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
    else:
        spec["finalizers"] = (old.get("spec") or {}).get("finalizers") or []


def deleting_namespace(namespace: Object) -> None:
    """Say that the namespace is being emptied, which takes as long as it does."""
    namespace["metadata"].pop("deletionGracePeriodSeconds", None)
    section(namespace, "status")["phase"] = "Terminating"


def check_node_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse what no update changes; taints are evaluated once more, as upstream does."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    errors = []
    if before.get("podCIDRs") and after.get("podCIDRs") != before["podCIDRs"]:
        why = 'node updates may not change podCIDR except from "" to valid'
        errors.append(field_errors.forbidden("spec.podCIDRs", why))
    if before.get("providerID") and after.get("providerID") != before["providerID"]:
        why = "node updates may not change providerID"
        errors.append(field_errors.forbidden("spec.providerID", why))
    if after == before:
        return errors
    schema = builtin.schema("io.k8s.api.core.v1.NodeSpec")
    taints = {"taints": after.get("taints")}
    return errors + CONSTRAINTS.violations(schema, taints, "metadata")


def check_config_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse changes of a ConfigMap or Secret that is frozen."""
    if not old.get("immutable"):
        return []
    errors = []
    if not new.get("immutable"):
        errors.append(field_errors.forbidden("immutable", FROZEN))
    return errors + [
        field_errors.forbidden(field, FROZEN)
        for field in ("data", "binaryData")
        if new.get(field) != old.get(field)
    ]


def check_priority_class_update(new: Object, old: Object) -> list[FieldError]:
    errors = []
    if new.get("value") != old.get("value"):
        errors.append(field_errors.forbidden("value", "may not be changed in an update."))
    return errors + unchanged(new, old, "preemptionPolicy")


def new_generation(new: Object, old: Object | None) -> None:
    """Count what never changes."""
    metadata.set_generation(new, old, changed=False)


def check_volume_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse another source; what else is wrong is told once more, as upstream does."""
    whole = builtin.schema("io.k8s.api.core.v1.PersistentVolume")
    errors = CONSTRAINTS.violations(whole, {"spec": new["spec"]})
    after, before = ({key: obj["spec"].get(key) for key in VOLUME_SOURCES} for obj in (new, old))
    if before["csi"] and after["csi"] and not before["csi"].get("controllerExpandSecretRef"):
        after["csi"] = {**after["csi"]}
        after["csi"].pop("controllerExpandSecretRef", None)  # which may come later
    if after != before:
        detail = "spec.persistentvolumesource is immutable after creation"
        fields = builtin.schema("io.k8s.api.core.v1.PersistentVolumeSpec").fields
        source = Schema("io.k8s.api.core.v1.PersistentVolumeSource", lambda: fields)
        detail += f"\n{go_diff(source, before, after)}"
        errors.append(field_errors.forbidden("spec.persistentvolumesource", detail))
    return errors + unchanged(new, old, "spec.volumeMode", blamed="volumeMode")


def pending_volume(volume: Object) -> Object:
    """Return the status of a new volume."""
    since = volume["metadata"]["creationTimestamp"]
    return {"phase": "Pending", "lastPhaseTransitionTime": since}


def check_claim_update(new: Object, old: Object) -> list[FieldError]:
    """A claim may be given a volume once, and grow once it is bound; nothing else."""
    after, before = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    asked, had = (_storage(spec) for spec in (after, before))
    if not before.get("volumeName") and after.get("volumeName"):
        before["volumeName"] = after["volumeName"]
    if (old.get("status") or {}).get("phase") == "Bound":
        for field in ("resources", "volumeAttributesClassName"):
            after.pop(field, None)
            if field in before:
                after[field] = before[field]
    errors = []
    if after != before:
        schema = builtin.schema("io.k8s.api.core.v1.PersistentVolumeClaimSpec")
        detail = f"{BOUND_CLAIM}\n{go_diff(schema, before, after)}"
        errors.append(field_errors.forbidden("spec", detail))
    capacity = (old.get("status") or {}).get("capacity") or {}
    if asked < had and asked <= (parse_or_none(capacity.get("storage", 0)) or 0):
        detail = "field can not be less than status.capacity"
        errors.append(field_errors.forbidden("spec.resources.requests.storage", detail))
    return errors + unchanged(new, old, "spec.volumeMode", blamed="volumeMode")


def _storage(spec: Object) -> int:
    requests = (spec.get("resources") or {}).get("requests") or {}
    return parse_or_none(requests.get("storage", 0)) or 0


def check_driver_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse what upstream does, in its spelling."""
    return unchanged(new, old, "spec.attachRequired", blamed="spec.attachedRequired")


def prepare_lease(new: Object, _old: Object | None) -> None:
    """Drop what only coordinated leader election has, which is switched off."""
    for field in ("preferredHolder", "strategy"):
        new["spec"].pop(field, None)
