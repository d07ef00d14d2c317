"""DeviceTaintRules of ``resource.k8s.io/v1beta2`` (spec G15.1)."""

from collections.abc import Iterator
from typing import Final

from berth.cluster.resources import Object
from berth.cluster.strategies import syntax
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

MAX_DRIVER_LENGTH: Final = 63
MAX_POOL_LENGTH: Final = 253
MAX_CONDITIONS: Final = 8


def check_rule(rule: Object) -> list[FieldError]:
    """Return what is wrong beside what the schema says, such as the effects that there are."""
    spec = rule.get("spec") or {}
    selector, taint = spec.get("deviceSelector") or {}, spec.get("taint") or {}
    return [*_check_selector(selector, "spec.deviceSelector"), *_check_taint(taint, "spec.taint")]


def check_status(new: Object, _old: Object) -> list[FieldError]:
    conditions = (new.get("status") or {}).get("conditions") or []
    if len(conditions) <= MAX_CONDITIONS:
        return []
    return [field_errors.too_many("status.conditions", len(conditions), MAX_CONDITIONS)]


def _check_selector(selector: Object, path: str) -> Iterator[FieldError]:
    for name, rule in (
        ("driver", _driver),
        ("pool", _pool),
        ("device", syntax.dns1123_label),
    ):
        value = selector.get(name)
        if value is not None:
            for complaint in rule(value):
                yield field_errors.invalid(f"{path}.{name}", value, complaint)


def _driver(name: str) -> list[str]:
    if len(name.encode(errors="replace")) > MAX_DRIVER_LENGTH:
        return [f"must be no more than {MAX_DRIVER_LENGTH} bytes"]
    return syntax.dns1123_subdomain(name)


def _pool(name: str) -> list[str]:
    """One or more subdomains, with slashes between."""
    if len(name.encode(errors="replace")) > MAX_POOL_LENGTH:
        return [f"must be no more than {MAX_POOL_LENGTH} bytes"]
    return [complaint for part in name.split("/") for complaint in syntax.dns1123_subdomain(part)]


def _check_taint(taint: Object, path: str) -> Iterator[FieldError]:
    key, value, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
    for complaint in syntax.qualified_name(key):
        yield field_errors.invalid(f"{path}.key", key, complaint)
    for complaint in syntax.label_value(value):
        yield field_errors.invalid(f"{path}.value", value, complaint)
    if not effect:
        yield field_errors.required(f"{path}.effect")
