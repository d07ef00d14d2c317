"""HorizontalPodAutoscalers: v2 is stored, v1 knows only the utilization of CPU.

Both APIs are views of one object. What v1 has no field for is in an annotation there.
"""

from typing import Any

import msgspec

from berth.cluster.resources import Object
from berth.cluster.schemas import builtin, checks
from berth.cluster.schemas.presence import complete
from berth.cluster.strategies.constraint_table import CONSTRAINTS
from berth.cluster.strategies.defaults import fill_defaults
from berth.kube.documents import DEPTH_LIMIT, depth_of
from berth.kube.field_errors import FieldError

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
STATUS_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"

V2 = builtin.schema("io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler")


def default_v1(obj: Object) -> None:
    v2 = to_v2(obj)
    fill_defaults(V2, v2)
    obj.clear()
    obj.update(from_v2(v2))


def check_v1(obj: Object) -> list[FieldError]:
    return CONSTRAINTS.violations(V2, {**to_v2(obj), "status": None})


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
