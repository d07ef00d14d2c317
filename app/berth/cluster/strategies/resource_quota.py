"""ResourceQuotas: the names of what they limit, and the scopes that go together."""

from collections.abc import Iterator

from berth.cluster.resources import Object
from berth.cluster.strategies import syntax
from berth.cluster.strategies.quantities import CONTAINER_RESOURCES, validate_quantity
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.quantity import NANO, parse

COUNTED = (
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
)
FRACTIONAL = frozenset(
    {
        *CONTAINER_RESOURCES,
        *(f"{kind}.{name}" for kind in ("limits", "requests") for name in CONTAINER_RESOURCES),
        "requests.storage",
    }
)
STANDARD = FRACTIONAL | frozenset(COUNTED)

SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
OPPOSITES = (("BestEffort", "NotBestEffort"), ("NotTerminating", "Terminating"))
CLASSES = ("PriorityClass", "VolumeAttributesClass")
EXISTENTIAL = tuple(each for each in SCOPES if each not in CLASSES)
"""A pod is in them or not: there is nothing to compare."""

OF_PODS = frozenset({"pods"})
OF_RUNNING_PODS = OF_PODS | {
    f"{prefix}{name}" for prefix in ("", "limits.", "requests.") for name in ("cpu", "memory")
}
OF_CLAIMS = frozenset({"persistentvolumeclaims", "requests.storage"})
"""Of the standard resources, those that a scope leaves a part of; ``BestEffort`` only pods."""

OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")


def check(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    for name, quantity in (spec.get("hard") or {}).items():
        path = f"spec.hard[{name}]"
        errors += _check_name(name, path)
        wrong = validate_quantity(quantity, path)
        if not wrong and name not in FRACTIONAL and parse(quantity) % NANO:
            wrong = [field_errors.invalid(path, quantity, "must be an integer")]
        errors += wrong
    scopes = spec.get("scopes") or []
    limited = sorted(name for name in spec.get("hard") or {} if name in STANDARD)
    errors += _check_scopes(scopes, "spec.scopes")
    errors += [
        field_errors.invalid("spec.scopes", scopes, "unsupported scope applied to resource")
        for scope in scopes
        for _ in _out_of_scope(scope, limited)
    ]
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    errors += _check_selector(selected)
    errors += [
        field_errors.invalid(
            "spec.scopeSelector.matchExpressions.scopeName",
            each.get("scopeName"),
            "unsupported scope applied to resource",
        )
        for each in selected
        for _ in _out_of_scope(each.get("scopeName") or "", limited)
    ]
    return errors


def _out_of_scope(scope: str, limited: list[str]) -> list[str]:
    """Return the resources that cannot be limited within a scope."""
    if scope not in SCOPES:
        return []
    narrow = {"BestEffort": OF_PODS, "VolumeAttributesClass": OF_CLAIMS}
    known = narrow.get(scope, OF_RUNNING_PODS)
    return [name for name in limited if name not in known]


def check_update(new: Object, old: Object) -> list[FieldError]:
    after, before = new.get("spec") or {}, old.get("spec") or {}
    if set(after.get("scopes") or ()) == set(before.get("scopes") or ()):
        return []
    return [field_errors.invalid("spec.scopes", after.get("scopes"), "field is immutable")]


def _check_name(name: str, path: str) -> list[FieldError]:
    errors = [field_errors.invalid(path, name, why) for why in syntax.qualified_name(name)]
    known = name in STANDARD or name.startswith(("hugepages-", "requests.hugepages-"))
    if not errors and "/" not in name and not known:
        errors.append(field_errors.invalid(path, name, "must be a standard resource for quota"))
    return errors


def _check_scopes(scopes: list[str], path: str) -> Iterator[FieldError]:
    for scope in scopes:
        if scope not in SCOPES:
            yield field_errors.invalid(path, scopes, "unsupported scope")
    for pair in OPPOSITES:
        if set(pair) <= set(scopes):
            yield field_errors.invalid(path, scopes, "conflicting scopes")


def _check_selector(requirements: list[Object]) -> Iterator[FieldError]:
    path = "spec.scopeSelector.matchExpressions"
    yield from _check_scopes(
        [requirement.get("scopeName") or "" for requirement in requirements], path
    )
    for index, each in enumerate(requirements):
        operator, values = each.get("operator"), each.get("values") or []
        here = f"{path}[{index}]"
        if each.get("scopeName") in EXISTENTIAL and operator != "Exists":
            why = f"must be 'Exist' when scope is any of {', '.join(EXISTENTIAL)}"
            yield field_errors.invalid(f"{here}.operator", operator, why)
        if operator not in OPERATORS:
            yield field_errors.invalid(
                f"{here}.operator", operator, "not a valid selector operator"
            )
        elif operator in ("In", "NotIn") and not values:
            why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield field_errors.required(f"{here}.values", why)
        elif operator in ("Exists", "DoesNotExist") and values:
            why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield field_errors.invalid(f"{here}.values", values, why)
