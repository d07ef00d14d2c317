"""Updates of a pod's spec after its creation: images, a few numbers, gates going away."""

from typing import Any

from berth.cluster.resources import Object
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
ONLY_ADDITIONS = "only additions are allowed (no mutations or deletions)"


def validate_spec_update(new: Object, old: Object) -> list[FieldError]:
    """Evaluate a change of spec; both fit their shape and *new* is valid by itself."""
    errors = _containers(new, old) + _deadline(new, old) + _tolerations(new, old)
    errors += _gates(new, old)
    # While gated, a pod may still narrow down where it wants to be.
    gated = bool(old.get("schedulingGates"))
    if gated:
        errors += _node_selector(new, old) + _node_affinity(new, old)
    if not errors and _frozen(new, gated=gated) != _frozen(old, gated=gated):
        errors.append(field_errors.forbidden("spec", MUTABLE))
    return errors


def _frozen(spec: Object, *, gated: bool) -> Object:
    """What of *spec* must stay as it is."""
    frozen = {k: v for k, v in spec.items() if k not in _VALIDATED_APART}
    for field in ("containers", "initContainers"):
        frozen[field] = [
            {k: v for k, v in container.items() if k != "image"}
            for container in spec.get(field) or []
        ]
    if gated:
        frozen.pop("nodeSelector", None)
        affinity = {k: v for k, v in (spec.get("affinity") or {}).items() if k != "nodeAffinity"}
        frozen["affinity"] = affinity
    return frozen


_VALIDATED_APART = ("activeDeadlineSeconds", "tolerations", "schedulingGates")


def _containers(new: Object, old: Object) -> list[FieldError]:
    return [
        field_errors.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
        for field in ("containers", "initContainers")
        if len(new.get(field) or []) != len(old.get(field) or [])
    ]


def _deadline(new: Object, old: Object) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    before, after = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    if before is None or before == after:
        return []
    if after is None:
        detail = "must not update from a positive integer to nil value"
        return [field_errors.invalid(path, after, detail)]
    if after > before:
        return [field_errors.invalid(path, after, "must be less than or equal to previous value")]
    return []


def _tolerations(new: Object, old: Object) -> list[FieldError]:
    def without_seconds(toleration: Object) -> Object:
        return {k: v for k, v in toleration.items() if k != "tolerationSeconds"}

    kept = [without_seconds(toleration) for toleration in new.get("tolerations") or []]
    if all(without_seconds(toleration) in kept for toleration in old.get("tolerations") or []):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [field_errors.forbidden("spec.tolerations", detail)]


def _gates(new: Object, old: Object) -> list[FieldError]:
    before = {gate.get("name") for gate in old.get("schedulingGates") or []}
    return [
        field_errors.forbidden(
            "spec.schedulingGates",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for gate in new.get("schedulingGates") or []
        if gate.get("name") not in before
    ]


def _node_selector(new: Object, old: Object) -> list[FieldError]:
    before, after = old.get("nodeSelector") or {}, new.get("nodeSelector") or {}
    if before.items() <= after.items():
        return []
    return [field_errors.invalid("spec.nodeSelector", after, ONLY_ADDITIONS)]


def _node_affinity(new: Object, old: Object) -> list[FieldError]:
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    path += ".nodeSelectorTerms"
    before, after = _required_terms(old), _required_terms(new)
    if not before:
        return []
    if len(before) != len(after):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [field_errors.invalid(path, after, detail)]
    return [
        field_errors.invalid(f"{path}[{index}]", now, ONLY_ADDITIONS)
        for index, (was, now) in enumerate(zip(before, after, strict=True))
        if not _narrows(was, now)
    ]


def _required_terms(spec: Object) -> list[Any]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return required.get("nodeSelectorTerms") or []


def _narrows(was: Object, now: Object) -> bool:
    """Whether *now* asks for all that *was* asked for. An empty term, matching nothing, stays."""
    if not was.get("matchExpressions") and not was.get("matchFields"):
        return was == now
    return all(
        requirement in (now.get(field) or [])
        for field in ("matchExpressions", "matchFields")
        for requirement in was.get(field) or []
    )
