"""The composition root: the only place that constructs the scheduler and connects its parts."""

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from app.cache.cache import Cache
from app.client.api_client import ApiClient
from app.client.discovery import Discovery
from app.client.errors import ServerError, TooManyRequestsError, UnavailableError
from app.client.events import EventRecorder
from app.client.lanes import WriteLanes
from app.client.resource_claims import ResourceClaimApi
from app.clock import Clock
from app.config.types import KubeSchedulerConfiguration
from app.explain.explainer import Explainer
from app.framework.devices.commitment import ClaimWriter
from app.framework.listers import Listers
from app.framework.node_table import NodeTable
from app.framework.pod_info import PodInfo
from app.informer.reflector import Reflector
from app.leaderelection.candidate import Timing
from app.leaderelection.elector import LeaderElector
from app.leaderelection.lease_lock import LeaseLock
from app.memory import keep_objects
from app.metrics.leader_metrics import LeaderMetrics
from app.metrics.loop_lag import measure_lag
from app.metrics.owners import (
    CacheCollector,
    LaneCollector,
    ProfileCollector,
    QueueCollector,
    ReflectorCollector,
    TaskCollector,
)
from app.metrics.process import register_process
from app.metrics.scheduler_metrics import SchedulerMetrics
from app.objects.cluster import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from app.objects.node import Node
from app.objects.pod import Pod
from app.objects.policy import PodDisruptionBudget
from app.objects.storage import PersistentVolume, PersistentVolumeClaim
from app.profile.build import build_profiles
from app.queue.backoff import Backoff
from app.queue.scheduling_queue import SchedulingQueue
from app.scheduler.api_writer import ApiWriter
from app.scheduler.background import Background
from app.scheduler.claim import Claims
from app.scheduler.decisions import Decisions
from app.scheduler.device_watches import device_watches
from app.scheduler.event_handlers import NodeHandler, PodHandler
from app.scheduler.find_node import NodeFinder
from app.scheduler.preemption import Preemptions, PreemptionsUnderWay
from app.scheduler.scheduler import Scheduler
from app.scheduler.storage_watches import storage_watches
from app.scheduler.timed_handler import EventTimer, TimedHandler
from app.server.application import make_application
from app.server.metrics_endpoints import metrics_endpoints
from app.tasks import forever
from plugins.registry import IN_TREE

log = logging.getLogger(__name__)

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
UNFINISHED_PODS = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
"""Finished pods do not exist for the scheduler (spec §11.1)."""
DECISIONS_KEPT = 1_000
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0
"""Seconds between questions to an API server that is not up yet, doubled each time."""


@dataclass(slots=True)
class PluginHandle:
    """The :class:`~app.framework.handle.Handle` of a running scheduler."""

    nodes: NodeTable
    clock: Clock
    rng: random.Random
    listers: Listers
    writer: ApiWriter
    pod: Callable[[str], Pod | None]
    is_preempting: Callable[[str], bool]
    claim_writer: ClaimWriter
    background: Background

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self.background.start(name, work)

    def event(self, pod: Pod, *, type: str, reason: str, action: str, note: str) -> None:
        profile = pod.spec.scheduler_name
        self.writer.event(pod, profile=profile, type=type, reason=reason, action=action, note=note)

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        await self.writer.patch_pod_status(pod, status)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await self.writer.bind(pod, node_name)

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        return await self.writer.update_persistent_volume(volume)

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        return await self.writer.update_persistent_volume_claim(claim)


def make_elector(
    client: ApiClient,
    config: KubeSchedulerConfiguration,
    *,
    registry: CollectorRegistry,
    clock: Clock,
    rng: random.Random,
) -> LeaderElector:
    """Make the elector of this process (spec §10); its *client* should be used for nothing else.

    Otherwise renewals would wait behind the scheduler's requests for the rate limit.
    """
    election, timing = config.leader_election, Timing.of(config.leader_election)
    lock = LeaseLock(
        client,
        namespace=election.resource_namespace,
        name=election.resource_name,
        timeout=timing.request_timeout,
        component=config.profiles[0].scheduler_name,
        clock=clock,
    )
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    metrics = LeaderMetrics(election.resource_name, registry)
    return LeaderElector(
        lock,
        identity=identity,
        timing=timing,
        clock=clock,
        rng=rng,
        on_master=metrics.on_master,
        on_slow_path=metrics.on_slow_path,
    )


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
    ) -> None:
        """With an *elector* nothing is scheduled or written unless it leads.

        *registry* gets the metrics, a new one by default.

        Raises ConfigError when the profiles of *config* cannot be made.
        """
        self.registry = registry = registry or CollectorRegistry()
        self.metrics = SchedulerMetrics(self.registry)
        client.observer = self.metrics.requests
        self.cache = Cache()
        self.lanes = WriteLanes(clock=clock)
        self.malformed = 0
        """Objects that could not be read and were skipped."""
        self.listers = Listers()
        self._client = client
        self._clock = clock
        self._elector = elector
        self._delay_cache = config.delay_cache_until_active
        writes = client if elector is None else client.fenced(elector.may_write)
        names = [profile.scheduler_name for profile in config.profiles]
        self._recorders = {
            name: EventRecorder(
                writes,
                self.lanes,
                clock=clock,
                rng=rng,
                component=name,
                hostname=socket.gethostname(),
            )
            for name in names
        }
        writer = ApiWriter(writes, self.lanes, recorders=self._recorders, clock=clock, rng=rng)
        nodes = self.cache.table

        def pod_lookup(key: str) -> Pod | None:
            return self.pods.store.get(key)

        under_way = PreemptionsUnderWay(pod_lookup)
        self.background = Background()
        handle = PluginHandle(
            nodes,
            clock,
            rng,
            self.listers,
            writer,
            pod_lookup,
            under_way.is_preempting,
            ResourceClaimApi(writes, self.lanes),
            self.background,
        )
        dice = random.Random(rng.random())  # of their own: what is measured must decide nothing
        observers = {name: self.metrics.of_profile(name, clock=clock, rng=dice) for name in names}
        profiles = build_profiles(config, IN_TREE, handle, observers=observers)
        self.queue = SchedulingQueue(
            clock=clock,
            sort_key=next(iter(profiles.values())).queue_sort.sort_key,
            pre_enqueue={name: profile.pre_enqueue for name, profile in profiles.items()},
            hints={name: profile.queueing_hints() for name, profile in profiles.items()},
            backoff=Backoff(
                initial=float(config.pod_initial_backoff_seconds),
                maximum=float(config.pod_max_backoff_seconds),
            ),
            pod_lookup=pod_lookup,
            observe_hint=self.metrics.ran_hint,
            observers=observers,
        )

        def watch(
            path: str,
            decode: Callable[[bytes], Any],
            handler: Any,
            params: Mapping[str, str] | None = None,
        ) -> Any:
            return Reflector(
                client,
                path,
                decode=decode,
                handler=handler,
                params=params,
                clock=clock,
                rng=rng,
                on_malformed=self._on_malformed,
            )

        timer = EventTimer(clock.monotonic, self.metrics.handled_event)
        claims = Claims()
        pod_handler = PodHandler(
            queue=self.queue,
            cache=self.cache,
            claims=claims,
            scheduler_names=profiles,
            timer=timer,
        )
        node_handler = NodeHandler(queue=self.queue, cache=self.cache, timer=timer)
        lists = self.listers
        self._listed: dict[str, Reflector[Any]] = {
            path: watch(path, msgspec.json.Decoder(kind).decode, lister)
            for path, kind, lister in (
                ("/api/v1/namespaces", Namespace, lists.namespaces),
                ("/api/v1/services", Service, lists.services),
                (
                    "/api/v1/replicationcontrollers",
                    ReplicationController,
                    lists.replication_controllers,
                ),
                ("/apis/apps/v1/replicasets", ReplicaSet, lists.replica_sets),
                ("/apis/apps/v1/statefulsets", StatefulSet, lists.stateful_sets),
                (
                    "/apis/policy/v1/poddisruptionbudgets",
                    PodDisruptionBudget,
                    lists.pod_disruption_budgets,
                ),
            )
        }
        self._listed |= {
            path: watch(path, decode, TimedHandler(handler, resource=resource, timer=timer))
            for path, decode, handler, resource in (
                *storage_watches(lists, self.queue),
                *device_watches(lists, self.queue),
            )
        }
        self.pods: Reflector[Pod] = watch(
            PODS, msgspec.json.Decoder(Pod).decode, pod_handler, UNFINISHED_PODS
        )
        self.nodes: Reflector[Node] = watch(NODES, msgspec.json.Decoder(Node).decode, node_handler)
        self.preemptions = Preemptions(
            under_way=under_way,
            queue=self.queue,
            claims=claims,
            reporter=writer,
            evictor=writer,
            metrics=self.metrics,
            clock=clock,
        )
        self.scheduler = Scheduler(
            profiles=profiles,
            queue=self.queue,
            cache=self.cache,
            finder=NodeFinder(nodes, select=rng.choice),
            pods=self.pods.store,
            reporter=writer,
            decisions=Decisions(capacity=DECISIONS_KEPT, monotonic=clock.monotonic),
            claims=claims,
            preemptions=self.preemptions,
            metrics=self.metrics,
            clock=clock,
        )
        self._explainer = Explainer(self.scheduler, pods=self.pods.store, clock=clock)
        for collector in (
            QueueCollector(self.queue, clock=clock),
            CacheCollector(self.cache.counts),
            ProfileCollector(profiles.values()),
            TaskCollector({"binding": lambda: self.scheduler.binding_count}),
            LaneCollector(lambda: self.lanes.stats.items()),
            ReflectorCollector({**self._listed, NODES: self.nodes, PODS: self.pods}),
        ):
            registry.register(collector)
        register_process(registry)

    def application(self) -> FastAPI:
        """Return the HTTP endpoints; to be served on the event loop that runs the scheduler."""
        application = make_application(self._explainer, is_ready=self.pods.synced.is_set)
        elector = self._elector
        application.include_router(
            metrics_endpoints(
                self.registry,
                pods=self.pods.store.values,
                is_leading=lambda: elector is None or elector.is_leader,
            )
        )
        return application

    async def run(self) -> None:
        """Watch, wait until the whole state is known, then schedule; for ever.

        With an elector, scheduling waits until it leads. While it does not, the caches are kept
        up to date all the same, unless the configuration has delayCacheUntilActive. Raises
        LeadershipLostError, alone or in an ExceptionGroup, when it led and does so no more.
        """
        elector = self._elector
        if elector is None:
            await self._watch(then=self._schedule)
        elif self._delay_cache:
            await elector.run(lambda: self._watch(then=self._schedule))
        else:
            await self._watch(then=lambda: elector.run(self._schedule))

    async def _watch(self, *, then: Callable[[], Awaitable[None]]) -> None:
        """Keep the caches equal to the API server's state, and do *then* once they are."""
        listed = await self._served()
        watches: dict[str, Callable[[], Awaitable[None]]] = {
            "watch nodes": self.nodes.run,
            "watch pods": self.pods.run,
            "event loop lag": partial(measure_lag, self.metrics, clock=self._clock),
            **{f"watch {path}": reflector.run for path, reflector in listed.items()},
        }
        async with asyncio.TaskGroup() as tasks:
            for name, run in watches.items():
                tasks.create_task(forever(name, run), name=name)
            # Nodes first: a pod must not be refused for want of nodes that are on their way.
            for reflector in (*listed.values(), self.nodes):
                await reflector.synced.wait()
            await self.pods.synced.wait()
            keep_objects()
            log.info("caches are filled", extra=self.cache.counts())
            await then()

    async def _schedule(self) -> None:
        """Take pods from the queue and write what is decided, for ever."""
        eternal = {
            "write lanes": self.lanes.run,
            "queue flushers": self.queue.run_flushers,
            "preemptions": self.preemptions.run,
            "background work": self.background.run,
            **{f"events of {name}": r.run for name, r in self._recorders.items()},
        }
        async with asyncio.TaskGroup() as tasks:
            for name, run in eternal.items():
                tasks.create_task(forever(name, run), name=name)
            await forever("scheduling", self.scheduler.run)

    async def _served(self) -> dict[str, Reflector[Any]]:
        """Leave out kinds that the API server does not have: nothing can follow from them."""
        discovery = Discovery(self._client)
        served = {}
        for path, reflector in self._listed.items():
            if await self._is_served(path, discovery):
                served[path] = reflector
            else:
                log.warning("the API server does not serve a kind", extra={"path": path})
        return served

    async def _is_served(self, path: str, discovery: Discovery) -> bool:
        """Ask until the API server answers: it may be coming up as well."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await discovery.serves(path)
            except (UnavailableError, ServerError, TooManyRequestsError) as exc:
                log.warning("waiting for the API server", extra={"error": str(exc)})
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _on_malformed(self, key: str, _data: bytes, error: Exception) -> None:
        self.malformed += 1
        log.error("object skipped, it cannot be read", extra={"object": key, "error": str(error)})

    @property
    def is_idle(self) -> bool:
        """Nothing to try, nothing being bound, nothing to write. Pods may wait, unschedulable."""
        counts = self.queue.pending_counts()
        return (
            self.pods.synced.is_set()
            and not counts["active"]
            and not counts["backoff"]
            and not self.scheduler.binding_count
            and self.preemptions.is_idle
            and not len(self.queue.nominator)  # who is nominated waits for room being made
            and self.background.is_idle
            and self.lanes.idle
        )
