"""The cost of an attempt that has to choose victims, on a cluster full of lesser pods."""

import gc
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import msgspec

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.resources import node_allocatable
from berth.runtime.clock import Clock, rfc3339
from berth.scheduler.cache.cache import Cache
from berth.scheduler.config.load import default_configuration
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.nominations import Nominations
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.outcome import Outcome, Unschedulable
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.profile.build import Registry, args_models, build_profiles
from berth.scheduler.profile.profile import Profile
from berth.scheduler.schedule_pod import schedule_pod
from berth.tools.bench.engine import WARM_UP, Result
from berth.tools.bench.workloads import APPS, ZONE, nodes, pod, requests

Spec = dict[str, Any]

VICTIMS_PER_NODE: Final = 4
LOW, HIGH, SYSTEM = 0, 1_000, 2_000_000_000
"""Priorities of who runs, of who wants to, and of a pod on every node that nobody evicts."""


@dataclass(frozen=True, slots=True)
class Preempting:
    """A kind of preemptor; *spec* makes the n-th one's spec."""

    name: str
    spec: Callable[[int], Spec]
    keeps_nominations: bool = False
    """Whether all preemptors wait, nominated, for their victims to leave."""


def _spread(n: int) -> Spec:
    constraint = {
        "maxSkew": 1_000,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "app-0"}},
    }
    return requests(1_000 + n, 256) | {"topologySpreadConstraints": [constraint]}


def _anti_affinity(n: int) -> Spec:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "nobody"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return requests(1_000 + n, 256) | {"affinity": affinity}


WORKLOADS: Final = (
    Preempting("preemption", lambda n: requests(1_000 + n, 256)),
    Preempting(
        "preemption, nominees waiting", lambda n: requests(1_000 + n, 256), keeps_nominations=True
    ),
    Preempting(
        "preemption, replicas, nominees waiting",
        lambda _: requests(1_000, 256),
        keeps_nominations=True,
    ),
    Preempting("preemption, of no help", lambda _: requests(16_000, 64)),
    Preempting("preemption, required zone spread", _spread),
    Preempting("preemption, required zone anti-affinity", _anti_affinity),
)


def run(
    registry: Registry, *, clock: Clock, num_nodes: int = 5_000, repetitions: int = 300
) -> Iterator[Result]:
    """Measure attempts on *num_nodes* nodes whose room is taken by four lesser pods each.

    An attempt is all that is done between a decoded pod and the order to evict its victims. In
    the results ``placed`` counts the nominated pods.
    """
    cache = _full(num_nodes)
    pods: dict[str, Pod] = {}
    profile, select = _default_profile(cache, registry, pods), Random(0).choice
    for workload in WORKLOADS:
        took, helped = [], 0
        nominated = Nominations()
        for n in range(-WARM_UP, repetitions):
            spec = workload.spec(n + WARM_UP) | {"priority": HIGH}
            pending = pod(f"pending-{n}", spec)
            pods[pending.key] = pending
            gc.disable()
            started = clock.monotonic()
            info = PodInfo(pending)
            cycle = Cycle(profile, info, cache.table, nominated)
            outcome = schedule_pod(cycle, select=select)
            if isinstance(outcome, Unschedulable):
                outcome = run_post_filter_plugins(cycle, outcome)
            ended = clock.monotonic()
            gc.enable()
            if n >= 0:
                took.append((ended - started) * 1e6)
                helped += bool(_nominated_node(outcome))
            if workload.keeps_nominations and (node := _nominated_node(outcome)):
                nominated.put(node, (*nominated.get(node, ()), info))
        mean, median = statistics.mean(took), statistics.median(took)
        yield Result(workload.name, mean, median, max(took), helped)


def _default_profile(cache: Cache, registry: Registry, pods: Mapping[str, Pod]) -> Profile:
    """Make the default profile on the nodes of *cache*; *pods* are those that wait."""
    handle = Handle(cache.table, listers=Listers(), pod=pods.get)
    profiles = build_profiles(default_configuration(args_models(registry)), registry, handle)
    (profile,) = profiles.values()
    return profile


def _nominated_node(outcome: Outcome) -> str:
    return outcome.nomination.override or "" if isinstance(outcome, Unschedulable) else ""


def _full(num_nodes: int) -> Cache:
    cache = Cache()
    for node, running in full_nodes(num_nodes):
        cache.add_node(node)
        for running_pod in running:
            cache.add_pod(PodInfo(running_pod))
    cache.refresh_order()
    return cache


def full_nodes(count: int) -> Iterator[tuple[Node, list[Pod]]]:
    """Make nodes, and the pods that take all of their CPU."""
    for n, node in enumerate(nodes(count)):
        name, cpu = node.metadata.name, node_allocatable(node).milli_cpu
        running = [_running(f"system-{n}", name, cpu=100, priority=SYSTEM)]
        for i in range(VICTIMS_PER_NODE):
            share = (cpu - 100) // VICTIMS_PER_NODE
            started = 1_700_000_000 + (n * 7_919 + i * 104_729) % 1_000_000
            running.append(_running(f"low-{n}-{i}", name, cpu=share, app=n % APPS, started=started))
        yield node, running


def _running(
    name: str, node: str, *, cpu: int, priority: int = LOW, app: int = 0, started: float = 0
) -> Pod:
    spec = requests(cpu, 128) | {"nodeName": node, "priority": priority}
    waiting = pod(name, spec, app=app)
    status = msgspec.structs.replace(waiting.status, start_time=rfc3339(started))
    return msgspec.structs.replace(waiting, status=status)
