"""PodDisruptionBudgets: how many pods of a kind may be away at a time."""

from typing import Final

import msgspec

from berth.cluster import percent
from berth.cluster.resources import Object
from berth.cluster.strategies import selectors
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def check(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    given = [field for field in ("minAvailable", "maxUnavailable") if spec.get(field) is not None]
    if len(given) > 1:
        detail = "minAvailable and maxUnavailable cannot be both set"
        return [field_errors.invalid("spec", spec, detail)]
    found = [error for field in given for error in _check_amount(spec[field], f"spec.{field}")]
    selector = spec.get("selector")
    if selector is not None:
        selector = msgspec.convert(selector, selectors.LabelSelector)
    return found + selectors.validate(selector, "spec.selector")


def _check_amount(amount: int | str, path: str) -> list[FieldError]:
    if isinstance(amount, str):
        if not percent.is_percent(amount):
            return [field_errors.invalid(path, amount, percent.WANTED)]
        if percent.number_of(amount) > 100:
            return [field_errors.invalid(path, amount, "must not be greater than 100%")]
        return []
    if amount < 0:
        return [field_errors.invalid(path, amount, "must be greater than or equal to 0")]
    return []


def check_status(new: Object, _old: Object) -> list[FieldError]:
    status = new.get("status") or {}
    return [
        field_errors.invalid(f"status.{field}", status[field], "must be greater than or equal to 0")
        for field in COUNTS
        if (status.get(field) or 0) < 0
    ]
