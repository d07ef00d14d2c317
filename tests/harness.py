"""A whole scheduler in process, on a fake cluster: put objects in, run, look where pods went.

No sockets and no wall time: the cluster answers at once, the clock stands still until a test moves
it. What is excluded: HTTP, reflectors and write lanes, which have tests of their own.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import httpx
import msgspec
from prometheus_client import CollectorRegistry

from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import PodGroup
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.runtime.clock import Clock, FakeClock
from berth.scheduler.config.feature_gates import features_of
from berth.scheduler.config.load import default_configuration, from_object
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.in_memory_api import InMemoryApi
from berth.scheduler.core.outside import Outside, RandomSources
from berth.scheduler.core.scheduler_core import CoreJournal, CoreOptions, SchedulerCore
from berth.scheduler.core.view import view_of
from berth.scheduler.extender.build import build_extenders
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import Plugin, PluginArgs
from berth.scheduler.framework.listers import ApiObject, Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.outcomes import NOBODY, Outcomes
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_reader import PodReader, pod_reader
from berth.scheduler.metrics.recorders import ExtenderMetrics
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.profile.build import Registry, args_models
from berth.scheduler.queue.flushers import LEFTOVERS_PERIOD
from berth_plugins.registry import IN_TREE
from tests.fake_claims import FakeClaims


class RecordedEvent(NamedTuple):
    pod: str
    type: str
    reason: str
    note: str


class FakeCluster(InMemoryApi):
    """An API in memory that records what it is told, and fails when it is to."""

    def __init__(
        self, clock: FakeClock, listers: Listers, *, read_pod: PodReader | None = None
    ) -> None:
        super().__init__(clock, listers, read_pod=read_pod)
        self.clock = clock
        self.resource_claims: FakeClaims = FakeClaims(self._claim_changed)
        self.events: list[RecordedEvent] = []
        self.related: list[Pod | PodGroup] = []
        """What events were caused by, where they say so."""
        self.bind_error: Exception | None = None
        """Raised by the next binds."""
        self.bind_errors: dict[str, Exception] = {}
        """By name of the pod, raised by its next binds."""
        self.update_error: Exception | None = None
        """Raised by the next writes of volumes and claims."""
        self.evict_error: Exception | None = None
        """Raised by the next evictions."""
        self.is_binding = False
        self.is_behind = False
        """What it has to say about its lanes, if it had any."""
        self.room = asyncio.Event()
        """Set while more binds may be under way, as at first."""
        self.room.set()
        self.lets_victims_linger = False
        """Whether evicted pods are terminating until the test deletes them."""
        self.tells_of_evictions_late = False
        """Whether watches tell of evictions only when :meth:`tell_of_evictions` is called."""
        self._untold: list[tuple[Pod, Condition]] = []
        self.shows_conditions = False
        """Whether pods have the conditions that are written."""

    @property
    def has_room(self) -> bool:
        return self.room.is_set()

    async def until_room(self) -> None:
        await self.room.wait()

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        error = self.bind_errors.get(pod.pod.metadata.name, self.bind_error)
        if error is not None:
            raise error
        await super().bind(pod, node_name)

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        if self.update_error is not None:
            raise self.update_error
        return await super().update_persistent_volume(volume)

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        if self.update_error is not None:
            raise self.update_error
        return await super().update_persistent_volume_claim(claim)

    async def evict(self, pod: Pod, condition: Condition, *, nominated: Pod | None = None) -> bool:
        if self.evict_error is not None:
            raise self.evict_error
        if self.tells_of_evictions_late:
            self._untold.append((pod, condition))
            return True
        return await super().evict(pod, condition, nominated=nominated)

    async def tell_of_evictions(self) -> None:
        """Have watches tell of the evictions that were answered before."""
        for pod, condition in self._untold:
            await super().evict(pod, condition)
        self._untold.clear()

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        super().status(pod, condition=condition, nominated_node_name=nominated_node_name)
        current = self.pods.get(pod.key)
        if self.shows_conditions and condition is not None and current is not None:
            others = (each for each in current.status.conditions if each.type != condition.type)
            status = msgspec.structs.replace(current.status, conditions=(*others, condition))
            self.put(msgspec.structs.replace(current, status=status))

    def terminate(self, pod: Pod) -> None:
        if not self.lets_victims_linger:
            super().terminate(pod)

    def event(
        self,
        pod: Pod,
        *,
        profile: str = "",
        type: str,
        reason: str,
        action: str,
        note: str,
        related: PodGroup | None = None,
    ) -> None:
        self.events.append(RecordedEvent(pod.key, type, reason, note))
        if related is not None:
            self.related.append(related)


class PluginCluster(FakeCluster):
    """A cluster for a plugin that is tested without a scheduler."""

    def __init__(
        self,
        clock: FakeClock,
        listers: Listers | None = None,
        *,
        nodes: NodeTable | None = None,
        outcomes: Outcomes = NOBODY,
    ) -> None:
        super().__init__(clock, listers or Listers())
        self.handle = Handle(
            nodes or NodeTable(),
            listers=self.listers,
            clock=clock,
            pod=self.pods.get,
            outcomes=outcomes,
            writes=self,
        )


def configuration_of(
    config: Mapping[str, Any] | None, models: Mapping[str, type[PluginArgs]]
) -> KubeSchedulerConfiguration:
    """Read *config*; None is the default, which nobody changes, so it is read once.

    To read it takes a quarter of the time that a harness takes to make.
    """
    if config is None:
        return _default_configuration(tuple(models.items()))
    return from_object(config, source="test", args_models=models)


@cache
def _default_configuration(
    models: tuple[tuple[str, type[PluginArgs]], ...],
) -> KubeSchedulerConfiguration:
    return default_configuration(dict(models))


class Harness:
    """Cluster, cache, queue and scheduler, connected as the service connects them."""

    def __init__(
        self,
        *,
        config: dict[str, Any] | None = None,
        registry: Registry = IN_TREE,
        rng: random.Random | None = None,
        dice: random.Random | None = None,
        network: httpx.AsyncBaseTransport | None = None,
        uses_signatures: bool = True,
        shares_answers: bool = True,
        listers: type[Listers] = Listers,
        journal: Callable[[Clock], CoreJournal] | None = None,
        clock: FakeClock | None = None,
    ) -> None:
        """*rng* is what plugins choose with.

        *dice* pick the cycles in which plugins are timed; they decide nothing else.

        *uses_signatures*: as always, one failed attempt stands for all pods of its signature.
        *shares_answers*: as always, plugins are not asked again about pods of the same template.
        *network* is where the extenders of *config* are. *listers* declares the kinds of objects.
        *journal* is given the clock and makes what is told of all steps.
        """
        self.clock = clock or FakeClock()
        self.registry = CollectorRegistry()
        self.metrics = SchedulerMetrics(self.registry)
        models = args_models(registry)
        loaded = configuration_of(config, models)
        self.extenders = build_extenders(
            loaded.extenders,
            clock=self.clock,
            observer=ExtenderMetrics(self.registry),
            transport=network,
        )
        self.listers = listers()
        read_pod = pod_reader(features_of(loaded))
        self.cluster = FakeCluster(self.clock, self.listers, read_pod=read_pod)
        self.core = SchedulerCore(
            loaded,
            registry,
            Outside(
                api=self.cluster,
                pods=self.cluster.pods,
                listers=self.listers,
                clock=self.clock,
                rng=RandomSources(
                    ties=random.Random(1),
                    plugins=rng or random.Random(0),
                    extenders=random.Random(2),
                    sampling=dice or random.Random(0),
                ),
                metrics=self.metrics,
                extenders=self.extenders,
            ),
            CoreOptions(
                uses_signatures=uses_signatures,
                shares_answers=shares_answers,
                journal=CoreJournal() if journal is None else journal(self.clock),
            ),
        )
        self.cache, self.queue = self.core.cache, self.core.queue
        self.view = view_of(self.core)
        self.scheduler, self.failure_reporter = self.core.scheduler, self.core.failure_reporter
        self.preemptions = self.core.preemptions
        self.handlers = {kind.type: handler for kind, handler in self.core.handlers.items()}
        """By type of object."""
        self.cluster.connect(self.handlers)

    def put(self, *objects: ApiObject) -> None:
        """Create or replace objects of any kind, as a watch would tell it."""
        for obj in objects:
            self.cluster.put(obj)

    def delete(self, *objects: ApiObject) -> None:
        for obj in objects:
            self.cluster.delete(obj)

    async def until_idle(self, *, attempts: int = 10_000) -> None:
        """Step until nothing is left to do; cache and queue stay consistent."""
        for _ in range(attempts):
            if not await self.core.step():
                return
            self.core.check_invariants()
        raise AssertionError(f"still busy after {attempts} steps")

    async def pass_time(self, seconds: int) -> None:
        """Let the scheduler work for so many seconds, with the flushes of its queue."""
        for second in range(1, seconds + 1):
            await self.until_idle()
            self.clock.advance(1)
            self.core.flush_backoff_completed()
            if second % LEFTOVERS_PERIOD == 0:
                self.core.flush_unschedulable_pods_leftover()
        await self.until_idle()

    async def bind_at_once(self) -> None:
        """Try the next pod or group; let all bindings that follow run beside each other."""
        bindings = await self.core.schedule_next()
        assert bindings is not None, "nothing waits to be tried"
        await asyncio.gather(*map(self.scheduler.binding_cycle.run, bindings))
        self.core.check_invariants()

    def placements(self) -> dict[str, str]:
        """Pod name to node name, of bound pods."""
        return {
            pod.metadata.name: pod.spec.node_name
            for pod in self.cluster.pods.values()
            if pod.spec.node_name
        }


def with_plugins(*kinds: type[Plugin], dice: random.Random | None = None) -> Harness:
    """Make a harness whose profile has *kinds* after the default plugins."""
    enabled = [{"name": kind.NAME} for kind in kinds]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
    }
    return Harness(
        config=config, registry={**IN_TREE, **{kind.NAME: kind for kind in kinds}}, dice=dice
    )
