"""Updates of a pod's spec after its creation: images, a few numbers, gates going away."""

from typing import Any

from berth.cluster.resources import Object
from berth.cluster.schemas.go_value import go_diff
from berth.cluster.schemas.types import Type
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
ONLY_ADDITIONS = "only additions are allowed (no mutations or deletions)"


def validate_spec_update(new: Object, old: Object, shown_as: Type) -> list[FieldError]:
    """Evaluate a change of a spec of the type *shown_as*."""
    if added := _containers(new, old):
        return added
    errors = _deadline(new, old) + _tolerations(new, old) + _gates(new, old)
    # While gated, a pod may still narrow down where it wants to be.
    gated = bool(old.get("schedulingGates"))
    if gated:
        errors += _node_selector(new, old) + _node_affinity(new, old)
    kept = _with_what_may_change(new, old, gated=gated)
    if not errors and kept != old:
        difference = go_diff(shown_as, old, kept)
        errors.append(field_errors.forbidden("spec", f"{MUTABLE}\n{difference}"))
    return errors


def _with_what_may_change(new: Object, old: Object, *, gated: bool) -> Object:
    """Return the spec *new*, with what may change as it was in *old*."""
    spec = _as_in(old, new, *_VALIDATED_APART, *(("nodeSelector",) if gated else ()))
    for field in ("containers", "initContainers"):
        if spec.get(field):
            pairs = zip(spec[field], old.get(field) or [], strict=True)
            spec[field] = [_as_in(before, container, "image") for container, before in pairs]
    if gated:
        before, after = old.get("affinity") or {}, new.get("affinity") or {}
        spec = _as_in({"affinity": _as_in(before, after, "nodeAffinity")}, spec, "affinity")
        if not spec["affinity"] and "affinity" not in old:
            del spec["affinity"]
    if old.get("terminationGracePeriodSeconds", 0) < 0 and (
        new.get("terminationGracePeriodSeconds") == 1
    ):
        spec = _as_in(old, spec, "terminationGracePeriodSeconds")
    return spec


def _as_in(old: Object, new: Object, *fields: str) -> Object:
    """Return *new*, with *fields* as in *old*."""
    kept = {key: value for key, value in new.items() if key not in fields}
    return {**kept, **{key: old[key] for key in fields if key in old}}


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
