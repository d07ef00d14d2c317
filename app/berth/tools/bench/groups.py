"""``berth bench groups``: what pod groups cost, tried as a whole on a cluster in memory."""

import gc
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import msgspec
from prometheus_client import CollectorRegistry

from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.pod import Pod, SchedulingGroup
from berth.kube.objects.pod_group import (
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)
from berth.runtime.clock import Clock, FakeClock
from berth.scheduler.config.load import from_object
from berth.scheduler.core.in_memory_api import InMemoryApi
from berth.scheduler.core.outside import Outside, RandomSources
from berth.scheduler.core.scheduler_core import SchedulerCore
from berth.scheduler.framework.listers import Listers
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.pod_group.trial import Member, PodGroupTrial, undo
from berth.scheduler.profile.build import Registry, args_models
from berth.tools.bench.results import Figure, figure, used_figure
from berth.tools.bench.usage import Meter, Usage, metered
from berth.tools.bench.workloads import WORKLOADS, Spec, nodes, pod, requests, running_pods

GATES: Final = ("GenericWorkload", "GangScheduling")
TRIED: Final = [
    workload
    for workload in WORKLOADS
    if workload.name
    in {
        "plain, all requests equal",
        "required zone spread",
        "preferred zone spread",
        "required anti-affinity on hostname",
        "required zone affinity",
    }
]
"""What gangs ask for whose trial is measured."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    trial: int = 512
    """Pods of the gang that is tried and undone."""
    trials: int = 7
    gangs: int = 200
    """Gangs that are bound."""
    gang: int = 16
    """Pods of each gang that is bound, or waits."""
    created: int = 2_000
    """Pods of the gang that arrives pod by pod."""
    waiting: int = 100
    """Gangs that fit nowhere."""
    singles: int = 5_000
    """Pods without a group."""
    seconds: int = 60
    """How long gangs wait before anything is measured, so that their backoff is at its longest;
    and how long nothing happens."""


DEFAULT_SIZES: Final = Sizes()


async def measure(
    registry: Registry,
    *,
    clock: Clock,
    num_nodes: int = 5_000,
    num_pods: int = 10_000,
    sizes: Sizes = DEFAULT_SIZES,
) -> AsyncIterator[Figure]:
    """Measure by *clock*, best one that counts CPU time, on *num_nodes* with *num_pods* running."""
    with metered(clock) as meter:
        measurements = _Measurements(
            lambda: Cluster(registry, num_nodes=num_nodes, num_pods=num_pods), meter, sizes
        )
        for workload in TRIED:
            yield measurements.trial(workload.name, workload.spec(0))
        yield await measurements.gangs()
        yield measurements.creation()
        yield await measurements.beside_waiting()
        yield await measurements.idle()


class Cluster:
    """A scheduler with the gates of gangs, on nodes in memory."""

    def __init__(self, registry: Registry, *gates: str, num_nodes: int, num_pods: int = 0) -> None:
        """*gates* are on as well."""
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "featureGates": dict.fromkeys((*GATES, *gates), True),
        }
        self.clock = FakeClock()
        self.api = InMemoryApi(self.clock, Listers())
        self.core = SchedulerCore(
            from_object(config, source="bench", args_models=args_models(registry)),
            registry,
            Outside(
                api=self.api,
                pods=self.api.pods,
                listers=self.api.listers,
                clock=self.clock,
                rng=RandomSources.of(Random(1)),
                metrics=SchedulerMetrics(CollectorRegistry()),
            ),
        )
        self.api.connect({kind.type: handler for kind, handler in self.core.handlers.items()})
        for node in nodes(num_nodes):
            self.api.put(node)
        for running in running_pods(num_pods, num_nodes=num_nodes, rng=Random(1)):
            self.api.put(running)

    def gang(self, name: str, size: int, *specs: Spec) -> list[Pod]:
        """Make *size* pods of a group, equally many of each spec; they are not created yet."""
        return [_member(f"{name}-{n}", name, specs[n * len(specs) // size]) for n in range(size)]

    def put_gang(self, name: str, pods: Sequence[Pod], *, priority: int | None = None) -> None:
        """Create a gang and its *pods*, all of which it needs; they have its *priority*."""
        policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=len(pods)))
        meta = ObjectMeta(name=name, namespace="default", uid=name)
        self.api.put(PodGroup(meta, PodGroupSpec(policy, priority=priority)))
        for member in pods:
            spec = msgspec.structs.replace(member.spec, priority=priority)
            self.api.put(msgspec.structs.replace(member, spec=spec))

    def num_bound(self) -> int:
        """Return how many pods the scheduler has bound."""
        return self.core.scheduler.binding_cycle.scheduled

    async def until_idle(self) -> None:
        while await self.core.step():
            pass

    async def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            await self.until_idle()
            self.clock.advance(1)
            self.core.queue.flush_backoff_completed()


class _Measurements:
    """Each on a cluster of its own."""

    def __init__(self, new: Callable[[], Cluster], meter: Meter, sizes: Sizes) -> None:
        self._new = new
        self._meter = meter
        self._sizes = sizes

    def trial(self, name: str, spec: Spec) -> Figure:
        """Measure the trial of a gang, which is undone again; the fastest of some."""
        cluster, size = self._new(), self._sizes.trial
        cluster.put_gang("gang", cluster.gang("gang", size, spec))
        scheduler, queue = cluster.core.scheduler, cluster.core.queue
        first = queue.pop()
        assert first is not None
        others = (queue.pop_specific_pod(key) for key in list(cluster.api.pods))
        taken = [*first.pods, *(other for other in others if other is not None)]
        profile = scheduler.profile_for_pod(taken[0])
        assert profile is not None
        trial = PodGroupTrial(scheduler)
        took: list[Usage] = []
        placed = 0
        for _ in range(self._sizes.trials):
            members = [Member(queued, profile, 0.0) for queued in taken]
            with self._timed(took), ExitStack() as nominations:
                trial.run(members, nominations)
                undo(members)
            placed = sum(bool(member.host) for member in members)
        return used_figure(
            f"gang of {size} tried and undone, {name}",
            min(took),
            "ms",
            outcome=f"{placed}/{size} placed",
        )

    async def gangs(self) -> Figure:
        """Measure gangs from the queue to their binds, which cost next to nothing here."""
        cluster, sizes = self._new(), self._sizes
        for n in range(sizes.gangs):
            name = f"gang-{n}"
            cluster.put_gang(name, cluster.gang(name, sizes.gang, requests(10 + n, 16)))
        took = await self._took(cluster.until_idle)
        bound = cluster.num_bound()
        return figure(
            f"gangs of {sizes.gang} bound",
            sizes.gangs / took.cpu,
            "1/s",
            outcome=f"{bound}/{sizes.gangs * sizes.gang} pods bound",
            instructions=took.instructions_per(sizes.gangs),
        )

    def creation(self) -> Figure:
        """Measure what handling the events of a gang's pods costs, which arrive one by one."""
        cluster, size = self._new(), self._sizes.created
        pods = cluster.gang("gang", size, requests(10, 16))
        took: list[Usage] = []
        with self._timed(took):
            cluster.put_gang("gang", pods)
        ready = cluster.core.queue.sub_queues.pending_counts()["active"]
        return used_figure(
            f"gang of {size} created, per pod",
            took[0],
            "µs",
            count=size,
            outcome=f"{ready}/{size} ready",
        )

    async def beside_waiting(self) -> Figure:
        """Measure pods without a group beside gangs that wait, against none beside."""
        took, bound = [], 0
        for gangs in (0, self._sizes.waiting):
            cluster = self._new()
            await self._wait(cluster, gangs)
            for n in range(self._sizes.singles):
                cluster.api.put(pod(f"single-{n}", requests(10, 16)))
            took.append(await self._took(cluster.until_idle))
            bound = cluster.num_bound()
        alone, beside = took
        return figure(
            f"single pods beside {self._sizes.waiting} gangs that wait, relative to none",
            beside.cpu / alone.cpu,
            "times",
            outcome=f"{bound}/{self._sizes.singles} bound",
        )

    async def idle(self) -> Figure:
        """Measure what gangs cost that wait while nothing happens."""
        cluster = self._new()
        await self._wait(cluster, self._sizes.waiting)
        took = await self._took(lambda: cluster.pass_time(self._sizes.seconds))
        return figure(
            f"{self._sizes.waiting} gangs wait, nothing happens",
            took.cpu / self._sizes.seconds * 100,
            "% of a CPU",
            outcome=f"{cluster.num_bound()} bound",
        )

    async def _wait(self, cluster: Cluster, gangs: int) -> None:
        """Have *gangs* wait that fit nowhere."""
        for n in range(gangs):
            name, spec = f"waiting-{n}", requests(1_000_000 + n, 16)
            cluster.put_gang(name, cluster.gang(name, self._sizes.gang, spec))
        await cluster.pass_time(self._sizes.seconds)

    async def _took(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Usage:
        took: list[Usage] = []
        with self._timed(took):
            await work()
        return took[0]

    @contextmanager
    def _timed(self, took: list[Usage]) -> Iterator[None]:
        """Append what the block uses."""
        gc.collect()
        gc.disable()
        before = self._meter.used()
        yield
        took.append(self._meter.used().since(before))
        gc.enable()


def _member(name: str, group: str, spec: Spec) -> Pod:
    alone = pod(name, spec)
    in_group = msgspec.structs.replace(alone.spec, scheduling_group=SchedulingGroup(group))
    return msgspec.structs.replace(alone, spec=in_group)
