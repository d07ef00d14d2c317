"""``berth bench engine``: what one decision costs when every node is looked at."""

import gc
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry

from berth.kube.objects.cluster import Namespace
from berth.kube.objects.meta import ObjectMeta
from berth.runtime.clock import Clock, RealClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.core.in_memory_api import InMemoryApi
from berth.scheduler.core.outside import Outside, RandomSources
from berth.scheduler.core.scheduler_core import SchedulerCore
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.outcome import Outcome, Placed
from berth.scheduler.profile.build import Registry, args_models
from berth.scheduler.schedule_pod import schedule_pod
from berth.tools.bench.workloads import (
    EQUAL,
    FITS_NOWHERE,
    PLAIN,
    WORKLOADS,
    Spec,
    Workload,
    nodes,
    pod,
    running_pods,
)

WARM_UP: Final = 20
"""Decisions that are made first and not counted."""
TEMPLATES: Final = 10
"""Whose replicas come in turns."""


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

    A decision is all that is done from the beginning of a cycle until its outcome is recorded. Each
    workload is measured twice: with pods that differ, and with replicas of one template. They get
    their nodes one after the other as in a scheduler. About pods that differ in nothing, or fit
    nowhere, all plugins are asked, and they give their nodes back.
    """
    decisions = _Decisions(
        _core(registry, num_nodes=num_nodes, num_pods=num_pods, seed=seed), clock, repetitions
    )
    select = random.Random(0).choice
    for workload in workloads:
        if workload.name in (EQUAL, FITS_NOWHERE):
            yield decisions.measure(
                workload.name, workload.spec, lambda cycle: schedule_pod(cycle, select=select)
            )
        else:
            decide = decisions.core.scheduler.decide
            yield decisions.measure(workload.name, workload.spec, decide, keeps=True)
        if workload.name != FITS_NOWHERE:
            yield decisions.measure_replicas(workload)
        if workload.name == PLAIN:
            yield decisions.measure_replicas(workload, templates=TEMPLATES)


class _Decisions:
    """Measures decisions of one scheduler."""

    def __init__(self, core: SchedulerCore, clock: Clock, repetitions: int) -> None:
        self.core = core
        self._clock = clock
        self._repetitions = repetitions

    def measure_replicas(self, workload: Workload, *, templates: int = 1) -> Result:
        """Decide about replicas of *templates* in turns, which keep their nodes until the end."""
        name = workload.name + (", replicas" if templates == 1 else f", {templates} in turns")
        specs = [workload.spec(n) for n in range(templates)]
        decide = self.core.scheduler.decide
        return self.measure(name, lambda n: specs[n % templates], decide, keeps=True)

    def measure(
        self,
        name: str,
        spec: Callable[[int], Spec],
        decide: Callable[[Cycle], Outcome],
        *,
        keeps: bool = False,
    ) -> Result:
        """Decide about pods, which give their nodes back at once unless *keeps*."""
        took, placed, cache = list[float](), 0, self.core.cache
        kept = list[PodInfo]()
        for n in range(-WARM_UP, self._repetitions):
            info = PodInfo(pod(f"pending-{n}", spec(n + WARM_UP)))
            outcome, seconds = self._decide(info, decide)
            if isinstance(outcome, Placed):
                kept.append(info.on_node(outcome.node_name))
                cache.assume_pod(kept[-1])
            if n >= 0:
                took.append(seconds * 1e6)
                placed += isinstance(outcome, Placed)
            if not keeps and kept:
                cache.forget_pod(kept.pop())
        for assumed in kept:
            cache.forget_pod(assumed)
        return Result(name, statistics.mean(took), statistics.median(took), max(took), placed)

    def _decide(self, pod: PodInfo, decide: Callable[[Cycle], Outcome]) -> tuple[Outcome, float]:
        """Return the outcome and the seconds until it was recorded."""
        scheduler, clock = self.core.scheduler, self._clock
        (profile,) = scheduler.profiles.values()
        queued = QueuedPodInfo(pod, 0.0, attempts=1)
        gc.disable()
        started = clock.monotonic()
        began = scheduler.clock.monotonic()
        outcome = decide(scheduler.begin_cycle(profile, queued))
        scheduler.measure(outcome, began)
        scheduler.record(outcome, queued, began)
        ended = clock.monotonic()
        gc.enable()
        return outcome, ended - started


def _core(registry: Registry, *, num_nodes: int, num_pods: int, seed: int) -> SchedulerCore:
    """Make a scheduler that nothing is connected to, on nodes with running pods."""
    clock, listers = RealClock(), Listers()
    listers.namespaces.on_add(Namespace(ObjectMeta(name="default", labels={"team": "a"})))
    api = InMemoryApi(clock, listers)
    outside = Outside(
        api=api,
        pods=api.pods,
        listers=listers,
        clock=clock,
        rng=RandomSources.of(random.Random(seed)),
        metrics=SchedulerMetrics(CollectorRegistry()),
    )
    core = SchedulerCore(default_configuration(args_models(registry)), registry, outside)
    for node in nodes(num_nodes):
        core.cache.add_node(node)
    for running in running_pods(num_pods, num_nodes=num_nodes, rng=random.Random(seed)):
        core.cache.add_pod(PodInfo(running))
    return core
