"""Defaults of pods, as JSON: for the embedded cluster and for what-if.

Two sets: of any pod spec, templates too (``default_template``), and of pods alone (``default_pod``:
requests from limits, host ports, service links), so that a template stays as its author wrote it.
Pods are changed in place; the fields that :class:`berth.kube.objects.pod.Pod` reads must have its
types.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import canonical, is_binary, parse
from berth.kube.objects.resources import pod_limits, pod_requests
from berth.kube.objects.volume_defaults import default_reference, default_volume, fill

Object: TypeAlias = dict[str, Any]

PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
PROBE: Final = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
CONTAINERS: Final = ("initContainers", "containers")
HUGEPAGES: Final = "hugepages-"
HTTP_GET: Final = {"path": "/", "scheme": "HTTP"}

SYSTEM_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""Values of the PriorityClasses that every cluster has."""


def default_template(spec: Object) -> None:
    """Fill in a pod spec that may be part of a template. *spec* is valid in all its fields."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in (*_containers(spec), *(spec.get("ephemeralContainers") or ())):
        container.setdefault("resources", {})
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        if not container.get("imagePullPolicy"):
            container["imagePullPolicy"] = pull_policy(container.get("image") or "")
        for port in container.get("ports") or []:
            port.setdefault("protocol", "TCP")
        for variable in container.get("env") or []:
            _default_variable(variable.get("valueFrom") or {})
        for probe in PROBES:
            if container.get(probe):
                _default_probe(container[probe])
        for hook in (container.get("lifecycle") or {}).values():
            if isinstance(hook, dict) and hook.get("httpGet"):
                fill(hook["httpGet"], HTTP_GET)
    for volume in spec.get("volumes") or []:
        default_volume(volume)
        if volume.get("image"):
            fill(volume["image"], {"pullPolicy": pull_policy(volume["image"].get("reference", ""))})


def default_pod(spec: Object) -> None:
    """Fill in what only pods get, after :func:`default_template`."""
    spec.setdefault("enableServiceLinks", True)
    for container in _containers(spec):
        _default_requests(container)
        if spec.get("hostNetwork"):
            for port in container.get("ports") or []:
                if not port.get("hostPort") and "containerPort" in port:
                    port["hostPort"] = port["containerPort"]
    if spec.get("resources"):
        _default_pod_level(spec)


def _default_pod_level(spec: Object) -> None:
    """Complete the resources of the pod as a whole by what its containers come to.

    Requests for cpu and memory are those of the containers, else the limit; huge pages are limited
    to what the containers may use.
    """
    resources = spec["resources"] or {}
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    if not limits and not requests:
        return
    written = {field: spec.get(field) or [] for field in CONTAINERS}
    try:
        containers = msgspec.convert({"spec": written}, Pod)
    except msgspec.ValidationError:  # a malformed quantity, which validation refuses
        return
    allowed = pod_limits(containers)
    asked = pod_requests(containers, use_status=False, pod_level=False)
    for name, nanos in allowed.items():
        if name.startswith(HUGEPAGES) and name not in requests and name not in limits:
            limits[name] = _written(nanos, name, spec, "limits")
    if not limits:
        return
    for name, nanos in asked.items():
        if name in ("cpu", "memory") and name not in requests:
            requests[name] = _written(nanos, name, spec, "requests")
    for name, limit in limits.items():
        if name in ("cpu", "memory") or name.startswith(HUGEPAGES):
            requests.setdefault(name, limit)
    spec["resources"] = {**resources, "limits": limits, "requests": requests}


def _written(nanos: int, name: str, spec: Object, field: str) -> str:
    """Write a sum over the containers as the first of them is written."""
    lists = ((container.get("resources") or {}).get(field) or {} for container in _containers(spec))
    first = next(list_[name] for list_ in lists if name in list_)
    return canonical(nanos, binary=is_binary(first))


def _default_variable(source: Object) -> None:
    default_reference(source)
    if source.get("fileKeyRef"):
        source["fileKeyRef"].setdefault("optional", False)


def _default_probe(probe: Object) -> None:
    fill(probe, PROBE)
    if probe.get("httpGet"):
        fill(probe["httpGet"], HTTP_GET)
    if probe.get("grpc"):
        probe["grpc"].setdefault("service", "")


def pull_policy(image: str) -> str:
    """Return ``Always`` for an image that may move: one without a tag, or ``latest``.

    What is no name of an image has no tag either.
    """
    _, at, _digest = image.partition("@")
    if at or not image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def qos_class(spec: Object) -> str:
    """Return ``Guaranteed``, ``Burstable`` or ``BestEffort`` by cpu and memory; zero is not set.

    *spec* is valid: its quantities can be read.
    """
    holders = [spec] if spec.get("resources") else _containers(spec)
    guaranteed, anything = True, False
    for holder in holders:
        resources = holder.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            request, limit = parse(requests.get(name, 0)), parse(limits.get(name, 0))
            anything = anything or request != 0 or limit != 0
            guaranteed = guaranteed and limit != 0 and request in (0, limit)
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def merge_match_label_keys(obj: Object) -> None:
    """Turn matchLabelKeys and mismatchLabelKeys into expressions of the selector (spec §12.6).

    Of pods, at creation. Keys that the pod does not carry are ignored, and so is a term without a
    selector. Raises ValueError, naming the field, for keys that are no list of strings.
    """
    labels = (obj.get("metadata") or {}).get("labels") or {}
    spec = obj.get("spec") or {}
    for term in _affinity_terms(spec):
        _merge(term, "matchLabelKeys", operator="In", labels=labels)
        _merge(term, "mismatchLabelKeys", operator="NotIn", labels=labels)
    for constraint in spec.get("topologySpreadConstraints") or []:
        _merge(constraint, "matchLabelKeys", operator="In", labels=labels)


def _containers(spec: Object) -> Iterator[Object]:
    for field in CONTAINERS:
        yield from spec.get(field) or []


def _default_requests(holder: Object) -> None:
    """Ask for what is the limit where nothing is asked for."""
    resources = holder.get("resources") or {}
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests") or {}
        missing = {name: limit for name, limit in limits.items() if name not in requests}
        resources["requests"] = {**requests, **missing}


def _affinity_terms(spec: Object) -> Iterator[Object]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or []:
            yield weighted.get("podAffinityTerm") or {}


def _merge(term: Object, field: str, *, operator: str, labels: Object) -> None:
    keys = term.get(field) or []
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ValueError(f"{field}: a list of label keys is needed, got {keys!r:.40}")
    selector = term.get("labelSelector")
    if selector is None:
        return
    expressions = [
        {"key": key, "operator": operator, "values": [labels[key]]} for key in keys if key in labels
    ]
    if expressions:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or []), *expressions]
