"""LimitRanges: what they say must not contradict itself."""

from collections.abc import Iterator, Mapping

from berth.cluster.resources import Object
from berth.cluster.strategies.quantities import validate_quantity
from berth.cluster.strategies.shape import section
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.amounts import Amount, amounts

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


def default(obj: Object) -> None:
    """A container's limit is what it gets when it asks for none, and so on downwards."""
    for item in section(obj, "spec").get("limits") or ():
        if item.get("type") != "Container":
            continue
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        if limits:
            item["default"] = limits
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        if requests:
            item["defaultRequest"] = requests


def check(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen = set()
    for index, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", item.get("type")
        if kind in seen:
            errors.append(field_errors.duplicate(f"{path}.type", kind))
        seen.add(kind)
        errors += _check_item(item, path)
    return errors


def _check_item(item: Object, path: str) -> list[FieldError]:
    malformed = [
        error
        for field in LISTS
        for name, quantity in (item.get(field) or {}).items()
        for error in validate_quantity(quantity, f"{path}.{field}[{name}]")
    ]
    if malformed:
        return malformed
    kind = item.get("type")
    if kind == "Pod":
        return [
            field_errors.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            for field in ("default", "defaultRequest")
            if item.get(field)
        ]
    if kind == "PersistentVolumeClaim" and not any(
        "storage" in (item.get(field) or {}) for field in ("min", "max")
    ):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        return [field_errors.required(path, detail)]
    given = {field: amounts(item.get(field)) for field in LISTS}
    return [*_check_order(given, path), *_check_ratio(given, path)]


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
