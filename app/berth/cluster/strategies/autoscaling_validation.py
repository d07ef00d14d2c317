"""The constraints of HorizontalPodAutoscalers: a part of :mod:`.constraint_table`.

Source: ``pkg/apis/autoscaling/validation``.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from berth.cluster.resources import Object
from berth.cluster.schemas.quantities import is_unreadable
from berth.cluster.strategies import quantities, syntax
from berth.cluster.strategies.constraints import (
    ITSELF,
    Owners,
    Plain,
    Table,
    Within,
    above,
    anything,
    at_least,
    between,
    known,
    named,
    one_of,
    required,
    said,
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
POSITIVE: Final = "must be greater than zero"
MOST: Final = "must be less than or equal to {}"


def _most(most: int | None, path: str, owners: Owners) -> Errors:
    least, count = owners[-1].get("minReplicas"), most or 0
    if not count:
        yield field_errors.required(path, "must be set and greater than 0")
    elif count < 0:
        yield field_errors.invalid(path, count, "must be greater than 0")
    if least is not None and count < least:
        yield field_errors.invalid(path, count, "must be greater than or equal to `minReplicas`")


def _api_version(version: str | None, path: str, owners: Owners) -> Errors:
    """Evaluate of which group the target is; of core there are only ReplicationControllers."""
    text = version or ""
    if text.count("/") > 1:
        yield field_errors.invalid(path, text, f"unexpected GroupVersion string: {text}")
    elif "/" not in text and (text, owners[-1].get("kind")) != ("v1", "ReplicationController"):
        yield field_errors.invalid(path, text, "apiVersion must specify API group")


def _metric(metric: Object, path: str) -> Errors:
    kind = metric.get("type") or ""
    given = [field for field in SOURCES.values() if metric.get(field) is not None]
    if not kind:
        yield field_errors.required(f"{path}.type", "must specify a metric source type")
    elif kind not in SOURCES:
        yield field_errors.not_supported(f"{path}.type", kind, SOURCES)
    else:
        wanted = SOURCES[kind]
        for field in given:
            if field != wanted:
                detail = "must populate the given metric source only"
                yield field_errors.forbidden(f"{path}.{field}", detail)
        if wanted not in given:
            detail = "must populate information for the given metric source"
            yield field_errors.required(f"{path}.{wanted}", detail)


def _resource_target(source: Object, path: str) -> Errors:
    """Evaluate what is wanted of a resource: an amount, or a share of what is asked for."""
    given, path = source.get("target") or {}, f"{path}.target"
    value, utilization = given.get("averageValue"), given.get("averageUtilization")
    if value is None and utilization is None:
        detail = "must set either a target raw value or a target utilization"
        yield field_errors.required(f"{path}.averageUtilization", detail)
    if value is not None and utilization is not None:
        detail = "may not set both a target raw value and a target utilization"
        yield field_errors.forbidden(f"{path}.averageValue", detail)


def _average(source: Object, path: str) -> Errors:
    if (source.get("target") or {}).get("averageValue") is None:
        detail = "must specify a positive target averageValue"
        yield field_errors.required(f"{path}.target.averageValue", detail)


def _value_or_average(source: Object, path: str) -> Errors:
    given = source.get("target") or {}
    if given.get("value") is None and given.get("averageValue") is None:
        detail = "must set either a target value for metric or a per-pod target"
        yield field_errors.required(f"{path}.target.averageValue", detail)


def _target_type(kind: str | None, path: str) -> Errors:
    if not kind:
        yield field_errors.required(path, "must specify a metric target type")
    elif kind not in ("Utilization", "Value", "AverageValue"):
        detail = "must be either Utilization, Value, or AverageValue"
        yield field_errors.invalid(path, kind, detail)


def _above(least: int, detail: str) -> Plain:
    """Refuse a quantity of fewer than *least* billionths."""

    def rule(value: str | int | float | None, path: str) -> Errors:
        if value is not None and not is_unreadable(value) and parse(value) < least:
            yield field_errors.invalid(path, value, detail)

    return rule


def _container_resource(name: str | None, path: str) -> Errors:
    if name:
        yield from quantities.container_name(name, path)
    else:
        yield field_errors.required(path, "must specify a resource name")


AUTOSCALING_TABLE: Final[Table] = {
    "autoscaling.v2.HorizontalPodAutoscalerSpec": {
        "minReplicas": (at_least(1),),
        "maxReplicas": (Within(_most),),
        "scaleTargetRef": (),
        "metrics": (),
        "behavior": (),
    },
    "autoscaling.v2.CrossVersionObjectReference": {
        "kind": (named(syntax.path_segment),),
        "name": (named(syntax.path_segment),),
        "apiVersion": (Within(_api_version),),
    },
    "autoscaling.v2.MetricSpec": {ITSELF: (_metric,), "type": (anything,)},
    "autoscaling.v2.ResourceMetricSource": {
        "name": (required("must specify a resource name"),),
        "target": (),
        ITSELF: (_resource_target,),
    },
    "autoscaling.v2.ContainerResourceMetricSource": {
        "name": (_container_resource,),
        "container": (required("must specify a container"), said(syntax.dns1123_label)),
        "target": (),
        ITSELF: (_resource_target,),
    },
    "autoscaling.v2.PodsMetricSource": {"metric": (), "target": (), ITSELF: (_average,)},
    "autoscaling.v2.ObjectMetricSource": {
        "describedObject": (),
        "metric": (),
        "target": (),
        ITSELF: (_value_or_average,),
    },
    "autoscaling.v2.ExternalMetricSource": {
        "metric": (),
        "target": (),
        ITSELF: (_value_or_average,),
    },
    "autoscaling.v2.MetricIdentifier": {"name": (required("must specify a metric name"),)},
    "autoscaling.v2.MetricTarget": {
        "type": (_target_type,),
        "value": (_above(1, "must be positive"),),
        "averageValue": (_above(1, "must be positive"),),
        "averageUtilization": (above(0),),
    },
    "autoscaling.v2.HorizontalPodAutoscalerBehavior": {"scaleUp": (), "scaleDown": ()},
    "autoscaling.v2.HPAScalingRules": {
        "stabilizationWindowSeconds": (
            between(0, 3600, "must be greater than or equal to zero", MOST.format(3600)),
        ),
        "selectPolicy": (one_of("Disabled", "Max", "Min"),),
        "policies": (required("must specify at least one Policy"),),
        "tolerance": (_above(0, "must be greater or equal to zero"),),
    },
    "autoscaling.v2.HPAScalingPolicy": {
        "type": (known("Percent", "Pods"),),
        "value": (lambda value, path: between(1, 2**31, POSITIVE)(value or 0, path),),
        "periodSeconds": (
            lambda value, path: between(1, 1800, POSITIVE, MOST.format(1800))(value or 0, path),
        ),
    },
}
