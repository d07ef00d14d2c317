"""The watches of a scheduler: one reflector per kind, and when all are synced."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from berth.client.api import Api
from berth.client.contact import Contact
from berth.client.discovery import Discovery
from berth.client.errors import ApiError
from berth.clock import Clock
from berth.extender.extenders import Extenders
from berth.framework.kind import NODES, PODS, Kind
from berth.framework.pod_reader import PodReader
from berth.informer.reflector import Reflector
from berth.informer.store import ResourceEventHandler
from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.objects.sharing import POD_PARTS, sharing
from berth.tasks import forever

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0
"""Seconds between requests to an API server that is not up yet, doubled each time."""


class Watches:
    """Keeps listers, cache and queue equal to what the API server has, while :meth:`run` runs."""

    def __init__(
        self,
        client: Api,
        handlers: Mapping[Kind[Any], ResourceEventHandler[Any]],
        *,
        known_pods: dict[str, Pod],
        read_pod: PodReader | None = None,
        contact: Contact,
        extenders: Extenders,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """Watch every kind of *handlers*, which include nodes and pods, and notify its handler.

        Nodes and pods keep all that *extenders* are shown. *contact* ends pauses after an outage.
        Pods are kept in *known_pods*, as *read_pod* returns them.
        """
        self.malformed = 0
        """Objects that could not be read and were skipped."""
        self._client = client
        self._clock = clock
        decoders = {NODES: extenders.decode_node, PODS: sharing(extenders.decode_pod, POD_PARTS)}
        readers = {PODS: read_pod} if read_pod is not None else {}
        watched: dict[Kind[Any], Reflector[Any]] = {
            kind: Reflector(
                client,
                kind.path,
                decode=decoders.get(kind, kind.decode),
                decode_partly=kind.decode_partly,
                transform=readers.get(kind),
                handler=handler,
                params=kind.params,
                clock=clock,
                rng=rng,
                on_malformed=self._on_malformed,
                contact=contact,
                objects=known_pods if kind is PODS else None,
            )
            for kind, handler in handlers.items()
        }
        self.nodes: Reflector[Node] = watched[NODES]
        self.pods: Reflector[Pod] = watched[PODS]
        self.reflectors: Mapping[str, Reflector[Any]] = {
            kind.path: reflector for kind, reflector in watched.items()
        }
        """All of them, by path."""

    async def run(self, *, then: Callable[[], Awaitable[None]]) -> None:
        """Watch, and run *then*, which never returns, once all stores are synced."""
        served = await self._served()
        async with asyncio.TaskGroup() as tasks:
            for path, reflector in served.items():
                name = f"watch {path}"
                tasks.create_task(forever(name, reflector.run), name=name)
            for reflector in served.values():
                await reflector.synced.wait()
            await then()

    async def _served(self) -> dict[str, Reflector[Any]]:
        """Leave out kinds that the API server does not serve."""
        discovery = Discovery(self._client)
        served = {}
        for path, reflector in self.reflectors.items():
            if path in (NODES.path, PODS.path) or await self._is_served(path, discovery):
                served[path] = reflector
            else:
                log.warning("the API server does not serve a kind", extra={"path": path})
        return served

    async def _is_served(self, path: str, discovery: Discovery) -> bool:
        """Ask until the API server answers: it may be starting as well.

        A refusal does not end the process either: tokens are renewed and rights granted meanwhile.
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
