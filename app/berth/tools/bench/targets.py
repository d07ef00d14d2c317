"""Targets of figures: for two cores and 5,000 nodes, unless a size is named."""

from collections.abc import Mapping
from typing import Final

DEFAULT_NODES: Final = 5_000

TARGETS: Final[Mapping[str, Mapping[str, float]]] = {
    "engine": {
        "plain, all requests different": 250,
        "plain, all requests equal, replicas": 60,
        "required zone spread": 300,
        "required zone spread, replicas": 150,
        "required anti-affinity on hostname": 300,
        "required anti-affinity on hostname, replicas": 150,
        "required zone affinity": 300,
        "required zone affinity, replicas": 150,
        "preemption, required zone spread": 10_000,
    },
    "scale": {
        "plain, all requests equal, replicas, nodes=5000, pods=10000": 60,
        "plain, all requests equal, replicas, nodes=130000, pods=10000": 400,
        "plain, all requests different, nodes=5000, pods=10000": 250,
        "plain, all requests different, nodes=50000, pods=10000": 1_000,
        "required zone spread, nodes=5000, pods=10000": 300,
        "required anti-affinity on hostname, nodes=5000, pods=10000": 300,
        "required zone affinity, nodes=5000, pods=10000": 300,
        "required zone spread, replicas, nodes=5000, pods=10000": 150,
        "required anti-affinity on hostname, replicas, nodes=5000, pods=10000": 150,
        "required zone affinity, replicas, nodes=5000, pods=10000": 150,
        "required zone spread, nodes=50000, pods=10000": 1_000,
        "required anti-affinity on hostname, nodes=50000, pods=10000": 1_000,
        "required zone affinity, nodes=50000, pods=10000": 1_000,
    },
    "throughput": {
        "scheduler CPU per bound pod, workload=plain": 0.25,
        "scheduler CPU per bound pod, workload=zone-spread": 0.35,
        "scheduler CPU per bound pod, workload=hostname-anti-affinity": 0.35,
        "scheduler CPU per bound pod, workload=zone-affinity": 0.35,
    },
    "startup": {"process start to first bind": 600, "Lease acquired to first bind": 50},
    "steady": {"create to bound, p50": 10, "create to bound, p99": 50},
    "preemption": {"scheduler CPU per preempting pod, nodes=5000, preemptors=1000": 3},
    "size": {
        "memory, nodes=5000, pods=150000": 500,
        "memory, nodes=130000, pods=1000000": 4_096,
    },
}
"""By bench and label of the figure, in its unit."""


def target(bench: str, label: str, nodes: object) -> float | None:
    """Return the target of a figure of *bench*, measured with *nodes*; None without one."""
    if "nodes=" not in label and nodes != DEFAULT_NODES:
        return None
    return TARGETS.get(bench, {}).get(label)
