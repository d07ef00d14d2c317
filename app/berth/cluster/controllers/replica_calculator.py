"""Numbers of replicas that the use of resources calls for.

After ``pkg/controller/podautoscaler/replica_calculator.go`` of Kubernetes 1.36. Amounts are in
thousandths, as there.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from berth.cluster.object_views import View
from berth.cluster.pods.controllers import ScaledPod, ScaledPods
from berth.cluster.times import seconds_of
from berth.kube.objects.quantity import Quantity, milli_value, parse
from berth.runtime.duration import Duration

TOLERANCE: Final = 0.1
"""How far from its target usage may be before the number of replicas changes."""
CPU_INITIALIZATION_SECONDS: Final = 300.0
"""After its start, a pod's use of CPU counts only once it is ready for a whole window."""
INITIAL_READINESS_SECONDS: Final = 30.0
"""A pod that became unready so soon after its start has never been ready."""


class MetricError(Exception):
    """There is no number to go by; says why, in the words of the controller."""


class ContainerMetrics(View, frozen=True):
    name: str
    usage: dict[str, Quantity]


class MetricsMeta(View, frozen=True):
    name: str
    namespace: str = ""


class PodMetrics(View, frozen=True):
    """What a pod uses (``metrics.k8s.io``)."""

    metadata: MetricsMeta
    timestamp: str
    window: str
    containers: tuple[ContainerMetrics, ...] = ()


class PodMetricsList(View, frozen=True):
    items: tuple[PodMetrics, ...] = ()


class Sample(NamedTuple):
    """What one pod uses of one resource."""

    value: int
    timestamp: float = 0.0
    window: float = 0.0


class Tolerances(NamedTuple):
    """How far usage may be from its target, as a part of it."""

    up: float = TOLERANCE
    down: float = TOLERANCE

    def covers(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Proposal(NamedTuple):
    """A number of replicas, and what it was computed from."""

    replicas: int
    average_value: int
    utilization: int | None = None
    """Percent of the requests."""


class _Groups(NamedTuple):
    """Pods by what their metrics are good for."""

    ready: int
    unready: set[str]
    missing: set[str]
    ignored: set[str]


decode_pods = msgspec.json.Decoder(ScaledPods).decode
decode_metrics = msgspec.json.Decoder(PodMetricsList).decode


def samples_of(
    metrics: Iterable[PodMetrics], resource: str, container: str = ""
) -> dict[str, Sample]:
    """Return what pods use of *resource*, by name; of one *container* if it is given."""
    found: dict[str, Sample] = {}
    for metric in metrics:
        measured = [one for one in metric.containers if container in ("", one.name)]
        if container and not measured:
            place = f"{metric.metadata.namespace}/{metric.metadata.name}"
            raise MetricError(f"container {container} not present in metrics for pod {place}")
        if all(resource in one.usage for one in measured):
            used = sum(milli_value(parse(one.usage[resource])) for one in measured)
            found[metric.metadata.name] = Sample(
                used, _when(metric.timestamp), _window(metric.window)
            )
    if not found:
        raise MetricError("no metrics returned from resource metrics API")
    return found


@lru_cache(maxsize=16)  # pods are measured at the same time
def _when(timestamp: str) -> float:
    return seconds_of(timestamp)


@lru_cache(maxsize=16)
def _window(text: str) -> float:
    return Duration.parse(text).seconds


def for_utilization(
    current: int,
    target: int,
    *,
    resource: str,
    container: str,
    pods: Sequence[ScaledPod],
    samples: Mapping[str, Sample],
    tolerances: Tolerances,
    now: float,
) -> Proposal:
    """Return how many replicas bring usage to *target* percent of requests; MetricError if none."""
    known, groups = _usable(pods, samples, resource, now)
    requests = {pod.name: _request(pod, resource, container) for pod in pods}
    ratio, utilization, average = _utilization(known, requests, target)
    if _is_plain(groups, ratio):
        replicas = current if tolerances.covers(ratio) else math.ceil(ratio * groups.ready)
        return Proposal(replicas, average, utilization)
    fallback = {name: requests[name] * max(100, target) // 100 for name in groups.missing}
    values = _filled(known, groups, ratio, fallback)
    new_ratio, _, _ = _utilization(values, requests, target)
    replicas = _settled(current, ratio, new_ratio, len(values), tolerances)
    return Proposal(replicas, average, utilization)


def for_value(
    current: int,
    target: int,
    *,
    resource: str,
    pods: Sequence[ScaledPod],
    samples: Mapping[str, Sample],
    tolerances: Tolerances,
    now: float,
) -> Proposal:
    """Return how many replicas bring the average to *target*; MetricError if none."""
    known, groups = _usable(pods, samples, resource, now)
    average = _average(known)
    ratio = average / target
    if _is_plain(groups, ratio):
        replicas = current if tolerances.covers(ratio) else math.ceil(ratio * groups.ready)
        return Proposal(replicas, average)
    values = _filled(known, groups, ratio, dict.fromkeys(groups.missing, target))
    new_ratio = _average(values) / target
    return Proposal(_settled(current, ratio, new_ratio, len(values), tolerances), average)


def _usable(
    pods: Sequence[ScaledPod], samples: Mapping[str, Sample], resource: str, now: float
) -> tuple[dict[str, int], _Groups]:
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    groups = _grouped(pods, samples, resource, now)
    useless = groups.ignored | groups.unready
    known = {name: each.value for name, each in samples.items() if name not in useless}
    if not known:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    return known, groups


def _grouped(
    pods: Iterable[ScaledPod], samples: Mapping[str, Sample], resource: str, now: float
) -> _Groups:
    ready = 0
    unready: set[str] = set()
    missing: set[str] = set()
    ignored: set[str] = set()
    for pod in pods:
        sample = samples.get(pod.name)
        if pod.metadata.deletion_timestamp is not None or pod.status.phase == "Failed":
            ignored.add(pod.name)
        elif pod.status.phase == "Pending":
            unready.add(pod.name)
        elif sample is None:
            missing.add(pod.name)
        elif resource == "cpu" and _is_unready(pod, sample, now):
            unready.add(pod.name)
        else:
            ready += 1
    return _Groups(ready, unready, missing, ignored)


def _is_unready(pod: ScaledPod, sample: Sample, now: float) -> bool:
    """Tell whether what a pod uses of CPU is not typical: it starts, or never came up."""
    conditions = pod.status.conditions or ()
    condition = next((each for each in conditions if each.type == "Ready"), None)
    if condition is None or pod.status.start_time is None:
        return True
    started = seconds_of(pod.status.start_time)
    changed = seconds_of(condition.last_transition_time) if condition.last_transition_time else 0.0
    is_false = condition.status == "False"
    if started + CPU_INITIALIZATION_SECONDS > now:
        return is_false or sample.timestamp < changed + sample.window
    return is_false and started + INITIAL_READINESS_SECONDS > changed


def _request(pod: ScaledPod, resource: str, container: str) -> int:
    of_pod = (pod.spec.resources.requests or {}) if pod.spec.resources else {}
    if not container and resource in of_pod:
        return milli_value(parse(of_pod[resource]))
    sidecars = [
        init_container
        for init_container in pod.spec.init_containers or ()
        if init_container.restart_policy == "Always"
    ]
    request = 0
    for each in (*pod.spec.containers, *sidecars):
        if container not in ("", each.name):
            continue
        requests = each.resources.requests or {}
        if resource not in requests:
            raise MetricError(
                f"missing request for {resource} in container {each.name} of Pod {pod.name}"
            )
        request += milli_value(parse(requests[resource]))
    return request


def _utilization(
    values: Mapping[str, int], requests: Mapping[str, int], target: int
) -> tuple[float, int, int]:
    """Return the ratio of utilization to *target*, the utilization, and the average value."""
    known = {name: each for name, each in values.items() if name in requests}
    requested = sum(requests[name] for name in known)
    if not requested:
        raise MetricError("no metrics returned matched known pods")
    used = sum(known.values())
    utilization = used * 100 // requested
    return utilization / target, utilization, used // len(known)


def _average(values: Mapping[str, int]) -> int:
    return sum(values.values()) // len(values)


def _is_plain(groups: _Groups, ratio: float) -> bool:
    """Whether every pod that matters was measured."""
    return not groups.missing and not (groups.unready and ratio > 1.0)


def _filled(
    known: Mapping[str, int], groups: _Groups, ratio: float, fallback: Mapping[str, int]
) -> dict[str, int]:
    """Return values with those that nobody measured assumed against the direction of scaling."""
    values = dict(known)
    if ratio < 1.0:
        values |= fallback
    elif ratio > 1.0:
        values |= dict.fromkeys(groups.missing | groups.unready, 0)
    return values


def _settled(
    current: int, ratio: float, new_ratio: float, count: int, tolerances: Tolerances
) -> int:
    """Return the number of replicas, unless assumptions have changed the direction of scaling."""
    turns = (ratio < 1.0 < new_ratio) or (ratio > 1.0 > new_ratio)
    if tolerances.covers(new_ratio) or turns:
        return current
    replicas = math.ceil(new_ratio * count)
    if (new_ratio < 1.0 and replicas > current) or (new_ratio > 1.0 and replicas < current):
        return current
    return replicas
