"""Taints of nodes and tolerations of pods."""

from berth.cluster.strategies import syntax
from berth.cluster.strategies.shape import Int64, Shape
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.selectors import parse_canonical_int64

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Taint(Shape, frozen=True):
    key: str | None = None
    value: str | None = None
    effect: str | None = None
    time_added: str | None = None


class Toleration(Shape, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: Int64 | None = None


def validate_taints(taints: list[Taint], path: str) -> list[FieldError]:
    errors = []
    seen = set()
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        errors += _validate_key(taint.key or "", f"{here}.key")
        errors += [
            field_errors.invalid(f"{here}.value", taint.value, text)
            for text in syntax.label_value(taint.value or "")
        ]
        if not taint.effect:
            errors.append(field_errors.required(f"{here}.effect"))
        elif taint.effect not in EFFECTS:
            errors.append(field_errors.not_supported(f"{here}.effect", taint.effect, EFFECTS))
        if (taint.key, taint.effect) in seen:
            detail = "taints must be unique by key and effect pair"
            errors.append(field_errors.duplicate(here, taint, detail))
        seen.add((taint.key, taint.effect))
    return errors


def validate_tolerations(tolerations: list[Toleration], path: str) -> list[FieldError]:
    """Check tolerations.

    While the feature gate of ``Lt`` and ``Gt`` is off, admission refuses these before.
    """
    errors = []
    for index, toleration in enumerate(tolerations):
        errors += _validate_toleration(toleration, f"{path}[{index}]")
    return errors


def _validate_key(key: str, path: str) -> list[FieldError]:
    return [field_errors.invalid(path, key, text) for text in syntax.qualified_name(key)]


def _validate_toleration(toleration: Toleration, path: str) -> list[FieldError]:
    operator, value, effect = toleration.operator or "", toleration.value or "", toleration.effect
    errors = _validate_key(toleration.key, f"{path}.key") if toleration.key else []
    if not toleration.key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and '
        detail += 'all keys"'
        errors.append(field_errors.invalid(f"{path}.operator", operator, detail))
    if toleration.toleration_seconds is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(field_errors.invalid(f"{path}.effect", effect or "", detail))
    match operator:
        case "" | "Equal":
            complaints = syntax.label_value(value)
            errors += [field_errors.invalid(f"{path}.operator", value, t) for t in complaints[:1]]
        case "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                errors.append(field_errors.invalid(f"{path}.operator", toleration, detail))
        case "Lt" | "Gt":
            if parse_canonical_int64(value) is None:
                detail = "must be a valid decimal integer in canonical form"
                errors.append(field_errors.invalid(f"{path}.value", value, detail))
        case _:
            supported = ("Equal", "Exists")
            errors.append(field_errors.not_supported(f"{path}.operator", operator, supported))
    if effect and effect not in EFFECTS:
        errors.append(field_errors.not_supported(f"{path}.effect", effect, EFFECTS))
    return errors
