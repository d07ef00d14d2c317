"""Replicas that each metric of a HorizontalPodAutoscaler calls for.

Resource metrics are those of ``metrics.k8s.io``. There is no adapter for custom and external
metrics; of those it is said what is missing, as in a cluster without one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from berth.cluster.controllers import replica_calculator
from berth.cluster.controllers.replica_calculator import (
    MetricError,
    PodMetrics,
    Tolerances,
)
from berth.cluster.pods.controllers import ScaledPod
from berth.cluster.resources import Object
from berth.kube.objects.amounts import Amount
from berth.kube.objects.quantity import NANO, milli_value, parse

NO_RESOURCE_METRICS: Final = "unable to fetch metrics from resource metrics API"
NO_CUSTOM_METRICS: Final = (
    "unable to fetch metrics from custom metrics API: "
    "no custom metrics API (custom.metrics.k8s.io) registered"
)
NO_EXTERNAL_METRICS: Final = (
    "unable to fetch metrics from external metrics API: "
    "no external metrics API (external.metrics.k8s.io) registered"
)
NO_STATUS: Final[Object] = {"type": ""}
"""Of a metric that could not be evaluated."""
MEASURED: Final = ("Resource", "ContainerResource")
"""Types of metrics that there are."""


@dataclass(slots=True)
class Answers:
    """What was asked about a target, and answered, until it is used."""

    replicas: int | None = None
    """None: the scale was not asked for."""
    selector: str = ""
    scale_error: str = ""
    pods: Sequence[ScaledPod] | None = None
    pods_error: str = ""
    metrics: Sequence[PodMetrics] | None = None
    metrics_error: str = ""


class Failure(NamedTuple):
    """Why a metric calls for no number of replicas."""

    reason: str
    message: str
    kind: str
    """How the metric is called in the summary of all that failed; empty: not at all."""

    @property
    def summary(self) -> str:
        return f"failed to get {self.kind}: {self.message}" if self.kind else self.message


class Metric(NamedTuple):
    """What a metric calls for."""

    replicas: int
    name: str
    status: Object


def evaluate(
    metric: Object,
    namespace: str,
    answers: Answers,
    tolerances: Tolerances,
    *,
    now: float,
) -> Metric | Failure:
    """Return what a metric of an autoscaler in *namespace* calls for at *now*, in unix seconds."""
    source = metric.get("type") or ""
    about: Object = metric.get(source[:1].lower() + source[1:]) or {}
    reason = f"FailedGet{source}Metric"
    if source in MEASURED:
        word = "container resource" if source == "ContainerResource" else "resource"
        try:
            return _resource_metric(source, about, answers, tolerances, now)
        except MetricError as exc:
            return Failure(reason, str(exc), f"{about.get('name')} {word} metric value")
    name = (about.get("metric") or {}).get("name")
    match source:
        case "External":
            message = f"unable to get external metric {namespace}/{name}/nil: {NO_EXTERNAL_METRICS}"
            return Failure(reason, message, f"{name} external metric value")
        case "Pods":
            message = f"unable to get metric {name}: {NO_CUSTOM_METRICS}"
            return Failure(reason, message, "pods metric value")
        case "Object":
            described = about.get("describedObject") or {}
            # In this order Kubernetes says it, too.
            place = f"{described.get('kind')} on {namespace} {described.get('name')}"
            message = f"unable to get metric {name}: {place}/{NO_CUSTOM_METRICS}"
            return Failure(reason, message, "object metric value")
    message = f'unknown metric source type "{source}"'
    return Failure("InvalidMetricSourceType", message, "")


def _resource_metric(
    source: str, about: Object, answers: Answers, tolerances: Tolerances, now: float
) -> Metric:
    """Return what the use of a resource calls for; MetricError when it calls for nothing."""
    resource, container = about.get("name") or "", about.get("container") or ""
    target: Mapping[str, Any] = about.get("target") or {}
    current = answers.replicas or 0
    value, utilization = target.get("averageValue"), target.get("averageUtilization")
    what = "utilization" if value is None else "usage"
    if value is None and utilization is None:
        raise MetricError(
            "invalid resource metric source: neither an average utilization target "
            "nor an average value (usage) target was set"
        )
    try:
        if answers.metrics_error:
            raise MetricError(f"{NO_RESOURCE_METRICS}: {answers.metrics_error}")
        samples = replica_calculator.samples_of(answers.metrics or (), resource, container)
    except MetricError as exc:
        unable = f"unable to get metrics for resource {resource}: {exc}"
        raise MetricError(f"failed to get {resource} {what}: {unable}") from exc
    pods = answers.pods or ()
    try:
        if answers.pods_error:
            raise MetricError(
                f"unable to get pods while calculating replica count: {answers.pods_error}"
            )
        if utilization is None:
            proposal = replica_calculator.for_value(
                current,
                milli_value(parse(value or 0)),
                resource=resource,
                pods=pods,
                samples=samples,
                tolerances=tolerances,
                now=now,
            )
        else:
            proposal = replica_calculator.for_utilization(
                current,
                int(utilization),
                resource=resource,
                container=container,
                pods=pods,
                samples=samples,
                tolerances=tolerances,
                now=now,
            )
    except MetricError as exc:
        raise MetricError(f"failed to get {resource} {what}: {exc}") from exc
    measured: Object = {"averageValue": str(Amount(proposal.average_value * (NANO // 1000)))}
    name = f"{resource} resource"
    if proposal.utilization is not None:
        measured["averageUtilization"] = proposal.utilization
        name = f"{resource} resource utilization (percentage of request)"
    status: Object = {"name": resource, "current": measured}
    if source == "ContainerResource":
        status["container"] = container
    field_name = source[:1].lower() + source[1:]
    return Metric(proposal.replicas, name, {"type": source, field_name: status})
