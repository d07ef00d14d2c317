"""Test cases of ``volumes``."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from berth.tools.bench.scheduler_perf.operations import (
    MEASURED,
    CreateNodes,
    CreatePods,
    Operation,
    measured_pods,
)
from berth.tools.bench.scheduler_perf.storage import CSI, IN_TREE, Volume
from berth.tools.bench.scheduler_perf.templates import (
    Object,
    default_pod,
    high_priority_pod,
    low_priority_pod,
    pod,
)
from berth.tools.bench.scheduler_perf.test_case import PerfCase, Workload

EBS_LIMIT: Final = 39
"""Volumes that can be attached to a node."""


def _secrets(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
    yield CreateNodes(init_nodes)
    yield CreatePods(init_pods, _pod_with_secret)
    yield measured_pods(measure_pods, _pod_with_secret)


def _pod_with_secret(_: int) -> Object:
    return pod({"volumes": [{"name": "secret", "secret": {"secretName": "secret"}}]})


def _persistent_volumes(
    volume: Volume, *, limit: int = 0, is_migrated: bool = False
) -> Callable[..., Iterator[Operation]]:
    """Return operations of pods that have a volume each."""

    def operations(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
        yield CreateNodes(init_nodes, csi_limit=limit, is_migrated=is_migrated)
        yield CreatePods(init_pods, volume=volume)
        yield CreatePods(measure_pods, default_pod, (MEASURED,), volume, is_measured=True)

    return operations


def _preemption(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
    yield CreateNodes(init_nodes)
    yield CreatePods(init_pods, low_priority_pod)
    yield CreatePods(measure_pods, high_priority_pod, (MEASURED,), IN_TREE, is_measured=True)


CASES: Final[Mapping[str, PerfCase]] = {
    "SchedulingSecrets": PerfCase(
        _secrets,
        {
            "5Nodes": Workload((5, 5, 10)),
            "500Nodes": Workload((500, 500, 1_000)),
            "5000Nodes": Workload((5_000, 5_000, 1_000)),
            "5000Nodes_10000Pods": Workload((5_000, 1_000, 10_000), 790),
        },
    ),
    "SchedulingInTreePVs": PerfCase(
        _persistent_volumes(IN_TREE),
        {
            "5Nodes": Workload((5, 5, 10)),
            "500Nodes": Workload((500, 500, 1_000)),
            "5000Nodes": Workload((5_000, 5_000, 1_000)),
            "5000Nodes_2000Pods": Workload((5_000, 1_000, 2_000), 290),
        },
    ),
    "SchedulingMigratedInTreePVs": PerfCase(
        _persistent_volumes(IN_TREE, limit=EBS_LIMIT, is_migrated=True),
        {
            "5Nodes": Workload((5, 5, 10)),
            "500Nodes": Workload((500, 500, 1_000)),
            "5000Nodes": Workload((5_000, 5_000, 1_000)),
            "5000Nodes_5000Pods": Workload((5_000, 5_000, 5_000), 100),
        },
    ),
    "SchedulingCSIPVs": PerfCase(
        _persistent_volumes(CSI, limit=EBS_LIMIT),
        {
            "5Nodes": Workload((5, 5, 10)),
            "500Nodes": Workload((500, 500, 1_000)),
            "5000Nodes": Workload((5_000, 5_000, 1_000)),
            "5000Nodes_5000Pods": Workload((5_000, 5_000, 5_000), 100),
        },
    ),
    "PreemptionPVs": PerfCase(
        _preemption, {"5Nodes": Workload((5, 20, 5)), "1000Nodes": Workload((1_000, 4_000, 1_000))}
    ),
}
