"""Label selectors, as workloads, affinity terms and spread constraints write them."""

from collections.abc import Mapping

from berth.cluster.strategies import metadata, syntax
from berth.cluster.strategies.shape import Shape
from berth.kube import field_errors
from berth.kube.field_errors import FieldError


class Requirement(Shape, frozen=True):
    """Of a label selector or a node selector."""

    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class LabelSelector(Shape, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it selects everything."""
        return not self.match_labels and not self.match_expressions


def validate(selector: LabelSelector | None, path: str) -> list[FieldError]:
    """Evaluate a selector; a missing one is fine here."""
    if selector is None:
        return []
    errors = metadata.validate_labels(selector.match_labels, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.match_expressions or []):
        errors += _validate_requirement(requirement, f"{path}.matchExpressions[{index}]")
    return errors


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether a valid *selector* selects *labels*."""
    wanted = (selector.match_labels or {}).items()
    return all(labels.get(key) == value for key, value in wanted) and all(
        _meets(requirement, labels) for requirement in selector.match_expressions or []
    )


def _meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Match as :class:`berth.kube.objects.selectors.Requirement` does, without making one.

    A budget may have thousands of requirements, which every change of a pod is matched against.
    """
    value = labels.get(requirement.key or "")
    match requirement.operator:
        case "In":
            return value is not None and value in (requirement.values or [])
        case "NotIn":
            return value is None or value not in (requirement.values or [])
        case "Exists":
            return value is not None
        case _:
            return value is None


def _validate_requirement(requirement: Requirement, path: str) -> list[FieldError]:
    errors = validate_values(requirement, path)
    if requirement.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        errors.append(
            field_errors.invalid(
                f"{path}.operator", requirement.operator or "", "not a valid selector operator"
            )
        )
    key = requirement.key or ""
    errors += [
        field_errors.invalid(f"{path}.key", key, text) for text in syntax.qualified_name(key)
    ]
    for index, value in enumerate(requirement.values or []):
        errors += [
            field_errors.invalid(f"{path}.values[{index}]", value, text)
            for text in syntax.label_value(value)
        ]
    return errors


def validate_values(requirement: Requirement, path: str) -> list[FieldError]:
    """Evaluate whether there are as many values as the operator wants."""
    values = requirement.values or []
    match requirement.operator:
        case "In" | "NotIn" if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            return [field_errors.required(f"{path}.values", detail)]
        case "Exists" | "DoesNotExist" if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            return [field_errors.forbidden(f"{path}.values", detail)]
        case "Lt" | "Gt" if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            return [field_errors.required(f"{path}.values", detail)]
    return []
