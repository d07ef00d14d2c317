"""Label selectors, as workloads, affinity terms and spread constraints write them."""

from collections.abc import Mapping
from typing import Final

from berth.cluster.resources import Object
from berth.cluster.strategies import metadata, syntax
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.meta import KubeStruct

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


class Requirement(KubeStruct, frozen=True):
    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class LabelSelector(KubeStruct, frozen=True):
    """A valid one, to select with."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it selects everything."""
        return not self.match_labels and not self.match_expressions


def validate(selector: Object | None, path: str) -> list[FieldError]:
    """Evaluate a selector; a missing one is fine here."""
    if not selector:
        return []
    errors = metadata.validate_labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or []):
        here = f"{path}.matchExpressions[{index}]"
        errors += validate_requirement(requirement, here, OPERATORS)
        errors += validate_values(requirement, here)
    return errors


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether a valid *selector* selects *labels*.

    Matches as :class:`berth.kube.objects.selectors.Requirement` does, without making one, and
    without calls: a budget may have thousands of requirements, which every change of a pod is
    matched against.
    """
    for key, wanted in (selector.match_labels or {}).items():
        if labels.get(key) != wanted:
            return False
    for requirement in selector.match_expressions or ():
        operator, value = requirement.operator, labels.get(requirement.key or "")
        if value is None:
            is_met = operator not in ("In", "Exists")
        elif operator in ("In", "NotIn"):
            is_met = (value in (requirement.values or ())) == (operator == "In")
        else:
            is_met = operator == "Exists"
        if not is_met:
            return False
    return True


def validate_requirement(
    requirement: Object, path: str, operators: tuple[str, ...]
) -> list[FieldError]:
    """Evaluate the operator, the number of values and the key of a requirement."""
    operator, key = requirement.get("operator") or "", requirement.get("key") or ""
    values = requirement.get("values")
    errors = []
    match operator:
        case "In" | "NotIn" if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            errors.append(field_errors.required(f"{path}.values", detail))
        case "Exists" | "DoesNotExist" if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(field_errors.forbidden(f"{path}.values", detail))
        case "Lt" | "Gt" if operator in operators and len(values or ()) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(field_errors.required(f"{path}.values", detail))
    if operator not in operators:
        detail = "not a valid selector operator"
        errors.append(field_errors.invalid(f"{path}.operator", operator, detail))
    return errors + [
        field_errors.invalid(f"{path}.key", key, why) for why in syntax.qualified_name(key)
    ]


def validate_values(requirement: Object, path: str) -> list[FieldError]:
    """Evaluate the values of a requirement as those of labels."""
    return [
        field_errors.invalid(f"{path}.values[{index}]", value, why)
        for index, value in enumerate(requirement.get("values") or [])
        for why in syntax.label_value(value)
    ]
