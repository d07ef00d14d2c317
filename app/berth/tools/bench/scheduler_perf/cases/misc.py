"""Test cases of ``misc``."""

from collections.abc import Iterator, Mapping
from typing import Final

from berth.tools.bench.scheduler_perf.operations import (
    Barrier,
    Churn,
    CreateNodes,
    CreatePods,
    DeletePods,
    Operation,
    measured_pods,
)
from berth.tools.bench.scheduler_perf.run import NODES, PODS, SERVICES
from berth.tools.bench.scheduler_perf.templates import (
    NAMED_NODE,
    Object,
    default_pod,
    high_priority_pod,
    light_pod,
    low_priority_pod,
    named_node,
    node,
    node_affinity,
    pod,
    too_large_pod,
)
from berth.tools.bench.scheduler_perf.test_case import PerfCase, Workload

DELETED: Final = "deleted"
"""A namespace of pods that are deleted while others are measured."""
CHURN_SECONDS: Final = 0.2


def _basic(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
    yield CreateNodes(init_nodes)
    yield CreatePods(init_pods)
    yield measured_pods(measure_pods)


def _daemonset(init_nodes: int, measure_pods: int) -> Iterator[Operation]:
    yield CreateNodes(1, named_node)
    yield CreateNodes(init_nodes)
    yield measured_pods(measure_pods, _daemonset_pod)


def _daemonset_pod(_: int) -> Object:
    return light_pod(node_affinity("matchFields", "metadata.name", NAMED_NODE))


def _preemption(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
    yield CreateNodes(init_nodes)
    yield CreatePods(init_pods, low_priority_pod)
    yield measured_pods(measure_pods, high_priority_pod)


def _preemption_async(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
    """Measure pods that fit while others preempt: three of the four pods on a node each."""
    yield CreateNodes(init_nodes)
    yield CreatePods(init_pods, low_priority_pod)
    yield Churn({PODS: high_priority_pod}, CHURN_SECONDS)
    yield measured_pods(measure_pods)


def _unschedulable(init_nodes: int, init_pods: int, measure_pods: int) -> Iterator[Operation]:
    yield CreateNodes(init_nodes)
    yield CreatePods(init_pods)
    yield Churn({PODS: too_large_pod}, CHURN_SECONDS)
    yield measured_pods(measure_pods)


def _mixed_churn(init_nodes: int, measure_pods: int) -> Iterator[Operation]:
    yield CreateNodes(init_nodes)
    yield Churn({NODES: _full_node, PODS: too_large_pod, SERVICES: _service}, 1.0, recreates=True)
    yield measured_pods(measure_pods)


def _full_node(n: int) -> Object:
    return node(f"churn-{n}", pods=0)


def _service(_: int) -> Object:
    ports = [{"protocol": "TCP", "port": 80, "targetPort": 9376}]
    return {"metadata": {}, "spec": {"selector": {"app": "foo"}, "ports": ports}}


def _while_gated(gated_pods: int, deleting_pods: int, measure_pods: int) -> Iterator[Operation]:
    """Measure while many pods are gated and others leave."""
    yield CreateNodes(1, named_node)
    yield CreatePods(gated_pods, _gated_pod, skip_wait=True)
    yield Barrier(is_attempted=True)
    yield CreatePods(deleting_pods, _light_pod, (DELETED,))
    yield DeletePods(DELETED, deleting_pods, per_second=50)
    yield measured_pods(measure_pods, _light_pod)


def _gated_pod(_: int) -> Object:
    return light_pod({"schedulingGates": [{"name": "test.k8s.io/hold"}]})


def _light_pod(_: int) -> Object:
    return light_pod()


def _deleted_with_finalizers(
    init_nodes: int, deleting_pods: int, measure_pods: int
) -> Iterator[Operation]:
    yield CreateNodes(init_nodes)
    yield CreatePods(deleting_pods, _pod_with_finalizer, (DELETED,), skip_wait=True)
    yield DeletePods(DELETED, deleting_pods, per_second=100)
    yield measured_pods(measure_pods, _light_pod)


def _pod_with_finalizer(_: int) -> Object:
    return {**default_pod(0), "metadata": {"finalizers": ["test.k8s.io/finalizer"]}}


def _extended_resource(
    nodes_without: int, nodes_with: int, measure_pods: int
) -> Iterator[Operation]:
    """Measure pods of which each asks for a resource that one node has."""
    yield CreateNodes(nodes_without)
    yield CreateNodes(nodes_with, _node_with_extended_resource)
    yield measured_pods(measure_pods, _pod_with_extended_resource)


def _node_with_extended_resource(n: int) -> Object:
    labels = {"node-with-extended-resource": "true"}
    return node(f"extended-resource-{n}", labels=labels, amounts={f"foo.com/bar-{n}": "1"})


def _pod_with_extended_resource(n: int) -> Object:
    amounts = {f"foo.com/bar-{n}": "1"}
    obj = pod()
    obj["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return obj


CASES: Final[Mapping[str, PerfCase]] = {
    "SchedulingBasic": PerfCase(
        _basic,
        {
            "5Nodes": Workload((5, 5, 10)),
            "500Nodes": Workload((500, 500, 1_000)),
            "5000Nodes": Workload((5_000, 1_000, 1_000)),
            "5000Nodes_10000Pods": Workload((5_000, 1_000, 10_000), 680),
            "5000Nodes_50000Pods": Workload((5_000, 5_000, 50_000), 810),
        },
    ),
    "SchedulingDaemonset": PerfCase(
        _daemonset,
        {"5Nodes": Workload((5, 10)), "15000Nodes": Workload((15_000, 30_000), 1_100)},
    ),
    "PreemptionBasic": PerfCase(
        _preemption, {"5Nodes": Workload((5, 20, 5)), "1000Nodes": Workload((1_000, 4_000, 1_000))}
    ),
    "PreemptionAsync": PerfCase(
        _preemption_async,
        {
            "5Nodes": Workload((5, 20, 5)),
            "500Nodes": Workload((500, 2_000, 500)),
            "5000Nodes": Workload((5_000, 20_000, 5_000), 570),
        },
    ),
    "Unschedulable": PerfCase(
        _unschedulable,
        {
            "5Nodes/1Init/10Pods": Workload((5, 1, 10)),
            "500Nodes/10Init/1kPods": Workload((500, 10, 1_000)),
            "5kNodes/100Init/1kPods": Workload((5_000, 100, 1_000)),
            "5kNodes/100Init/10kPods": Workload((5_000, 100, 10_000), 590),
            "5kNodes/20kInit/10kPods": Workload((5_000, 20_000, 10_000), 600),
        },
    ),
    "SchedulingWithMixedChurn": PerfCase(
        _mixed_churn,
        {
            "10Nodes": Workload((10, 100)),
            "1000Nodes": Workload((1_000, 1_000)),
            "5000Nodes": Workload((5_000, 2_000)),
            "5000Nodes_10000Pods": Workload((5_000, 10_000), 710),
        },
    ),
    "SchedulingWhileGated": PerfCase(
        _while_gated,
        {
            "1Node_10GatedPods": Workload((10, 10, 10)),
            "1Node_10000GatedPods": Workload((10_000, 20_000, 20_000), 910),
        },
    ),
    "SchedulingDeletedPodsWithFinalizers": PerfCase(
        _deleted_with_finalizers,
        {
            "10Node_100DeletingPods": Workload((10, 10, 10)),
            "1000Node_1000DeletingPods": Workload((1_000, 1_000, 1_000)),
            "5000Node_5000DeletingPods": Workload((5_000, 5_000, 5_000), 830),
        },
    ),
    "SchedulingWithExtendedResource": PerfCase(
        _extended_resource,
        {
            "fast": Workload((1, 10, 10)),
            "500pods_500nodes": Workload((0, 500, 500)),
            "5000pods_5000nodes": Workload((0, 5_000, 5_000), 180),
        },
    ),
}
