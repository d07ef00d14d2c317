"""The constraints of HorizontalPodAutoscalers: a part of :mod:`.constraint_table`.

Source: ``pkg/apis/autoscaling/validation``.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from berth.cluster.resources import Object
from berth.cluster.schemas.quantities import is_unreadable
from berth.cluster.strategies import quantities
from berth.cluster.strategies.constraints import (
    Owners,
    Plain,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.quantity import parse

Errors = Iterator[FieldError]

SOURCES: Final[Mapping[str, str]] = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
"""Types of metrics, and the field in which each is described."""
MOST: Final = "must be less than or equal to {}"


def check_most(most: int | None, path: str, owners: Owners) -> Errors:
    least, count = owners[-1].get("minReplicas"), most or 0
    if not count:
        yield field_errors.required(path, "must be set and greater than 0")
    elif count < 0:
        yield field_errors.invalid(path, count, "must be greater than 0")
    if least is not None and count < least:
        yield field_errors.invalid(path, count, "must be greater than or equal to `minReplicas`")


def check_api_version(version: str | None, path: str, owners: Owners) -> Errors:
    """Evaluate of which group the target is; of core there are only ReplicationControllers."""
    text = version or ""
    if text.count("/") > 1:
        yield field_errors.invalid(path, text, f"unexpected GroupVersion string: {text}")
    elif "/" not in text and (text, owners[-1].get("kind")) != ("v1", "ReplicationController"):
        yield field_errors.invalid(path, text, "apiVersion must specify API group")


def check_metric(metric: Object, path: str) -> Errors:
    kind = metric.get("type") or ""
    if not kind:
        yield field_errors.required(f"{path}.type", "must specify a metric source type")
    elif kind not in SOURCES:
        yield field_errors.not_supported(f"{path}.type", kind, SOURCES)


def check_source(kind: str | None, path: str, owners: Owners) -> Errors:
    """Evaluate what is given of each source, when the first one has been evaluated."""
    metric, here = owners[-1], path.rpartition(".")[0]
    given = [field for field in SOURCES.values() if metric.get(field) is not None]
    wanted = SOURCES.get(kind or "")
    if wanted is None:
        yield field_errors.not_supported(path, kind or "", SOURCES)
    elif wanted not in given:
        detail = "must populate information for the given metric source"
        yield field_errors.required(f"{here}.{wanted}", detail)
    if len(given) != 1:
        for field in given:
            if field != wanted:
                detail = "must populate the given metric source only"
                yield field_errors.forbidden(f"{here}.{field}", detail)


def check_resource_target(source: Object, path: str) -> Errors:
    """Evaluate what is wanted of a resource: an amount, or a share of what is asked for."""
    given, path = source.get("target") or {}, f"{path}.target"
    value, utilization = given.get("averageValue"), given.get("averageUtilization")
    if value is None and utilization is None:
        detail = "must set either a target raw value or a target utilization"
        yield field_errors.required(f"{path}.averageUtilization", detail)
    if value is not None and utilization is not None:
        detail = "may not set both a target raw value and a target utilization"
        yield field_errors.forbidden(f"{path}.averageValue", detail)


def check_average(source: Object, path: str) -> Errors:
    if (source.get("target") or {}).get("averageValue") is None:
        detail = "must specify a positive target averageValue"
        yield field_errors.required(f"{path}.target.averageValue", detail)


def check_value_or_average(source: Object, path: str) -> Errors:
    given = source.get("target") or {}
    if given.get("value") is None and given.get("averageValue") is None:
        detail = "must set either a target value for metric or a per-pod target"
        yield field_errors.required(f"{path}.target.averageValue", detail)


def check_target_type(kind: str | None, path: str) -> Errors:
    if not kind:
        yield field_errors.required(path, "must specify a metric target type")
    elif kind not in ("Utilization", "Value", "AverageValue"):
        detail = "must be either Utilization, Value, or AverageValue"
        yield field_errors.invalid(path, kind, detail)


def quantity_from(least: int, detail: str) -> Plain:
    """Refuse a quantity of fewer than *least* billionths."""

    def rule(value: str | int | float | None, path: str) -> Errors:
        if value is not None and not is_unreadable(value) and parse(value) < least:
            yield field_errors.invalid(path, value, detail)

    return rule


def check_container_resource(name: str | None, path: str) -> Errors:
    if name:
        yield from quantities.container_name(name, path)
    else:
        yield field_errors.required(path, "must specify a resource name")
