"""HorizontalPodAutoscalers: v2 is stored, v1 knows only the utilization of CPU.

Both APIs are views of one object. What v1 has no field for is in an annotation there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from berth.cluster.resources import Object
from berth.cluster.schemas import builtin, checks
from berth.cluster.schemas.presence import complete
from berth.cluster.strategies.shape import section
from berth.kube.documents import DEPTH_LIMIT, depth_of

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
STATUS_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"

V2 = builtin.schema("io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler")

CPU_UTILIZATION = 80
"""Percent, where nothing is said."""

DEFAULT_POLICIES: Mapping[str, Sequence[Object]] = {
    "scaleUp": (
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ),
    "scaleDown": ({"type": "Percent", "value": 100, "periodSeconds": 15},),
}
"""Where there is a behavior that says nothing of it."""


def default(obj: Object) -> None:
    spec = section(obj, "spec")
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [_cpu(CPU_UTILIZATION)]
    if (behavior := spec.get("behavior")) is not None:
        for direction, policies in DEFAULT_POLICIES.items():
            rules = behavior.setdefault(direction, {})
            rules.setdefault("selectPolicy", "Max")
            if not rules.get("policies"):
                rules["policies"] = [dict(policy) for policy in policies]
        behavior["scaleUp"].setdefault("stabilizationWindowSeconds", 0)


def default_v1(obj: Object) -> None:
    section(obj, "spec").setdefault("minReplicas", 1)
    v2 = to_v2(obj)
    default(v2)
    obj.clear()
    obj.update(from_v2(v2))


def to_v2(obj: Object) -> Object:
    """Return an autoscaling/v1 object as autoscaling/v2."""
    found = {**obj, "metadata": dict(obj["metadata"])}
    notes = dict(found["metadata"].get("annotations") or {})
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics = _taken(notes, METRICS, "spec", "metrics") or []
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        metrics = [_cpu(target), *metrics]
    if metrics:
        spec["metrics"] = metrics
    if behavior := _taken(notes, BEHAVIOR, "spec", "behavior"):
        spec["behavior"] = behavior
    current = _taken(notes, STATUS_METRICS, "status", "currentMetrics") or []
    utilization = status.pop("currentCPUUtilizationPercentage", None)
    if utilization is not None:
        measured = {"name": "cpu", "current": {"averageUtilization": utilization}}
        current = [{"type": "Resource", "resource": measured}, *current]
    if current:
        status["currentMetrics"] = current
    if conditions := _taken(notes, CONDITIONS, "status", "conditions"):
        status["conditions"] = conditions
    return _with(found, notes, spec, status, "autoscaling/v2")


def from_v2(obj: Object) -> Object:
    """Return an autoscaling/v2 object as autoscaling/v1."""
    found = {**obj, "metadata": dict(obj["metadata"])}
    notes = dict(found["metadata"].get("annotations") or {})
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics = list(spec.pop("metrics", None) or ())
    targets = [_utilization(metric, "target") for metric in metrics]
    first = next((i for i, each in enumerate(targets) if each is not None), None)
    if first is not None:
        spec["targetCPUUtilizationPercentage"] = targets[first]
        del metrics[first]
    _put(notes, METRICS, metrics)
    _put(notes, BEHAVIOR, spec.pop("behavior", None))
    current = list(status.pop("currentMetrics", None) or ())
    measured = [_utilization(each, "current") for each in current]
    first = next((i for i, each in enumerate(measured) if each is not None), None)
    if first is not None:
        status["currentCPUUtilizationPercentage"] = measured[first]
        del current[first]
    _put(notes, STATUS_METRICS, current)
    _put(notes, CONDITIONS, status.pop("conditions", None))
    return _with(found, notes, spec, status, "autoscaling/v1")


def _cpu(percent: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _utilization(metric: Object, key: str) -> int | None:
    """Return the percentage of CPU that a metric is about; None: it is about something else."""
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    value: int | None = (resource.get(key) or {}).get("averageUtilization")
    return value


def _taken(notes: Object, key: str, part: str, field: str) -> Any:
    """Take an annotation and return what it says of a field of v2; None: it cannot be read."""
    text = notes.pop(key, None)
    if text is None:
        return None
    try:
        said = {part: {field: msgspec.json.decode(text)}}
    except (msgspec.DecodeError, RecursionError):
        return None
    if depth_of(said) > DEPTH_LIMIT or checks.misfit(V2, said) is not None:
        return None
    complete(V2, said)
    return said[part].get(field)


def _put(notes: Object, key: str, value: Any) -> None:
    if value:
        notes[key] = msgspec.json.encode(value).decode()


def _with(obj: Object, notes: Object, spec: Object, status: Object, api_version: str) -> Object:
    obj["metadata"].pop("annotations", None)
    if notes:
        obj["metadata"]["annotations"] = notes
    obj["spec"] = spec
    if "status" in obj:
        obj["status"] = status
    if "apiVersion" in obj:
        obj["apiVersion"] = api_version
    return obj
