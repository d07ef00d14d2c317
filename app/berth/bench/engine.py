"""``berth bench engine``: what one decision costs when every node is looked at."""

import gc
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from berth.bench.workloads import WORKLOADS, Workload, nodes, pod, running_pods
from berth.cache.cache import Cache
from berth.clock import Clock
from berth.config.load import default_configuration
from berth.framework.handle import Handle
from berth.framework.listers import Listers
from berth.framework.pod_info import PodInfo
from berth.objects.cluster import Namespace
from berth.objects.meta import ObjectMeta
from berth.objects.pod import Pod
from berth.profile.build import Registry, args_models, build_profiles
from berth.profile.profile import Profile
from berth.scheduler.cycle import Cycle
from berth.scheduler.outcome import Placed
from berth.scheduler.schedule_pod import schedule_pod

NO_OBJECTS = Listers()
NO_PODS: Mapping[str, Pod] = {}
WARM_UP = 20
"""Decisions that are made first and not counted."""


@dataclass(frozen=True, slots=True)
class Result:
    """Microseconds per decision over the repetitions of one workload."""

    workload: str
    mean: float
    median: float
    worst: float
    placed: int
    """How many of the pods found a node."""


def run(
    registry: Registry,
    *,
    clock: Clock,
    num_nodes: int = 5_000,
    num_pods: int = 10_000,
    repetitions: int = 300,
    seed: int = 1,
    workloads: Sequence[Workload] = WORKLOADS,
) -> Iterator[Result]:
    """Measure each workload on a cluster of *num_nodes* with *num_pods* running.

    A decision is all that is done between a decoded pod and its place in the cache.
    """
    cache = Cache()
    for node in nodes(num_nodes):
        cache.add_node(node)
    for running in running_pods(num_pods, num_nodes=num_nodes, rng=random.Random(seed)):
        cache.add_pod(PodInfo(running))
    cache.refresh_order()
    listers = Listers()
    listers.namespaces.on_add(Namespace(ObjectMeta(name="default", labels={"team": "a"})))
    profile, select = default_profile(cache, registry, listers=listers), random.Random(0).choice
    for workload in workloads:
        took, placed = [], 0
        for n in range(-WARM_UP, repetitions):
            pending = pod(f"pending-{n}", workload.spec(n + WARM_UP))
            gc.disable()
            started = clock.monotonic()
            info = PodInfo(pending)
            outcome = schedule_pod(Cycle(profile, info, cache.table, {}), select=select)
            if isinstance(outcome, Placed):
                cache.assume_pod(info.on_node(outcome.node_name))
            ended = clock.monotonic()
            gc.enable()
            if n >= 0:
                took.append((ended - started) * 1e6)
                placed += isinstance(outcome, Placed)
            if isinstance(outcome, Placed):
                cache.forget_pod(info.on_node(outcome.node_name))
        mean, median = statistics.mean(took), statistics.median(took)
        yield Result(workload.name, mean, median, max(took), placed)


def default_profile(
    cache: Cache,
    registry: Registry,
    *,
    listers: Listers = NO_OBJECTS,
    pods: Mapping[str, Pod] = NO_PODS,
) -> Profile:
    """Make the default profile on the nodes of *cache*; *pods* are those that wait."""
    handle = Handle(cache.table, listers=listers, pod=pods.get)
    profiles = build_profiles(default_configuration(args_models(registry)), registry, handle)
    (profile,) = profiles.values()
    return profile
