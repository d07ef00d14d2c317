"""``berth bench engine``: what one decision costs when every node is looked at."""

import gc
import os
import platform
import random
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from app.cache.cache import Cache
from app.clock import Clock
from app.config.load import default_configuration
from app.framework.cycle_state import CycleState
from app.framework.pod_info import PodInfo
from app.objects.node import Node
from app.objects.pod import Pod
from app.offline.scenario import OfflineHandle, smallest_name
from app.profile.build import Registry, args_models, build_profiles
from app.scheduler.find_node import NodeFinder

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """A kind of pending pod; *spec* makes the n-th one's spec."""

    name: str
    spec: Callable[[int], Spec]


@dataclass(frozen=True, slots=True)
class Result:
    """Microseconds per decision over the repetitions of one workload."""

    workload: str
    mean: float
    median: float
    worst: float


def _requests(cpu: int, memory: int) -> Spec:
    return {
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/app:1",
                "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}},
            }
        ]
    }


WORKLOADS = (
    Workload("plain, all requests different", lambda n: _requests(50 + n, 64 + n)),
    Workload("plain, all requests equal", lambda _: _requests(100, 128)),
    Workload(
        "zone selector and toleration",
        lambda n: (
            _requests(50 + n, 64 + n)
            | {
                "nodeSelector": {"topology.kubernetes.io/zone": f"zone-{n % 3}"},
                "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            }
        ),
    ),
    Workload("fits nowhere", lambda n: _requests(1_000_000 + n, 64)),
)


def nodes(count: int) -> Iterator[Node]:
    """Make nodes of three sizes in three zones, one in ten tainted."""
    for n in range(count):
        cpu = (4, 8, 16)[n % 3]
        capacity = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}
        yield msgspec.convert(
            {
                "metadata": {
                    "name": f"node-{n}",
                    "labels": {
                        "kubernetes.io/hostname": f"node-{n}",
                        "topology.kubernetes.io/zone": f"zone-{n % 3}",
                    },
                },
                "spec": {
                    "taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
                    if n % 10 == 0
                    else []
                },
                "status": {"allocatable": capacity | {"ephemeral-storage": "100Gi"}},
            },
            Node,
        )


def pod(name: str, spec: Spec) -> Pod:
    """Make one pod of the default scheduler."""
    meta = {"name": name, "namespace": "default", "uid": name}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


def run(
    registry: Registry,
    *,
    clock: Clock,
    num_nodes: int = 5_000,
    num_pods: int = 10_000,
    repetitions: int = 300,
    seed: int = 1,
) -> Iterator[Result]:
    """Measure each workload on a cluster of *num_nodes* with *num_pods* running."""
    rng = random.Random(seed)
    cache = Cache()
    for node in nodes(num_nodes):
        cache.add_node(node)
    for n in range(num_pods):
        spec = _requests(rng.randrange(50, 500), rng.randrange(64, 1024))
        spec["nodeName"] = f"node-{rng.randrange(num_nodes)}"
        cache.add_pod(PodInfo(pod(f"running-{n}", spec)))
    cache.refresh_order()
    table = cache.table
    profiles = build_profiles(
        default_configuration(args_models(registry)), registry, OfflineHandle(table)
    )
    (profile,) = profiles.values()
    finder = NodeFinder(table, select=smallest_name(table))
    for workload in WORKLOADS:
        took = []
        for n in range(-20, repetitions):  # the first 20 warm up
            pending = pod(f"pending-{n}", workload.spec(n + 20))
            gc.disable()
            started = clock.monotonic()
            info = PodInfo(pending)
            decision = finder.find(profile, info, state=CycleState(), nominated={})
            if decision.node_name:
                cache.assume_pod(info.on_node(decision.node_name))
            ended = clock.monotonic()
            gc.enable()
            if n >= 0:
                took.append((ended - started) * 1e6)
            if decision.node_name:
                cache.forget_pod(info.on_node(decision.node_name))
        yield Result(workload.name, statistics.mean(took), statistics.median(took), max(took))


def machine() -> str:
    """Name the machine in one line, so that a number can be placed."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next(line.split(":", 1)[1].strip() for line in info if "model name" in line)
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
