"""Test cases of ``topology_spreading``."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from berth.tools.bench.scheduler_perf.operations import (
    CreateAny,
    CreateNodes,
    CreatePods,
    Operation,
    measured_pods,
)
from berth.tools.bench.scheduler_perf.run import SERVICES
from berth.tools.bench.scheduler_perf.templates import (
    Object,
    in_zones,
    labelled_pod,
    node,
    pod,
    spread,
)
from berth.tools.bench.scheduler_perf.test_case import PerfCase, Workload
from berth.tools.bench.workloads import HOSTNAME

MOONS: Final = in_zones("moon-1", "moon-2", "moon-3")
BLUE: Final = {"color": "blue"}


def _spreading(when_unsatisfiable: str) -> Callable[..., Iterator[Operation]]:
    def template(_: int) -> Object:
        return pod(spread(BLUE, skew=5, when_unsatisfiable=when_unsatisfiable), labels=BLUE)

    def operations(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
        yield CreateNodes(init_nodes, MOONS)
        yield CreatePods(init_pods)
        yield measured_pods(measure_pods, template)

    return operations


def _by_default(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
    """Measure pods of a service, which the default constraints spread."""
    yield CreateNodes(init_nodes, MOONS)
    yield CreateAny(SERVICES, _service, namespace="service-ns")
    yield CreatePods(init_pods)
    yield measured_pods(measure_pods, labelled_pod, namespace="service-ns")


def _service(_: int) -> Object:
    ports = [{"protocol": "TCP", "port": 80, "targetPort": 8000}]
    spec = {"selector": {"app": "scheduler-perf"}, "ports": ports}
    return {"metadata": {"name": "service"}, "spec": spec}


def _node_inclusion_policy(
    taint_nodes: int, normal_nodes: int, measure_pods: int
) -> Iterator[Operation]:
    yield CreateNodes(normal_nodes)
    yield CreateNodes(taint_nodes, _tainted_node)
    yield measured_pods(measure_pods, _honoring_pod)


def _tainted_node(n: int) -> Object:
    return node(f"taint-node-{n}", taint="foo")


def _honoring_pod(_: int) -> Object:
    labels = {"foo": "bar"}
    spec = spread(labels, HOSTNAME, nodeAffinityPolicy="Honor", nodeTaintsPolicy="Honor")
    return pod(spec, labels=labels)


CASES: Final[Mapping[str, PerfCase]] = {
    "TopologySpreading": PerfCase(
        _spreading("DoNotSchedule"),
        {
            "5Nodes": Workload((5, 10, 10)),
            "500Nodes": Workload((500, 1_000, 1_000)),
            "5000Nodes": Workload((5_000, 5_000, 2_000)),
            "5000Nodes_5000Pods": Workload((5_000, 5_000, 5_000), 460),
        },
    ),
    "PreferredTopologySpreading": PerfCase(
        _spreading("ScheduleAnyway"),
        {
            "5Nodes": Workload((5, 10, 10)),
            "500Nodes": Workload((500, 1_000, 1_000)),
            "5000Nodes": Workload((5_000, 5_000, 2_000)),
            "5000Nodes_5000Pods": Workload((5_000, 5_000, 5_000), 340),
        },
    ),
    "DefaultTopologySpreading": PerfCase(
        _by_default,
        {
            "5Nodes": Workload((5, 10, 10)),
            "500Nodes": Workload((500, 1_000, 1_000)),
            "5000Nodes_10000Pods": Workload((5_000, 5_000, 10_000)),
            "5000Nodes_50000Pods": Workload((5_000, 5_000, 50_000), 160),
        },
    ),
    "SchedulingWithNodeInclusionPolicy": PerfCase(
        _node_inclusion_policy,
        {
            "5Nodes": Workload((1, 4, 4)),
            "500Nodes": Workload((100, 400, 400)),
            "5000Nodes": Workload((1_000, 4_000, 4_000), 270),
        },
    ),
}
