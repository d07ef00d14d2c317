"""The watches of a scheduler: one reflector per kind, the order in which they must be full."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from berth.client.api_client import ApiClient
from berth.client.discovery import Discovery
from berth.client.errors import ApiError
from berth.clock import Clock
from berth.extender.extenders import Extenders
from berth.framework.listers import Listers
from berth.informer.reflector import Reflector
from berth.objects.cluster import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.objects.policy import PodDisruptionBudget
from berth.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.device_watches import device_watches
from berth.scheduler.event_handlers import NodeHandler, PodHandler
from berth.scheduler.partial_objects import partly
from berth.scheduler.storage_watches import storage_watches
from berth.scheduler.timed_handler import EventTimer, TimedHandler
from berth.tasks import forever

log = logging.getLogger(__name__)

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
UNFINISHED_PODS: Final = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
"""Finished pods do not exist for the scheduler (spec §11.1)."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0
"""Seconds between questions to an API server that is not up yet, doubled each time."""


class Watches:
    """Keeps listers, cache and queue equal to what the API server has, while :meth:`run` runs."""

    def __init__(
        self,
        client: ApiClient,
        listers: Listers,
        queue: SchedulingQueue,
        *,
        pods: PodHandler,
        known_pods: dict[str, Pod],
        nodes: NodeHandler,
        extenders: Extenders,
        timer: EventTimer,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """*pods* and *nodes* are told of theirs, of which all is kept that *extenders* are shown.

        *known_pods* is where the pods are kept; *timer* measures the other handlers.
        """
        self.malformed = 0
        """Objects that could not be read and were skipped."""
        self._client = client
        self._clock = clock

        def watch(
            path: str,
            kind: type[msgspec.Struct],
            decode: Callable[[bytes], Any],
            handler: Any,
            params: Mapping[str, str] | None = None,
            objects: dict[str, Any] | None = None,
        ) -> Any:
            return Reflector(
                client,
                path,
                decode=decode,
                decode_partly=partly(kind),
                handler=handler,
                params=params,
                clock=clock,
                rng=rng,
                on_malformed=self._on_malformed,
                contact=client.contact,
                objects=objects,
            )

        self._listed: dict[str, Reflector[Any]] = {
            path: watch(path, kind, msgspec.json.Decoder(kind).decode, lister)
            for path, kind, lister in (
                ("/api/v1/namespaces", Namespace, listers.namespaces),
                ("/api/v1/services", Service, listers.services),
                (
                    "/api/v1/replicationcontrollers",
                    ReplicationController,
                    listers.replication_controllers,
                ),
                ("/apis/apps/v1/replicasets", ReplicaSet, listers.replica_sets),
                ("/apis/apps/v1/statefulsets", StatefulSet, listers.stateful_sets),
                (
                    "/apis/policy/v1/poddisruptionbudgets",
                    PodDisruptionBudget,
                    listers.pod_disruption_budgets,
                ),
            )
        }
        self._listed |= {
            path: watch(path, kind, decode, TimedHandler(handler, resource=resource, timer=timer))
            for path, kind, decode, handler, resource in (
                *storage_watches(listers, queue),
                *device_watches(listers, queue),
            )
        }
        self.pods: Reflector[Pod] = watch(
            PODS, Pod, extenders.decode_pod, pods, UNFINISHED_PODS, known_pods
        )
        self.nodes: Reflector[Node] = watch(NODES, Node, extenders.decode_node, nodes)
        self.reflectors: Mapping[str, Reflector[Any]] = {
            **self._listed,
            NODES: self.nodes,
            PODS: self.pods,
        }
        """All of them, by path."""

    async def run(self, *, then: Callable[[], Awaitable[None]]) -> None:
        """Watch, and do *then*, which never returns, once everything is known."""
        listed = await self._served()
        runs = {path: reflector.run for path, reflector in listed.items()}
        async with asyncio.TaskGroup() as tasks:
            for path, run in {NODES: self.nodes.run, PODS: self.pods.run, **runs}.items():
                tasks.create_task(forever(f"watch {path}", run), name=f"watch {path}")
            # Nodes first: a pod must not be refused for want of nodes that are on their way.
            for reflector in (*listed.values(), self.nodes):
                await reflector.synced.wait()
            await self.pods.synced.wait()
            await then()

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
        """Ask until the API server answers: it may be coming up as well.

        Nor does a refusal end the process: tokens are renewed and rights granted while it waits.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                return await discovery.serves(path)
            except ApiError as exc:
                log.warning("waiting for the API server", extra={"error": str(exc)})
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _on_malformed(self, key: str, _data: bytes, error: Exception) -> None:
        self.malformed += 1
        log.error("object skipped, it cannot be read", extra={"object": key, "error": str(error)})
