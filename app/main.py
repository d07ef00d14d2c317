"""The composition root: the only place that constructs the scheduler and connects its parts."""

import asyncio
import logging
import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from app.cache.cache import Cache
from app.client.api_client import ApiClient
from app.client.discovery import Discovery
from app.client.events import EventRecorder
from app.client.lanes import WriteLanes
from app.clock import Clock
from app.config.types import KubeSchedulerConfiguration
from app.framework.listers import Listers
from app.framework.node_table import NodeTable
from app.framework.pod_info import PodInfo
from app.informer.reflector import Reflector
from app.objects.cluster import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from app.objects.node import Node
from app.objects.pod import Pod
from app.profile.build import build_profiles
from app.queue.backoff import Backoff
from app.queue.scheduling_queue import SchedulingQueue
from app.scheduler.api_writer import ApiWriter
from app.scheduler.decisions import Decisions
from app.scheduler.event_handlers import NodeHandler, PodHandler
from app.scheduler.find_node import NodeFinder
from app.scheduler.scheduler import Scheduler
from app.tasks import forever
from plugins.registry import IN_TREE

log = logging.getLogger(__name__)

UNFINISHED_PODS = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
"""Finished pods do not exist for the scheduler (spec §11.1)."""
DECISIONS_KEPT = 1_000


@dataclass(slots=True)
class PluginHandle:
    """The :class:`~app.framework.handle.Handle` of a running scheduler."""

    nodes: NodeTable
    clock: Clock
    rng: random.Random
    listers: Listers
    writer: ApiWriter

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await self.writer.bind(pod, node_name)


class SchedulerService:
    """A scheduler on one API server: made of parts here, run by :meth:`run`."""

    def __init__(
        self,
        client: ApiClient,
        config: KubeSchedulerConfiguration,
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """Raises ConfigError when the profiles of *config* cannot be made."""
        self.cache = Cache()
        self.lanes = WriteLanes(clock=clock)
        self.malformed = 0
        """Objects that could not be read and were skipped."""
        self.listers = Listers()
        self._client = client
        names = [profile.scheduler_name for profile in config.profiles]
        self._recorders = {
            name: EventRecorder(
                client,
                self.lanes,
                clock=clock,
                rng=rng,
                component=name,
                hostname=socket.gethostname(),
            )
            for name in names
        }
        writer = ApiWriter(client, self.lanes, recorders=self._recorders, clock=clock, rng=rng)
        nodes = self.cache.table
        profiles = build_profiles(
            config, IN_TREE, PluginHandle(nodes, clock, rng, self.listers, writer)
        )
        self.queue = SchedulingQueue(
            clock=clock,
            sort_key=next(iter(profiles.values())).queue_sort.sort_key,
            pre_enqueue={name: profile.pre_enqueue for name, profile in profiles.items()},
            hints={name: profile.queueing_hints() for name, profile in profiles.items()},
            backoff=Backoff(
                initial=float(config.pod_initial_backoff_seconds),
                maximum=float(config.pod_max_backoff_seconds),
            ),
            pod_lookup=lambda key: self.pods.store.get(key),
        )

        def watch(path: str, kind: type[Any], handler: Any, params: Mapping[str, str]) -> Any:
            return Reflector(
                client,
                path,
                decode=msgspec.json.Decoder(kind).decode,
                handler=handler,
                params=params,
                clock=clock,
                rng=rng,
                on_malformed=self._on_malformed,
            )

        pod_handler = PodHandler(queue=self.queue, cache=self.cache, scheduler_names=profiles)
        node_handler = NodeHandler(queue=self.queue, cache=self.cache)
        lists = self.listers
        self._listed: dict[str, Reflector[Any]] = {
            path: watch(path, kind, lister, {})
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
            )
        }
        self.pods: Reflector[Pod] = watch("/api/v1/pods", Pod, pod_handler, UNFINISHED_PODS)
        self.nodes: Reflector[Node] = watch("/api/v1/nodes", Node, node_handler, {})
        self.scheduler = Scheduler(
            profiles=profiles,
            queue=self.queue,
            cache=self.cache,
            finder=NodeFinder(nodes, select=rng.choice),
            pods=self.pods.store,
            reporter=writer,
            decisions=Decisions(capacity=DECISIONS_KEPT, monotonic=clock.monotonic),
            clock=clock,
        )

    async def run(self) -> None:
        """Watch, wait until the whole state is known, then schedule; for ever."""
        eternal = {
            "write lanes": self.lanes.run,
            "watch nodes": self.nodes.run,
            "watch pods": self.pods.run,
            "queue flushers": self.queue.run_flushers,
        }
        eternal |= {f"events of {name}": r.run for name, r in self._recorders.items()}
        listed = await self._served()
        eternal |= {f"watch {path}": reflector.run for path, reflector in listed.items()}
        async with asyncio.TaskGroup() as tasks:
            for name, run in eternal.items():
                tasks.create_task(forever(name, run), name=name)
            # Nodes first: a pod must not be refused for want of nodes that are on their way.
            for reflector in (*listed.values(), self.nodes):
                await reflector.synced.wait()
            await self.pods.synced.wait()
            log.info("caches are filled", extra=self.cache.counts())
            await forever("scheduling", self.scheduler.run)

    async def _served(self) -> dict[str, Reflector[Any]]:
        """Leave out kinds that the API server does not have: nothing can follow from them."""
        discovery = Discovery(self._client)
        served = {}
        for path, reflector in self._listed.items():
            if await discovery.serves(path):
                served[path] = reflector
            else:
                log.warning("the API server does not serve a kind", extra={"path": path})
        return served

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
            and self.lanes.idle
        )
