"""Test cases of ``affinity``."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from berth.tools.bench.scheduler_perf.operations import (
    Barrier,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    Operation,
    measured_pods,
)
from berth.tools.bench.scheduler_perf.templates import (
    PREFIX,
    Object,
    Template,
    affinity,
    default_node,
    default_pod,
    in_zones,
    labelled_pod,
    light_pod,
    named_node,
    node_affinity,
    pod,
)
from berth.tools.bench.scheduler_perf.test_case import PerfCase, Workload
from berth.tools.bench.workloads import HOSTNAME, ZONE

SCHED: Final = ("sched-0", "sched-1")
"""The namespaces of pods that are bound before, and of those that are measured."""
DEVOPS: Final[Mapping[str, str]] = {"team": "devops"}
ONE_ZONE: Final = in_zones("zone1")

Operations = Callable[..., Iterator[Operation]]


def _colored(kind: str, color: str, key: str, **more: Any) -> Template:
    """Return a template of pods of *color* that have a term for such pods."""
    return lambda _: pod(affinity(kind, color, key, **more), labels={"color": color})


def _in_sched(kind: str, color: str, key: str, **more: Any) -> Template:
    return _colored(kind, color, key, namespaces=[PREFIX + name for name in SCHED], **more)


def _of_devops(kind: str, color: str, key: str, **more: Any) -> Template:
    return _colored(kind, color, key, namespaceSelector={"matchLabels": DEVOPS}, **more)


ANTI_AFFINITY: Final = _in_sched("podAntiAffinity", "green", HOSTNAME)
AFFINITY: Final = _in_sched("podAffinity", "blue", ZONE)
PREFERRED_AFFINITY: Final = _in_sched("podAffinity", "red", HOSTNAME, weight=1)
PREFERRED_ANTI_AFFINITY: Final = _in_sched("podAntiAffinity", "yellow", HOSTNAME, weight=1)


def _plain_green_pod(_: int) -> Object:
    return pod(labels={"color": "green"})


def _in_two_zones(_: int) -> Object:
    return pod(node_affinity("matchExpressions", ZONE, "zone1", "zone2"))


def _two_namespaces(
    initial: Template, measured: Template | None = None, nodes: Template = default_node
) -> Operations:
    """Return operations of pods in a namespace after those in another, of the same kind unless
    *measured* is given.
    """

    def operations(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
        yield CreateNodes(init_nodes, nodes)
        yield CreatePods(init_pods, initial, SCHED[:1])
        yield measured_pods(measure_pods, measured or initial, namespace=SCHED[1])

    return operations


def _node_affinity(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
    yield CreateNodes(init_nodes, ONE_ZONE)
    yield CreatePods(init_pods, _in_two_zones)
    yield measured_pods(measure_pods, _in_two_zones)


def _mixed(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
    yield CreateNodes(init_nodes, ONE_ZONE)
    for template in (
        default_pod,
        AFFINITY,
        ANTI_AFFINITY,
        PREFERRED_AFFINITY,
        PREFERRED_ANTI_AFFINITY,
    ):
        yield CreatePods(init_pods, template, SCHED[:1])
    yield measured_pods(measure_pods)


def _many_namespaces(template: Template, nodes: Template = default_node) -> Operations:
    """Return operations of pods in many namespaces that are selected by their labels."""

    def operations(
        init_nodes: int, init_pods_per_namespace: int, init_namespaces: int, measure_pods: int
    ) -> Iterator[Operation]:
        initial = [f"init-ns-{n}" for n in range(init_namespaces)]
        yield CreateNodes(init_nodes, nodes)
        yield CreateNamespaces([*initial, "measure-ns-0"], DEVOPS)
        yield CreatePods(init_pods_per_namespace, template, initial)
        yield measured_pods(measure_pods, template, namespace="measure-ns-0")

    return operations


def _gated(gated_pods: int, measure_pods: int) -> Iterator[Operation]:
    """Measure pods that gated pods with affinity ask for."""
    yield CreateNodes(1, named_node)
    yield CreatePods(gated_pods, _gated_pod, skip_wait=True)
    yield Barrier(is_attempted=True)
    yield measured_pods(measure_pods, labelled_pod)


def _gated_pod(_: int) -> Object:
    term = {"labelSelector": {"matchLabels": {"app": "scheduler-perf"}}, "topologyKey": HOSTNAME}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    gates = [{"name": "scheduling-gate-1"}]
    spec = {"schedulingGates": gates, "affinity": {"podAffinity": required}}
    return light_pod(spec, labels={"app": "scheduler-perf"})


CASES: Final[Mapping[str, PerfCase]] = {
    "SchedulingPodAntiAffinity": PerfCase(
        _two_namespaces(ANTI_AFFINITY),
        {
            "5Nodes": Workload((5, 1, 4)),
            "500Nodes": Workload((500, 100, 400)),
            "5000Nodes": Workload((5_000, 1_000, 1_000)),
            "5000Nodes_2000Pods": Workload((5_000, 1_000, 2_000), 60),
        },
    ),
    "SchedulingPodMatchingAntiAffinity": PerfCase(
        _two_namespaces(ANTI_AFFINITY, _plain_green_pod),
        {
            "5Nodes": Workload((5, 1, 4)),
            "500Nodes": Workload((500, 100, 400)),
            "5000Nodes_5000Pods": Workload((5_000, 1_000, 5_000), 595),
        },
    ),
    "SchedulingPodAffinity": PerfCase(
        _two_namespaces(AFFINITY, nodes=ONE_ZONE),
        {
            "5Nodes": Workload((5, 5, 10)),
            "500Nodes": Workload((500, 500, 1_000)),
            "5000Nodes": Workload((5_000, 5_000, 1_000)),
            "5000Nodes_5000Pods": Workload((5_000, 5_000, 5_000), 35),
        },
    ),
    "SchedulingPreferredPodAffinity": PerfCase(
        _two_namespaces(PREFERRED_AFFINITY),
        {
            "5Nodes": Workload((5, 5, 10)),
            "500Nodes": Workload((500, 500, 1_000)),
            "5000Nodes": Workload((5_000, 5_000, 1_000)),
            "5000Nodes_5000Pods": Workload((5_000, 5_000, 5_000), 90),
        },
    ),
    "SchedulingPreferredPodAntiAffinity": PerfCase(
        _two_namespaces(PREFERRED_ANTI_AFFINITY),
        {
            "5Nodes": Workload((5, 5, 10)),
            "500Nodes": Workload((500, 500, 1_000)),
            "5000Nodes": Workload((5_000, 5_000, 1_000)),
            "5000Nodes_5000Pods": Workload((5_000, 5_000, 5_000), 90),
        },
    ),
    "SchedulingNodeAffinity": PerfCase(
        _node_affinity,
        {
            "5Nodes": Workload((5, 5, 10)),
            "500Nodes": Workload((500, 500, 1_000)),
            "5000Nodes": Workload((5_000, 5_000, 1_000)),
            "5000Nodes_10000Pods": Workload((5_000, 5_000, 10_000), 220),
        },
    ),
    "MixedSchedulingBasePod": PerfCase(
        _mixed,
        {
            "5Nodes": Workload((5, 2, 10)),
            "500Nodes": Workload((500, 200, 1_000)),
            "5000Nodes": Workload((5_000, 2_000, 1_000)),
            "5000Nodes_5000Pods": Workload((5_000, 2_000, 5_000), 140),
        },
    ),
    "SchedulingRequiredPodAntiAffinityWithNSSelector": PerfCase(
        _many_namespaces(_of_devops("podAntiAffinity", "green", HOSTNAME)),
        {
            "10Nodes": Workload((10, 2, 2, 6)),
            "500Nodes": Workload((500, 4, 10, 100)),
            "5000Nodes": Workload((5_000, 40, 100, 1_000)),
            "5000Nodes_2000Pods": Workload((6_000, 40, 100, 2_000), 24),
        },
    ),
    "SchedulingPreferredAntiAffinityWithNSSelector": PerfCase(
        _many_namespaces(_of_devops("podAntiAffinity", "green", HOSTNAME, weight=1)),
        {
            "10Nodes": Workload((10, 2, 2, 10)),
            "500Nodes": Workload((500, 4, 10, 100)),
            "5000Nodes": Workload((5_000, 40, 100, 1_000)),
            "5000Nodes_2000Pods": Workload((5_000, 40, 100, 2_000), 55),
        },
    ),
    "SchedulingRequiredPodAffinityWithNSSelector": PerfCase(
        _many_namespaces(_of_devops("podAffinity", "blue", ZONE), ONE_ZONE),
        {
            "10Nodes": Workload((10, 2, 2, 10)),
            "500Nodes": Workload((500, 4, 10, 100)),
            "5000Nodes": Workload((5_000, 50, 100, 1_000)),
            "5000Nodes_2000Pods": Workload((5_000, 50, 100, 2_000), 35),
        },
    ),
    "SchedulingPreferredAffinityWithNSSelector": PerfCase(
        _many_namespaces(_of_devops("podAffinity", "red", HOSTNAME, weight=1)),
        {
            "10Nodes": Workload((10, 2, 2, 10)),
            "500Nodes": Workload((500, 4, 10, 100)),
            "5000Nodes": Workload((5_000, 50, 100, 1_000)),
            "5000Nodes_5000Pods": Workload((5_000, 50, 100, 5_000), 90),
        },
    ),
    "SchedulingGatedPodsWithPodAffinityImpactForThroughput": PerfCase(
        _gated,
        {
            "1Node_10GatedPods": Workload((10, 10)),
            "1Node_10000GatedPods": Workload((10_000, 20_000), 110),
        },
    ),
}
