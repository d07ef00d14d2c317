"""Workloads with the names and shapes of scheduler_perf, the benchmark of kube-scheduler.

Facts of ``test/integration/scheduler_perf`` of Kubernetes 1.36: numbers of nodes and pods,
requests, labels, constraints, and thresholds: pods per second that Kubernetes asks of itself. A
workload has three phases: nodes; pods that are bound before anything is measured; and pods that
are measured. Here pods of the second phase are created with their nodes, those of the third exist
before the scheduler starts; and one namespace takes the place of many.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from berth.bench.api_server import NAMESPACE, NODE_LABEL
from berth.bench.workloads import HOSTNAME, ZONE, Spec, requests

Object = dict[str, Any]
INITIAL: Final = "berth-bench-initial"
"""The namespace of pods that are bound before, and of those that churn brings."""
HIGH: Final = "berth-bench-high"
"""A PriorityClass; scheduler_perf sets the priority itself, which admission does not allow."""
DEVOPS: Final = {"team": "devops"}
NAMED_NODE: Final = "scheduler-perf-node"


@dataclass(frozen=True, slots=True)
class Size:
    """One row of a workload's table."""

    nodes: int
    initial: int
    """Pods that are bound before; in mixed workloads, of each kind."""
    measured: int
    threshold: float | None = None
    """Pods per second; None where scheduler_perf has none."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is created."""

    sizes: Mapping[str, Size]
    pod: Callable[[], Object]
    """A pod that is measured."""
    initial: tuple[Callable[[], Object], ...] = ()
    """Kinds of pods that are bound before; none: the measured kind."""
    zones: tuple[str, ...] = ()
    churn: Callable[[], Object] | None = None
    """A pod that is created five times a second while others are measured."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    named_node: str = ""
    """A node of this name, which all measured pods fit on, besides the others."""

    def nodes(self, size: Size) -> Iterator[Object]:
        """Make nodes, in turns in the workload's zones if there are any."""
        names = [f"node-{n}" for n in range(size.nodes)]
        if self.named_node:
            yield _node(self.named_node, {}, pods=90_000)
        for n, name in enumerate(names):
            yield _node(name, {ZONE: self.zones[n % len(self.zones)]} if self.zones else {})

    def initial_pods(self, size: Size) -> Iterator[Object]:
        """Make pods that have nodes, evenly spread."""
        for kind, make in enumerate(self.initial or (self.pod,)):
            for n in range(size.initial):
                obj = make()
                obj["metadata"]["name"] = f"initial-{kind}-{n:06}"
                obj["spec"]["nodeName"] = f"node-{n % size.nodes}"
                yield obj

    def measured_pods(self, size: Size) -> Iterator[Object]:
        for n in range(size.measured):
            obj = self.pod()
            obj["metadata"]["name"] = f"pod-{n:06}"
            yield obj


def _node(name: str, labels: Mapping[str, str], *, pods: int = 110) -> Object:
    amounts = {"cpu": "4", "memory": "32Gi", "pods": str(pods)}
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, NODE_LABEL: "", **labels}},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(spec: Spec | None = None, *, color: str = "", cpu: int = 100) -> Object:
    """Make a pod without a name that asks for *cpu* milli-CPU and 500 MiB."""
    metadata: Object = {"labels": {"color": color}} if color else {}
    return {"metadata": metadata, "spec": requests(cpu, 500) | (spec or {})}


def _affinity(kind: str, color: str, key: str, *, weight: int = 0, **selected: Any) -> Object:
    """Make a pod with a term of pod (anti-)affinity for its own color; required without weight."""
    namespaces = {"namespaces": [NAMESPACE, INITIAL]}
    term = {
        "labelSelector": {"matchLabels": {"color": color}},
        "topologyKey": key,
        **(selected or namespaces),
    }
    terms: Object = (
        {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "podAffinityTerm": term}
            ]
        }
        if weight
        else {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    )
    return pod({"affinity": {kind: terms}}, color=color)


def _anti_affinity() -> Object:
    return _affinity("podAntiAffinity", "green", HOSTNAME)


def _pod_affinity() -> Object:
    return _affinity("podAffinity", "blue", ZONE)


def _preferred_affinity() -> Object:
    return _affinity("podAffinity", "red", HOSTNAME, weight=1)


def _preferred_anti_affinity() -> Object:
    return _affinity("podAntiAffinity", "yellow", HOSTNAME, weight=1)


def _anti_affinity_ns_selector() -> Object:
    return _affinity(
        "podAntiAffinity", "green", HOSTNAME, namespaceSelector={"matchLabels": DEVOPS}
    )


def _spreading(when_unsatisfiable: str) -> Callable[[], Object]:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }
    return lambda: pod({"topologySpreadConstraints": [constraint]}, color="blue")


def _node_affinity(by: str, expression: Object) -> Object:
    required = {"nodeSelectorTerms": [{by: [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"affinity": affinity}


def _in_two_zones() -> Object:
    zones = {"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}
    return pod(_node_affinity("matchExpressions", zones))


def _daemonset_pod() -> Object:
    named = {"key": "metadata.name", "operator": "In", "values": [NAMED_NODE]}
    return {"metadata": {}, "spec": requests(0, 0) | _node_affinity("matchFields", named)}


def _low_priority() -> Object:
    return pod({"terminationGracePeriodSeconds": 0}, cpu=900)


def _high_priority() -> Object:
    return pod({"priorityClassName": HIGH}, cpu=3_000)


def _too_large() -> Object:
    return pod({"priorityClassName": HIGH}, cpu=9_000)


MOONS: Final = ("moon-1", "moon-2", "moon-3")
ONE_ZONE: Final = ("zone1",)

WORKLOADS: Final[Mapping[str, Workload]] = {
    "SchedulingBasic": Workload(
        {
            "500Nodes": Size(500, 500, 1_000),
            "5000Nodes_10000Pods": Size(5_000, 1_000, 10_000, 680),
            "5000Nodes_50000Pods": Size(5_000, 5_000, 50_000, 810),
        },
        pod,
    ),
    "SchedulingPodAntiAffinity": Workload(
        {"500Nodes": Size(500, 100, 400), "5000Nodes_2000Pods": Size(5_000, 1_000, 2_000, 60)},
        _anti_affinity,
    ),
    "SchedulingPodAffinity": Workload(
        {"500Nodes": Size(500, 500, 1_000), "5000Nodes_5000Pods": Size(5_000, 5_000, 5_000, 35)},
        _pod_affinity,
        zones=ONE_ZONE,
    ),
    "SchedulingPreferredPodAffinity": Workload(
        {"500Nodes": Size(500, 500, 1_000), "5000Nodes_5000Pods": Size(5_000, 5_000, 5_000, 90)},
        _preferred_affinity,
    ),
    "SchedulingPreferredPodAntiAffinity": Workload(
        {"500Nodes": Size(500, 500, 1_000), "5000Nodes_5000Pods": Size(5_000, 5_000, 5_000, 90)},
        _preferred_anti_affinity,
    ),
    "SchedulingNodeAffinity": Workload(
        {"500Nodes": Size(500, 500, 1_000), "5000Nodes_10000Pods": Size(5_000, 5_000, 10_000, 220)},
        _in_two_zones,
        zones=ONE_ZONE,
    ),
    "SchedulingRequiredPodAntiAffinityWithNSSelector": Workload(
        {"500Nodes": Size(500, 40, 100), "5000Nodes_2000Pods": Size(6_000, 4_000, 2_000, 24)},
        _anti_affinity_ns_selector,
        namespace_labels=DEVOPS,
    ),
    "SchedulingDaemonset": Workload(
        {"15000Nodes": Size(15_000, 0, 30_000, 1_100)}, _daemonset_pod, named_node=NAMED_NODE
    ),
    "MixedSchedulingBasePod": Workload(
        {"500Nodes": Size(500, 200, 1_000), "5000Nodes_5000Pods": Size(5_000, 2_000, 5_000, 140)},
        pod,
        initial=(
            pod,
            _pod_affinity,
            _anti_affinity,
            _preferred_affinity,
            _preferred_anti_affinity,
        ),
        zones=ONE_ZONE,
    ),
    "TopologySpreading": Workload(
        {"500Nodes": Size(500, 1_000, 1_000), "5000Nodes_5000Pods": Size(5_000, 5_000, 5_000, 460)},
        _spreading("DoNotSchedule"),
        initial=(pod,),
        zones=MOONS,
    ),
    "PreferredTopologySpreading": Workload(
        {"500Nodes": Size(500, 1_000, 1_000), "5000Nodes_5000Pods": Size(5_000, 5_000, 5_000, 340)},
        _spreading("ScheduleAnyway"),
        initial=(pod,),
        zones=MOONS,
    ),
    "Unschedulable": Workload(
        {
            "500Nodes/10Init/1kPods": Size(500, 10, 1_000),
            "5kNodes/100Init/10kPods": Size(5_000, 100, 10_000, 590),
            "5kNodes/20kInit/10kPods": Size(5_000, 20_000, 10_000, 600),
        },
        pod,
        churn=_too_large,
    ),
    "PreemptionBasic": Workload(
        {"1000Nodes": Size(1_000, 4_000, 1_000), "5000Nodes": Size(5_000, 20_000, 5_000)},
        _high_priority,
        initial=(_low_priority,),
    ),
    "PreemptionAsync": Workload(
        {"500Nodes": Size(500, 2_000, 500), "5000Nodes": Size(5_000, 20_000, 5_000, 570)},
        pod,
        initial=(_low_priority,),
        churn=_high_priority,
    ),
}
