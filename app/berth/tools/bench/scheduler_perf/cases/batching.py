"""Test cases of ``batching``: as many nodes as pods, of which one fits on each.

Without the runs of equal pods that scheduler_perf makes of them for its opportunistic batching: all
pods are equal.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from berth.tools.bench.scheduler_perf.operations import CreateNodes, Operation, measured_pods
from berth.tools.bench.scheduler_perf.templates import CONTAINER, Object, Template, light_pod, pod
from berth.tools.bench.scheduler_perf.test_case import PerfCase, Workload


def _measured(template: Template) -> Callable[..., Iterator[Operation]]:
    def operations(init_nodes: int, measure_pods: int) -> Iterator[Operation]:
        yield CreateNodes(init_nodes)
        yield measured_pods(measure_pods, template)

    return operations


def _host_port_pod(_: int) -> Object:
    ports = [{"containerPort": 80, "hostPort": 80}]
    return light_pod({"containers": [{**CONTAINER, "ports": ports}]})


def _saturating_pod(_: int) -> Object:
    return pod(cpu=3_000)


WORKLOADS: Final[Mapping[str, Workload]] = {
    "10Nodes_10Pods_10BatchSize": Workload((10, 10)),
    "20000Nodes_20000Pods_20000BatchSize": Workload((20_000, 20_000)),
}

CASES: Final[Mapping[str, PerfCase]] = {
    "HostPortConflict": PerfCase(_measured(_host_port_pod), WORKLOADS),
    "ResourceSaturation": PerfCase(_measured(_saturating_pod), WORKLOADS),
}
