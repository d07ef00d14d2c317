"""The scheduler as a service on one API server: client, elector, watches and the core."""

import asyncio
import logging
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from berth.insight.recording.recorder import Recorder
from berth.insight.recording.writer import RecordingWriter
from berth.kube.client.api import ObservedApi
from berth.kube.client.events.api import EventApi
from berth.kube.client.events.recorder import EventRecorder
from berth.kube.client.events.recorders import Recorders
from berth.kube.client.writes.lanes import WriteLanes
from berth.kube.informer.reflector import Told
from berth.kube.objects.devices import RESOURCE_CLAIMS
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.runtime.connection_limit import ConnectionCounts
from berth.runtime.tasks import background, forever
from berth.scheduler.api_writer import ApiWriter
from berth.scheduler.config.feature_gates import (
    GENERIC_WORKLOAD,
    SCHEDULER_ASYNC_API_CALLS,
    effective_gates,
    features_of,
    version_of,
)
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.outside import Outside, RandomSources
from berth.scheduler.core.scheduler_core import CoreJournal, CoreOptions, SchedulerCore
from berth.scheduler.core.view import view_of
from berth.scheduler.extender.build import build_extenders
from berth.scheduler.framework.pod_group_sources import group_reader
from berth.scheduler.framework.pod_reader import pod_reader
from berth.scheduler.metrics.collectors import (
    BreakerCollector,
    CacheCollector,
    ConfigurationCollector,
    ConnectionCollector,
    LaneCollector,
    ProfileCollector,
    QueueCollector,
    RecordingCollector,
    ReflectorCollector,
    ShardCollector,
    StuckLoopCollector,
    TaskCollector,
)
from berth.scheduler.metrics.loop_lag import measure_lag
from berth.scheduler.metrics.process import register_process
from berth.scheduler.metrics.recorders import ExtenderMetrics
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.metrics.selection import Selection
from berth.scheduler.profile.build import listers_of
from berth.scheduler.profile.plugin_interrupt import interrupter
from berth.scheduler.shards.parts import ShardParts
from berth.scheduler.shards.slots import Slots
from berth.service.cache_check import CacheCheck
from berth.service.dump import Dumps
from berth.service.extender_service import ExtenderService
from berth.service.leaderelection.elector import LeaderElector
from berth.service.leaderelection.membership import Membership
from berth.service.overview.sampler import Sampler, State
from berth.service.plugin_sources import KnownPlugins
from berth.service.server.stuck_loop import StuckLoopResponder
from berth.service.shards.checks import check_shards
from berth.service.shards.keeper import Keeper, keeper_of
from berth.service.staleness import Staleness
from berth.service.watchdog import Watchdog
from berth.service.watches import Watches

if TYPE_CHECKING:  # they take long to import
    from berth.insight.shadow.shadow import Shadow
    from berth.runtime.http_server import HttpServer
    from berth.service.server.access.secure_serving import SecureServer

log = logging.getLogger(__name__)

ONLY_READS: Final = "a shadow only reads"


class SchedulerService:
    """A scheduler on one API server: made of parts here, run by :meth:`run`."""

    def __init__(
        self,
        client: ObservedApi,
        config: KubeSchedulerConfiguration,
        *,
        clock: Clock,
        rng: random.Random,
        elector: LeaderElector | Membership | None = None,
        shards: Slots | None = None,
        registry: CollectorRegistry | None = None,
        max_in_unschedulable: float = 300.0,
        schedules: bool = True,
        shadows: bool = False,
        recording: RecordingWriter | None = None,
        plugins: KnownPlugins | None = None,
    ) -> None:
        """With an *elector* nothing is scheduled or written unless it leads. With *shards*, that
        is the membership of one of several replicas, which share those slots.

        Without *schedules* no pod is its own: nothing is ever queued. See :meth:`run_extender`. One
        that *shadows* another scheduler does not schedule, either; its client refuses to write,
        and it has no extender bind. See :meth:`run_shadow`.

        All steps of the scheduler are told to *recording*, if there is one.

        *registry* gets the metrics, a new one by default. *max_in_unschedulable* is in seconds.
        *plugins* are those that *config* may enable; the in-tree ones by default.

        Raises ConfigError when the profiles or the extenders of *config* cannot be made.
        """
        self.version = version_of(config)
        self.registry = registry = registry or Selection(version=self.version)
        self.metrics = SchedulerMetrics(self.registry)
        client.observer = self.metrics.requests
        if shadows:
            client = client.fenced(lambda: False, otherwise=ONLY_READS)
        self.plugins = plugins or KnownPlugins()
        self.lanes = WriteLanes(clock=clock)
        self.listers = listers_of(config, self.plugins.registry)()
        self.client = client
        self.clock = clock
        self.elector = elector
        self._delay_cache = config.delay_cache_until_active
        self.schedules = schedules and not shadows
        """Whether this process is one that schedules, if only once it leads."""
        self.gates = effective_gates(config.feature_gates, self.version)
        writes = client if elector is None else client.fenced(elector.may_write)
        events = EventApi(writes)
        self._recorders = Recorders(
            lambda name: EventRecorder(
                events,
                self.lanes,
                clock=clock,
                rng=rng,
                component=name,
                hostname=socket.gethostname(),
            )
        )
        pods: dict[str, Pod] = {}
        self._recording = recording
        self.extenders = build_extenders(
            config.extenders,
            clock=clock,
            observer=ExtenderMetrics(registry),
            may_write=lambda: not shadows and (elector is None or elector.may_write()),
        )
        api = ApiWriter(
            writes,
            self.lanes,
            recorders=self._recorders,
            pod_lookup=pods.get,
            clock=clock,
            rng=rng,
            count_created_claim=self.metrics.created_claim,
            claims_at=lambda: self.watches.reflectors[RESOURCE_CLAIMS].path,
            calls=self.metrics.async_calls
            if self.gates[SCHEDULER_ASYNC_API_CALLS].enabled
            else None,
            features=features_of(config),
        )
        core_options = CoreOptions(
            schedules=self.schedules,
            max_in_unschedulable=max_in_unschedulable,
            journal=CoreJournal()
            if recording is None
            else Recorder(
                recording.write,
                clock=clock,
                max_in_unschedulable=max_in_unschedulable,
                plugins=self.plugins.others,
            ),
        )
        self.shard_parts: ShardParts | None = None
        if shards is not None:
            parts = self.shard_parts = ShardParts(
                shards,
                writes=api,
                pods=pods,
                listers=self.listers,
                clock=clock,
                catch_up=lambda: self.pods.catch_up(),
                groups_by_spec=group_reader(features_of(config)) is None,
            )
            core_options = replace(
                core_options,
                scheduler=parts.scheduler,
                binding_cycle=parts.binding_cycle,
                pod_handler=parts.pod_handler,
                node_handler=parts.node_handler,
            )
        self.core = core = SchedulerCore(
            config,
            self.plugins.registry,
            Outside(
                api=api,
                pods=pods,
                listers=self.listers,
                clock=clock,
                rng=RandomSources.of(rng),
                metrics=self.metrics,
                extenders=self.extenders,
            ),
            core_options,
        )
        core.foreign_binds.is_leading = lambda: shards is None and self.is_leading
        self.shadow: Shadow | None = None
        if shadows:
            from berth.insight.shadow import shadow  # here: it takes 0.05 s to load

            self.shadow = shadow.Shadow(
                core, clock=clock, is_relisting=lambda: self.watches.pods.is_replacing
            )
        self.cache, self.queue, self.scheduler = core.cache, core.queue, core.scheduler
        self.live = core.live
        self.watches = Watches(
            client,
            core.handlers if self.shadow is None else self.shadow.handlers(),
            known_pods=pods,
            read_pod=pod_reader(features_of(config)),
            contact=client.contact,
            extenders=self.extenders,
            clock=clock,
            rng=rng,
            pod_may_wait=self.shard_parts.foreign_pods.may_wait if self.shard_parts else None,
            pods_together=core.cache.together,
        )
        self.pods, self.nodes = self.watches.pods, self.watches.nodes
        self.view = view_of(core, decided_by=self._decided_by, pods=Told(self.pods))
        """For those who only look at the scheduler."""
        self._stuck_loop = StuckLoopResponder()
        self._watchdog = Watchdog(pause=self._stuck_loop.answer, interrupt=interrupter())
        self._stuck_loop.metrics.register(StuckLoopCollector(self._watchdog))
        self._connections: dict[str, ConnectionCounts] = {}
        self.staleness = Staleness(
            self.watches.reflectors, is_leading=lambda: self.is_leading, clock=clock
        )
        self.is_terminating = False
        self.is_synced = False
        """Whether the whole state of the cluster is known."""
        self.extender_service = ExtenderService(
            # the other scheduler limits itself, and does not wait for long
            client if config.client_connection.limits_rate else client.unlimited(),
            profiles=core.live.profiles,
            cache=self.cache,
            queue=self.queue,
            pod_lookup=pods.get,
            listers=self.listers,
            clock=clock,
            rng=rng,
        )
        self._cache_check = CacheCheck(
            self.cache, nodes=self.nodes.store, pods=self.pods.store, clock=clock
        )
        self._dumps = Dumps(self.view, nodes=self.nodes.store)
        self.overview = Sampler(
            self.view,
            lanes=self.lanes,
            live=self.live,
            attempts=self.metrics.attempts,
            state=State(
                is_synced=lambda: self.is_synced,
                is_leading=lambda: self.is_leading,
                leader=lambda: "" if elector is None else elector.leader,
                stale=self.staleness,
            ),
        )
        self.keeper: Keeper | None = None
        """Of the slots, if there are shards."""
        if self.shard_parts is not None:
            assert isinstance(elector, Membership)
            self.keeper = keeper_of(
                client.unlimited(),
                config.leader_election,
                self.shard_parts,
                identity=elector.identity,
                reflectors=self.watches.reflectors,
                clock=clock,
            )
        self._register_collectors()

    def _register_collectors(self) -> None:
        """Have the metrics that are read off the parts when they are asked for."""
        for collector in (
            QueueCollector(self.queue, clock=self.clock),
            CacheCollector(self.cache.counts, drift=lambda: self._cache_check.differences),
            ProfileCollector(self.live.profiles.values()),
            ConfigurationCollector(self.live),
            TaskCollector({"binding": lambda: self.scheduler.binding_count}),
            BreakerCollector(self.extenders.breaker_states),
            LaneCollector(lambda: self.lanes.stats.items()),
            ReflectorCollector(self.watches.reflectors),
            StuckLoopCollector(self._watchdog),
            ConnectionCollector(self._connections),
        ):
            self.registry.register(collector)
        if self.shadow is not None:
            self.registry.register(self.shadow.collector())
        if self._recording is not None:
            self.registry.register(RecordingCollector(self._recording))
        if self.keeper is not None and self.shard_parts is not None:
            self.registry.register(
                ShardCollector(self.keeper, self.shard_parts.offers, self.shard_parts.ownership)
            )
        if self.gates[GENERIC_WORKLOAD].enabled:
            self.registry.register(self.metrics.pod_groups)
            if self.scheduler.groups is not None and self.scheduler.groups.are_entities:
                self.registry.register(self.metrics.group_preemption)
                if self.scheduler.groups.is_topology_aware:
                    self.registry.register(self.metrics.placements)
        if self.gates[SCHEDULER_ASYNC_API_CALLS].enabled:
            self.registry.register(self.metrics.async_calls)
        register_process(self.registry, effective=self.version, gates=self.gates)

    def begin_termination(self) -> None:
        """Fail ``/readyz`` from now on: the process was asked to terminate."""
        self.is_terminating = True
        self.overview.end()

    def add_server(self, name: str, server: "HttpServer | SecureServer") -> None:
        """Take note of a server that has started, as *name* in metrics.

        While the event loop is stuck, its probes are answered by a thread.
        """
        self._connections[name] = server.connections
        self._stuck_loop.listeners.append(server.listener)

    @property
    def is_leading(self) -> bool:
        """Whether this process schedules; always, without leader election."""
        return self.elector is None or self.elector.is_leader

    def current_config(self) -> KubeSchedulerConfiguration:
        """Return the configuration in force, for /configz."""
        return self.live.current

    def reconfigure(
        self, config: KubeSchedulerConfiguration, plugins: KnownPlugins | None = None
    ) -> None:
        """Schedule by *config* from the next attempt on; see :meth:`LiveConfiguration.replace`.

        *plugins* are those that it may enable, if they are others than before.
        """
        if self.keeper is not None:
            check_shards(config)
        plugins = plugins or self.plugins
        self.core.reconfigure(config, plugins.registry)
        self.plugins = plugins

    def count_reload(self, result: str) -> None:
        """Count a reload as ``success`` or ``failure``."""
        self.live.reloads[result] += 1

    def dump(self) -> None:
        """Have logged what cache and queue hold, and how the cache differs from what is watched."""
        self._dumps.ask()

    async def run(self) -> None:
        """Watch, wait until the whole state is known, then schedule; for ever.

        With an elector, scheduling waits until it leads. While it does not, the caches are kept
        up to date all the same, unless the configuration has delayCacheUntilActive. Raises
        LeadershipLostError, alone or in an ExceptionGroup, when it led and does so no more.
        """
        elector = self.elector
        async with self._measured():
            if elector is None:
                await self._watch(then=self._schedule)
            elif self._delay_cache:
                await elector.run(lambda: self._watch(then=self._schedule))
            else:
                await self._watch(then=lambda: elector.run(self._schedule))

    async def run_extender(self) -> None:
        """Watch and answer other schedulers (:attr:`extender_service`), for ever; schedule nothing.

        For a service that was made without *schedules*.
        """
        async with self._measured():
            await self._watch(then=self.extender_service.run)

    async def run_shadow(self) -> None:
        """Watch and compare with what another scheduler decides, for ever; write nothing.

        For a service that was made to be a shadow.
        """
        assert self.shadow is not None, "made without *shadows*"
        async with self._measured():
            await self._watch(then=self.shadow.run)

    @asynccontextmanager
    async def _measured(self) -> AsyncIterator[None]:
        """Measure the overview, and dump, until the end of the block; then close what calls
        extenders.
        """
        try:
            async with background() as start:
                start("overview", self.overview.run)
                start("dumps", self._dumps.run)
                yield
        finally:
            await self.extenders.close()

    async def _watch(self, *, then: Callable[[], Awaitable[None]]) -> None:
        """Keep the caches equal to the API server's state, and do *then* once they are."""

        async def begin() -> None:
            self.is_synced = True
            log.info("caches are filled", extra=self.cache.counts())
            for name, run in {
                "cache check": self._cache_check.run,
                "staleness": self.staleness.run,
            }.items():
                tasks.create_task(forever(name, run), name=name)
            await then()

        lag = partial(measure_lag, self.metrics, clock=self.clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(forever("event loop lag", lag), name="event loop lag")
            tasks.create_task(forever("watchdog", self._watchdog.run), name="watchdog")
            if self._recording is not None:
                record = partial(self._recording.run, self.clock)
                tasks.create_task(forever("recording", record), name="recording")
            await self.watches.run(then=begin)

    async def _schedule(self) -> None:
        """Take pods from the queue and write what is decided, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for name, run in (
                ("write lanes", self.lanes.run),
                ("event recorders", self._recorders.run),
                ("scheduler", self.core.run),
            ):
                tasks.create_task(forever(name, run), name=name)
            if self.keeper is not None:
                await self._keep_shards(self.keeper)

    async def _keep_shards(self, keeper: Keeper) -> None:
        """Keep slots until this is cancelled, then give them while binds are still answered."""
        assert isinstance(self.elector, Membership)
        try:
            await forever("shards", keeper.run)
        finally:
            self.elector.has_left = await keeper.leave()

    def _decided_by(self, pod: Pod) -> str:
        return "" if self.keeper is None else self.keeper.decided_by(pod)

    @property
    def is_idle(self) -> bool:
        """Nothing to try, nothing being bound, nothing to write. Pods may wait, unschedulable."""
        return self.pods.synced.is_set() and self.core.is_idle and self.lanes.idle
