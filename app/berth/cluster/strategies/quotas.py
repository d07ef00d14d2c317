"""The constraints of ResourceQuotas and LimitRanges: a part of :mod:`.constraint_table`."""

from collections.abc import Iterator, Mapping
from typing import Final

from berth.cluster.resources import Object
from berth.cluster.strategies import quantities, syntax
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.amounts import Amount, amounts

Errors = Iterator[FieldError]

SCOPES: Final = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
OPPOSITES: Final = (("BestEffort", "NotBestEffort"), ("NotTerminating", "Terminating"))
COMPARED: Final = ("PriorityClass", "VolumeAttributesClass")
"""In the others a pod is or not: there is nothing to compare."""
ONLY_EXISTS: Final = (
    "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)

OF_PODS = frozenset({"pods"})
OF_RUNNING_PODS = OF_PODS | {
    f"{prefix}{name}" for prefix in ("", "limits.", "requests.") for name in ("cpu", "memory")
}
"""Of the standard resources, those that a scope leaves a part of; ``BestEffort`` only pods."""
OF_CLAIMS = frozenset({"persistentvolumeclaims", "requests.storage"})

OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")


def check_hard(hard: Object | None, path: str) -> Errors:
    """Evaluate what is limited, and how far."""
    for name, quantity in (hard or {}).items():
        here = f"{path}[{name}]"
        yield from quantities.quota_name(name, here)
        yield from quantities.validate_amount(name, quantity, here)


def check_scopes(spec: Object, path: str) -> Errors:
    limited = sorted(name for name in spec.get("hard") or {} if name in quantities.QUOTA_RESOURCES)
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in SCOPES:
            yield field_errors.invalid(f"{path}.scopes", scopes, "unsupported scope")
        for _ in _out_of_scope(scope, limited):
            detail = "unsupported scope applied to resource"
            yield field_errors.invalid(f"{path}.scopes", scopes, detail)
    yield from _conflicts(scopes, scopes, f"{path}.scopes")
    requirements = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    here = f"{path}.scopeSelector.matchExpressions"
    for requirement in requirements:
        yield from _requirement(requirement, here, limited)
    named = [requirement.get("scopeName") or "" for requirement in requirements]
    yield from _conflicts(named, requirements, here)


def _conflicts(scopes: list[str], shown: list[object], path: str) -> Errors:
    for pair in OPPOSITES:
        if set(pair) <= set(scopes):
            yield field_errors.invalid(path, shown, "conflicting scopes")


def _out_of_scope(scope: str, limited: list[str]) -> list[str]:
    """Return the resources that cannot be limited within a scope."""
    if scope not in SCOPES:
        return []
    apart = {"BestEffort": OF_PODS, "VolumeAttributesClass": OF_CLAIMS}
    known = apart.get(scope, OF_RUNNING_PODS)
    return [name for name in limited if name not in known]


def _requirement(requirement: Object, path: str, limited: list[str]) -> Errors:
    scope, operator = requirement.get("scopeName") or "", requirement.get("operator") or ""
    values = requirement.get("values") or []
    if scope not in SCOPES:
        yield field_errors.invalid(f"{path}.scopeName", scope, "unsupported scope")
    for _ in _out_of_scope(scope, limited):
        detail = "unsupported scope applied to resource"
        yield field_errors.invalid(f"{path}.scopeName", scope, detail)
    if scope in SCOPES and scope not in COMPARED and operator != "Exists":
        yield field_errors.invalid(f"{path}.operator", operator, ONLY_EXISTS)
    if operator in ("In", "NotIn") and not values:
        detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        yield field_errors.required(f"{path}.values", detail)
    elif operator in ("Exists", "DoesNotExist") and values:
        detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        yield field_errors.invalid(f"{path}.values", values, detail)
    if operator not in OPERATORS:
        detail = "not a valid selector operator"
        yield field_errors.invalid(f"{path}.operator", operator, detail)


def check_scopes_kept(new: Object, old: Object) -> list[FieldError]:
    """Refuse other scopes of a quota."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    if set(after.get("scopes") or ()) == set(before.get("scopes") or ()):
        return []
    return [field_errors.invalid("spec.scopes", after.get("scopes"), "field is immutable")]


LISTS = ("default", "defaultRequest", "max", "maxLimitRequestRatio", "min")

REQUEST = "default request value {}"
LIMIT = "default limit value {}"

ORDERS = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", f"min value {{}} is greater than {REQUEST}"),
    ("defaultRequest", "max", "defaultRequest", f"{REQUEST} is greater than max value {{}}"),
    ("defaultRequest", "default", "defaultRequest", f"{REQUEST} is greater than {LIMIT}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)
"""What may not be greater than what, which field is blamed, and how."""


STANDARD_LIMITS: Final = ("Pod", "Container", "PersistentVolumeClaim")


def check_limit_type(kind: str | None, path: str) -> Errors:
    complaints = [
        field_errors.invalid(path, kind or "", why) for why in syntax.qualified_name(kind or "")
    ]
    yield from complaints
    if not complaints and "/" not in (kind or "") and kind not in STANDARD_LIMITS:
        yield field_errors.invalid(path, kind, "must be a standard limit type or fully qualified")


def check_limits(item: Object, path: str) -> Errors:
    kind = item.get("type")
    of_containers = kind in ("Pod", "Container")
    name_of = quantities.container_name if of_containers else quantities.resource_name
    for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        if kind == "Pod" and field.startswith("default"):
            if item.get(field):
                detail = "may not be specified when `type` is 'Pod'"
                yield field_errors.forbidden(f"{path}.{field}", detail)
            continue
        if field == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            yield from _of_claims(item, path)
        for name in item.get(field) or ():
            yield from name_of(name, f"{path}.{field}[{name}]")
    if any(
        quantities.parse_or_none(quantity) is None
        for field in LISTS
        for quantity in (item.get(field) or {}).values()
    ):
        return
    given = {field: amounts(item.get(field)) for field in LISTS}
    yield from _check_order(given, path)
    yield from _check_ratio(given, path)


def _of_claims(item: Object, path: str) -> Errors:
    if not any("storage" in (item.get(field) or {}) for field in ("min", "max")):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield field_errors.required(f"{path}.limits", detail)


def _check_order(given: Mapping[str, Mapping[str, Amount]], path: str) -> Iterator[FieldError]:
    for lower, upper, blamed, said in ORDERS:
        for name in given[lower].keys() & given[upper].keys():
            low, high = given[lower][name], given[upper][name]
            if low.nanos > high.nanos:
                value = given[lower if blamed == lower else upper][name]
                yield field_errors.invalid(
                    f"{path}.{blamed}[{name}]", str(value), said.format(low, high)
                )


def _check_ratio(given: Mapping[str, Mapping[str, Amount]], path: str) -> Iterator[FieldError]:
    for name, ratio in given["maxLimitRequestRatio"].items():
        here = f"{path}.maxLimitRequestRatio[{name}]"
        if ratio.nanos < 10**9:
            yield field_errors.invalid(here, str(ratio), f"ratio {ratio} is less than 1")
        least, most = given["min"].get(name), given["max"].get(name)
        if least and most and least.nanos and ratio.nanos / 10**9 > most.nanos / least.nanos:
            why = f"ratio {ratio} is greater than max/min = {most.nanos / least.nanos:f}"
            yield field_errors.invalid(here, str(ratio), why)
