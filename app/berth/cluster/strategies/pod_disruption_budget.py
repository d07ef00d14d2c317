"""PodDisruptionBudgets: how many pods of a kind may be away at a time."""

from berth import field_errors
from berth.cluster import percent
from berth.cluster.resources import Object
from berth.cluster.strategies import plain
from berth.field_errors import FieldError


def _check(spec: Object) -> list[FieldError]:
    given = [field for field in ("minAvailable", "maxUnavailable") if spec.get(field) is not None]
    if len(given) > 1:
        detail = "minAvailable and maxUnavailable cannot be both set"
        return [field_errors.invalid("spec", spec, detail)]
    return [error for field in given for error in _check_amount(spec[field], f"spec.{field}")]


def _check_amount(amount: int | str, path: str) -> list[FieldError]:
    if isinstance(amount, str):
        if not percent.is_percent(amount):
            detail = "a valid percent string must be a numeric string followed by an ending '%'"
            return [field_errors.invalid(path, amount, detail)]
        if percent.number_of(amount) > 100:
            return [field_errors.invalid(path, amount, "must not be greater than 100%")]
        return []
    if amount < 0:
        return [field_errors.invalid(path, amount, "must be greater than or equal to 0")]
    return []


POD_DISRUPTION_BUDGET = plain.of_spec(
    namespaced=True,
    check=_check,
    status={"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
    generation=True,
)
