"""The objects of the test cases: functions that make the n-th node, pod or volume."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from berth.tools.bench.workloads import HOSTNAME, ZONE, Spec, requests

Object = dict[str, Any]
Template = Callable[[int], Object]
"""Makes the object with an index, from 0. Nodes have names, pods get them later."""

PREFIX: Final = "berth-bench-"
"""Of namespaces, so that those of a cluster that is in use stay out of it."""
HIGH: Final = "berth-bench-high"
"""A PriorityClass; scheduler_perf sets the priority itself, which admission does not allow."""
NAMED_NODE: Final = "scheduler-perf-node"
NONE: Final[Mapping[str, str]] = {}
"""No labels, or no amounts."""


def node(
    name: str,
    *,
    labels: Mapping[str, str] = NONE,
    pods: int = 110,
    taint: str = "",
    amounts: Mapping[str, str] = NONE,
) -> Object:
    """Make a node of 4 CPUs and 32 GiB, or of *amounts*."""
    capacity = {"cpu": "4", "memory": "32Gi", "pods": str(pods), **amounts}
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, **labels}},
        "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def default_node(n: int) -> Object:
    return node(f"node-{n}")


def in_zones(*zones: str) -> Template:
    """Return a template of nodes that are in *zones* in turns."""
    return lambda n: node(f"node-{n}", labels={ZONE: zones[n % len(zones)]})


def named_node(_: int) -> Object:
    return node(NAMED_NODE, pods=90_000)


def pod(spec: Spec | None = None, *, labels: Mapping[str, str] = NONE, cpu: int = 100) -> Object:
    """Make a pod that asks for *cpu* milli-CPU and 500 MiB."""
    return {"metadata": {"labels": {**labels}}, "spec": requests(cpu, 500) | (spec or {})}


def pod_name(n: int) -> str:
    """Return the name that the n-th pod of a namespace gets."""
    return f"pod-{n:06}"


def light_pod(spec: Spec | None = None, *, labels: Mapping[str, str] = NONE) -> Object:
    """Make a pod that asks for nothing and ends at once."""
    spec = {"terminationGracePeriodSeconds": 0, "containers": [CONTAINER]} | (spec or {})
    return {"metadata": {"labels": {**labels}}, "spec": spec}


CONTAINER: Final = {"name": "main", "image": "registry.example.com/app:1"}


def default_pod(_: int) -> Object:
    return pod()


def low_priority_pod(_: int) -> Object:
    return pod({"terminationGracePeriodSeconds": 0}, cpu=900)


def high_priority_pod(_: int) -> Object:
    return pod({"priorityClassName": HIGH}, cpu=3_000)


def too_large_pod(_: int) -> Object:
    """Make a pod of high priority that no node has room for."""
    return pod({"priorityClassName": HIGH}, cpu=9_000)


def labelled_pod(_: int) -> Object:
    return light_pod(labels={"app": "scheduler-perf"})


def affinity(kind: str, color: str, key: str, *, weight: int = 0, **selected: Any) -> Spec:
    """Make a pod spec with one term for pods of *color*; required, unless it has a weight."""
    term = {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key, **selected}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    weighted = [{"weight": weight, "podAffinityTerm": term}]
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
    return {"affinity": {kind: preferred if weight else required}}


def node_affinity(by: str, key: str, *values: str) -> Spec:
    """Make a pod spec with one required term *by* ``matchExpressions`` or ``matchFields``."""
    terms = [{by: [{"key": key, "operator": "In", "values": [*values]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def spread(
    labels: Mapping[str, str],
    key: str = ZONE,
    *,
    skew: int = 1,
    when_unsatisfiable: str = "DoNotSchedule",
    **more: Any,
) -> Spec:
    """Make a pod spec with one topology spread constraint over pods with *labels*."""
    constraint = {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": {"matchLabels": {**labels}},
        **more,
    }
    return {"topologySpreadConstraints": [constraint]}


def tolerating(key: str) -> Spec:
    return {"tolerations": [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]}
