"""Validation of HorizontalPodAutoscalers (``pkg/apis/autoscaling/validation``)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.schemas.quantities import is_unreadable
from berth.cluster.strategies import syntax
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.quantity import parse

SOURCES: Final[Mapping[str, str]] = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
"""Types of metrics, and the field in which each is described."""
TARGETS: Final = ("Utilization", "Value", "AverageValue")
SELECT_POLICIES: Final = ("Disabled", "Max", "Min")
POLICIES: Final = ("Percent", "Pods")
LONGEST_WINDOW: Final = 3600
LONGEST_PERIOD: Final = 1800


def check(obj: Object) -> list[FieldError]:
    """Evaluate an autoscaling/v2 object."""
    spec = obj.get("spec") or {}
    errors = [*_bounds(spec), *_target(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")]
    for number, metric in enumerate(spec.get("metrics") or ()):
        errors += _metric(metric, f"spec.metrics[{number}]")
    behavior = spec.get("behavior") or {}
    for direction in ("scaleUp", "scaleDown"):
        if behavior.get(direction) is not None:
            errors += _rules(behavior[direction], f"spec.behavior.{direction}")
    return errors


def _bounds(spec: Object) -> Iterator[FieldError]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        detail = "must be greater than or equal to 1"
        yield field_errors.invalid("spec.minReplicas", least, detail)
    if not most:
        yield field_errors.required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield field_errors.invalid("spec.maxReplicas", most, "must be greater than 0")
    if least is not None and most < least:
        detail = "must be greater than or equal to `minReplicas`"
        yield field_errors.invalid("spec.maxReplicas", most, detail)


def _target(reference: Object, path: str) -> Iterator[FieldError]:
    for field in ("kind", "name"):
        value = reference.get(field) or ""
        if not value:
            yield field_errors.required(f"{path}.{field}")
            continue
        for detail in syntax.path_segment(value):
            yield field_errors.invalid(f"{path}.{field}", value, detail)


def _metric(metric: Object, path: str) -> Iterator[FieldError]:
    kind = metric.get("type") or ""
    given = [field for field in SOURCES.values() if metric.get(field) is not None]
    if not kind:
        yield field_errors.required(f"{path}.type", "must specify a metric source type")
        return
    if kind not in SOURCES:
        yield field_errors.not_supported(f"{path}.type", kind, SOURCES)
        return
    wanted = SOURCES[kind]
    for field in given:
        if field != wanted:
            detail = "must populate the given metric source only"
            yield field_errors.forbidden(f"{path}.{field}", detail)
    if wanted not in given:
        detail = "must populate information for the given metric source"
        yield field_errors.required(f"{path}.{wanted}", detail)
        return
    yield from _source(kind, metric[wanted], f"{path}.{wanted}")


def _source(kind: str, source: Object, path: str) -> Iterator[FieldError]:
    target: Object = source.get("target") or {}
    if kind in ("Resource", "ContainerResource"):
        if not source.get("name"):
            yield field_errors.required(f"{path}.name", "must specify a resource name")
        if kind == "ContainerResource" and not source.get("container"):
            yield field_errors.required(f"{path}.container", "must specify a container")
        yield from _values(target, f"{path}.target")
        value, utilization = target.get("averageValue"), target.get("averageUtilization")
        if value is None and utilization is None:
            detail = "must set either a target raw value or a target utilization"
            yield field_errors.required(f"{path}.target.averageUtilization", detail)
        if value is not None and utilization is not None:
            detail = "may not set both a target raw value and a target utilization"
            yield field_errors.forbidden(f"{path}.target.averageValue", detail)
        return
    if kind == "Object":
        yield from _target(source.get("describedObject") or {}, f"{path}.describedObject")
    if not (source.get("metric") or {}).get("name"):
        yield field_errors.required(f"{path}.metric.name", "must specify a metric name")
    yield from _values(target, f"{path}.target")
    value, average = target.get("value"), target.get("averageValue")
    if kind == "Pods" and average is None:
        detail = "must specify a positive target averageValue"
        yield field_errors.required(f"{path}.target.averageValue", detail)
    elif kind != "Pods" and value is None and average is None:
        detail = "must set either a target value for metric or a per-pod target"
        yield field_errors.required(f"{path}.target.averageValue", detail)


def _values(target: Object, path: str) -> Iterator[FieldError]:
    kind, utilization = target.get("type") or "", target.get("averageUtilization")
    if not kind:
        yield field_errors.required(f"{path}.type", "must specify a metric target type")
    elif kind not in TARGETS:
        detail = "must be either Utilization, Value, or AverageValue"
        yield field_errors.invalid(f"{path}.type", kind, detail)
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and not is_unreadable(value) and parse(value) <= 0:
            yield field_errors.invalid(f"{path}.{field}", value, "must be positive")
    if utilization is not None and utilization < 1:
        detail = "must be greater than 0"
        yield field_errors.invalid(f"{path}.averageUtilization", utilization, detail)


def _rules(rules: Object, path: str) -> Iterator[FieldError]:
    window, select = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    if window is not None:
        yield from _between(f"{path}.stabilizationWindowSeconds", window, 0, LONGEST_WINDOW)
    if select is not None and select not in SELECT_POLICIES:
        yield field_errors.not_supported(f"{path}.selectPolicy", select, SELECT_POLICIES)
    policies: Sequence[Any] = rules.get("policies") or ()
    if not policies:
        yield field_errors.required(f"{path}.policies", "must specify at least one Policy")
    for number, policy in enumerate(policies):
        place = f"{path}.policies[{number}]"
        if policy.get("type") not in POLICIES:
            yield field_errors.not_supported(f"{place}.type", policy.get("type") or "", POLICIES)
        yield from _between(f"{place}.value", policy.get("value") or 0, 1)
        yield from _between(f"{place}.periodSeconds", policy.get("periodSeconds") or 0, 1,
                            LONGEST_PERIOD)  # fmt: skip
    tolerance = rules.get("tolerance")
    if tolerance is not None and not is_unreadable(tolerance) and parse(tolerance) < 0:
        detail = "must be greater or equal to zero"
        yield field_errors.invalid(f"{path}.tolerance", tolerance, detail)


def _between(path: str, number: int, least: int, most: int | None = None) -> Iterator[FieldError]:
    if number < least:
        detail = "must be greater than zero" if least else "must be greater than or equal to zero"
        yield field_errors.invalid(path, number, detail)
    elif most is not None and number > most:
        yield field_errors.invalid(path, number, f"must be less than or equal to {most}")
