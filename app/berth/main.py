"""The composition root: the only place that constructs the scheduler and connects its parts."""

import asyncio
import logging
import random
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry

from berth.cache.cache import Cache
from berth.client.api_client import ApiClient
from berth.client.event_api import EventApi
from berth.client.events import EventRecorder
from berth.client.lanes import WriteLanes
from berth.client.recorders import Recorders
from berth.clock import Clock
from berth.config.feature_gates import FEATURE_GATES, Gate
from berth.config.types import KubeSchedulerConfiguration
from berth.connection_limit import ConnectionCounts
from berth.extender.build import build_extenders
from berth.framework.handle import Handle
from berth.framework.listers import Listers
from berth.http_server import HttpServer
from berth.leaderelection.elector import LeaderElector
from berth.memory import keep_objects
from berth.metrics.connection_metrics import ConnectionCollector
from berth.metrics.extender_metrics import BreakerCollector, ExtenderMetrics
from berth.metrics.loop_lag import measure_lag
from berth.metrics.owners import (
    CacheCollector,
    ConfigurationCollector,
    LaneCollector,
    ProfileCollector,
    QueueCollector,
    ReflectorCollector,
    StuckLoopCollector,
    TaskCollector,
)
from berth.metrics.process import register_process
from berth.metrics.scheduler_metrics import SchedulerMetrics
from berth.objects.pod import Pod
from berth.plugin_sources import KnownPlugins
from berth.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.api_writer import ApiWriter
from berth.scheduler.binding_cycle import BindingCycle
from berth.scheduler.decisions import Decisions
from berth.scheduler.event_handlers import NodeHandler, PodHandler
from berth.scheduler.failure import FailureHandler
from berth.scheduler.failure_reporter import FailureReporter
from berth.scheduler.find_node import NodeFinder
from berth.scheduler.preemption import Preemptions, PreemptionsUnderWay
from berth.scheduler.reservation import Reservations
from berth.scheduler.scheduler import Scheduler
from berth.scheduler.signatures import signature_profiles
from berth.scheduler.timed_handler import EventTimer
from berth.scheduler.with_extenders import ExtenderRound
from berth.server.access.secure_serving import SecureServer
from berth.server.stuck_loop import StuckLoopResponder
from berth.service.cache_check import CacheCheck
from berth.service.dump import dump
from berth.service.extender_service import ExtenderService
from berth.service.live_configuration import LiveConfiguration, backoff_of
from berth.service.staleness import Staleness
from berth.service.watchdog import Watchdog
from berth.service.watches import Watches
from berth.tasks import forever

log = logging.getLogger(__name__)

DECISIONS_KEPT = 1_000


class SchedulerService:
    """A scheduler on one API server: made of parts here, run by :meth:`run`."""

    def __init__(
        self,
        client: ApiClient,
        config: KubeSchedulerConfiguration,
        *,
        clock: Clock,
        rng: random.Random,
        elector: LeaderElector | None = None,
        registry: CollectorRegistry | None = None,
        gates: Mapping[str, Gate] = FEATURE_GATES,
        max_in_unschedulable: float = 300.0,
        schedules: bool = True,
        plugins: KnownPlugins | None = None,
    ) -> None:
        """With an *elector* nothing is scheduled or written unless it leads.

        Without *schedules* no pod is its own: nothing is ever queued. See :meth:`run_extender`.

        *registry* gets the metrics, a new one by default. *max_in_unschedulable* is in seconds.
        *plugins* are those that *config* may enable; the in-tree ones by default.

        Raises ConfigError when the profiles or the extenders of *config* cannot be made.
        """
        self.registry = registry = registry or CollectorRegistry()
        self.metrics = SchedulerMetrics(self.registry)
        client.observer = self.metrics.requests
        self.plugins = plugins or KnownPlugins()
        self.cache = Cache()
        self.lanes = WriteLanes(clock=clock)
        self.listers = Listers()
        self.client = client
        self.clock = clock
        self.elector = elector
        self._delay_cache = config.delay_cache_until_active
        self.schedules = schedules
        """Whether this process is one that schedules, if only once it leads."""
        self.gates = gates
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

        def pod_lookup(key: str) -> Pod | None:
            return self.pods.store.get(key)

        writer = ApiWriter(
            writes,
            self.lanes,
            recorders=self._recorders,
            pod_lookup=pod_lookup,
            clock=clock,
            rng=rng,
            count_created_claim=self.metrics.created_claim,
        )
        self.background = writer.background
        nodes = self.cache.table
        under_way = PreemptionsUnderWay(pod_lookup)
        handle = Handle(
            nodes,
            listers=self.listers,
            clock=clock,
            rng=rng,
            pod=pod_lookup,
            is_preempting=under_way.is_preempting,
            nominated_node=lambda uid: self.queue.nominator.nominated_node(uid) or "",
            outcomes=self.metrics,
            writes=writer,
        )
        dice = random.Random(rng.random())  # of their own: what is measured must decide nothing
        self.live = LiveConfiguration(
            config,
            registry=self.plugins.registry,
            handle=handle,
            observe=lambda name: self.metrics.of_profile(name, clock=clock, rng=dice),
            clock=clock,
        )
        profiles = self.live.profiles
        self.extenders = build_extenders(
            config.extenders,
            clock=clock,
            observer=ExtenderMetrics(registry),
            may_write=elector.may_write if elector is not None else lambda: True,
        )
        self.queue = SchedulingQueue(
            clock=clock,
            sort_key=next(iter(profiles.values())).queue_sort.sort_key,
            pre_enqueue={name: profile.pre_enqueue for name, profile in profiles.items()},
            hints={
                name: [*profile.queueing_hints(), *self.extenders.queueing_hints()]
                for name, profile in profiles.items()
            },
            backoff=backoff_of(config),
            max_in_unschedulable=max_in_unschedulable,
            pod_lookup=pod_lookup,
            observe_hint=self.metrics.ran_hint,
            observers=self.live.observers,
            signature_profiles=signature_profiles(profiles),
        )

        timer = EventTimer(clock.monotonic, self.metrics.handled_event)
        reservations = Reservations()
        pod_handler = PodHandler(
            queue=self.queue,
            cache=self.cache,
            reservations=reservations,
            scheduler_names=profiles if schedules else (),
            timer=timer,
        )
        self.watches = Watches(
            client,
            self.listers,
            self.queue,
            pods=pod_handler,
            nodes=NodeHandler(queue=self.queue, cache=self.cache, timer=timer),
            extenders=self.extenders,
            timer=timer,
            clock=clock,
            rng=rng,
        )
        self.pods, self.nodes = self.watches.pods, self.watches.nodes
        self.preemptions = Preemptions(
            under_way=under_way,
            queue=self.queue,
            reservations=reservations,
            reporter=writer,
            evictor=writer,
            metrics=self.metrics,
            clock=clock,
        )
        self.failure_reporter = FailureReporter(
            queue=self.queue, pods=self.pods.store, reporter=writer, clock=clock
        )
        failures = FailureHandler(
            queue=self.queue,
            pods=self.pods.store,
            failure_reporter=self.failure_reporter,
            metrics=self.metrics,
            clock=clock,
        )
        finder = NodeFinder(nodes, select=rng.choice, extenders_decide=self.extenders.decide)
        self.scheduler = Scheduler(
            profiles=profiles,
            queue=self.queue,
            cache=self.cache,
            finder=finder,
            extender_round=ExtenderRound(
                self.extenders,
                finder=finder,
                cache=self.cache,
                nominator=self.queue.nominator,
                pods=self.pods.store,
                rng=rng,
            ),
            decisions=Decisions(capacity=DECISIONS_KEPT, monotonic=clock.monotonic),
            reservations=reservations,
            preemptions=self.preemptions,
            binding=BindingCycle(
                extenders=self.extenders,
                queue=self.queue,
                reservations=reservations,
                reporter=writer,
                failures=failures,
                metrics=self.metrics,
                clock=clock,
            ),
            failures=failures,
            failure_reporter=self.failure_reporter,
            metrics=self.metrics,
            clock=clock,
        )
        self._stuck_loop = StuckLoopResponder()
        self._watchdog = Watchdog(pause=self._stuck_loop.answer)
        self._stuck_loop.metrics.register(StuckLoopCollector(self._watchdog))
        self._connections: dict[str, ConnectionCounts] = {}
        self.staleness = Staleness(
            self.watches.reflectors, is_leading=lambda: self.is_leading, clock=clock
        )
        self.is_terminating = False
        self.is_synced = False
        """Whether the whole state of the cluster is known."""
        self.extender_service = ExtenderService(
            # whoever asks paces itself, and does not wait for long
            client if config.client_connection.limits_rate else client.unlimited(),
            profiles=profiles,
            cache=self.cache,
            queue=self.queue,
            pod_lookup=pod_lookup,
            listers=self.listers,
            clock=clock,
            rng=rng,
        )
        self._cache_check = CacheCheck(
            self.cache, nodes=self.nodes.store, pods=self.pods.store, clock=clock
        )
        for collector in (
            QueueCollector(self.queue, clock=clock),
            CacheCollector(self.cache.counts, drift=lambda: self._cache_check.differences),
            ProfileCollector(profiles.values()),
            ConfigurationCollector(self.live),
            TaskCollector({"binding": lambda: self.scheduler.binding_count}),
            BreakerCollector(self.extenders.breaker_states),
            LaneCollector(lambda: self.lanes.stats.items()),
            ReflectorCollector(self.watches.reflectors),
            StuckLoopCollector(self._watchdog),
            ConnectionCollector(self._connections),
        ):
            registry.register(collector)
        register_process(registry, gates=gates)

    def begin_termination(self) -> None:
        """Fail ``/readyz`` from now on: the process was told to end."""
        self.is_terminating = True

    def add_server(self, name: str, server: HttpServer | SecureServer) -> None:
        """Take note of a server that has started, as *name* in metrics.

        While the event loop is stuck, its probes are answered by a thread.
        """
        self._connections[name] = server.connections
        self._stuck_loop.listeners.append(server.listener)

    @property
    def is_leading(self) -> bool:
        """Whether this process schedules; always, where nobody is elected."""
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
        plugins = plugins or self.plugins
        self.live.replace(
            config,
            registry=plugins.registry,
            queue=self.queue,
            cache=self.cache,
            pods=self.pods.store if self.schedules else {},
            extender_hints=self.extenders.queueing_hints(),
        )
        self.plugins = plugins

    def count_reload(self, result: str) -> None:
        """Count a reload as ``success`` or ``failure``."""
        self.live.reloads[result] += 1

    def dump(self) -> None:
        """Log what cache and queue hold, and how the cache differs from what is watched."""
        dump(self.cache, self.queue, nodes=self.nodes.store.values(), pods=self.pods.store.values())

    async def run(self) -> None:
        """Watch, wait until the whole state is known, then schedule; for ever.

        With an elector, scheduling waits until it leads. While it does not, the caches are kept
        up to date all the same, unless the configuration has delayCacheUntilActive. Raises
        LeadershipLostError, alone or in an ExceptionGroup, when it led and does so no more.
        """
        elector = self.elector
        try:
            if elector is None:
                await self._watch(then=self._schedule)
            elif self._delay_cache:
                await elector.run(lambda: self._watch(then=self._schedule))
            else:
                await self._watch(then=lambda: elector.run(self._schedule))
        finally:
            await self.extenders.close()

    async def run_extender(self) -> None:
        """Watch and answer other schedulers (:attr:`extender_service`), for ever; schedule nothing.

        For a service that was made without *schedules*.
        """
        try:
            await self._watch(then=self.extender_service.run)
        finally:
            await self.extenders.close()

    async def _watch(self, *, then: Callable[[], Awaitable[None]]) -> None:
        """Keep the caches equal to the API server's state, and do *then* once they are."""

        async def begin() -> None:
            keep_objects()
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
            await self.watches.run(then=begin)

    async def _schedule(self) -> None:
        """Take pods from the queue and write what is decided, for ever."""
        eternal = {
            "write lanes": self.lanes.run,
            "queue flushers": self.queue.run_flushers,
            "preemptions": self.preemptions.run,
            "background work": self.background.run,
            "failure reporter": self.failure_reporter.run,
            "event recorders": self._recorders.run,
        }
        async with asyncio.TaskGroup() as tasks:
            for name, run in eternal.items():
                tasks.create_task(forever(name, run), name=name)
            await forever("scheduling", self.scheduler.run)

    @property
    def is_idle(self) -> bool:
        """Nothing to try, nothing being bound, nothing to write. Pods may wait, unschedulable."""
        counts = self.queue.pending_counts()
        return (
            self.pods.synced.is_set()
            and not counts["active"]
            and not counts["backoff"]
            and not self.queue.in_flight_counts()
            and not self.scheduler.binding_count
            and self.preemptions.is_idle
            and not len(self.queue.nominator)  # who is nominated waits for room being made
            and self.background.is_idle
            and not len(self.failure_reporter)
            and self.lanes.idle
        )
