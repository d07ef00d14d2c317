"""The watches of a scheduler: one reflector per kind, and when all are synced."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeVar

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.contact import Contact
from berth.kube.client.discovery import Discovery
from berth.kube.client.errors import ApiError
from berth.kube.informer.reflector import MayWait, Reflector
from berth.kube.informer.store import ResourceEventHandler
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.shared_parts import PodDecoder, PodOutline
from berth.runtime.clock import Clock
from berth.runtime.release import RELEASE
from berth.runtime.tasks import forever
from berth.scheduler.config.kube_features import FEATURE_GATES
from berth.scheduler.extender.extenders import Extenders
from berth.scheduler.framework.kind import NODES, PODS, Kind
from berth.scheduler.framework.pod_reader import PodReader

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0
"""Seconds between requests to an API server that is not up yet, doubled each time."""

LOOK_SECONDS = 30.0
"""Between two looks for a kind that the API server did not serve at the start."""


def _runtime_config(kind: Kind[Any]) -> str:
    """Return the flags of kube-apiserver, of which a release knows one."""
    return " or ".join(
        f"--runtime-config={path.removeprefix('/apis/').rpartition('/')[0]}=true"
        for path in kind.paths
    )


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
        pod_may_wait: MayWait | None = None,
        pods_together: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Watch every kind of *handlers*, which include nodes and pods, and notify its handler.

        Nodes and pods keep all that *extenders* are shown. *contact* ends pauses after an outage.
        Pods are kept in *known_pods*, as *read_pod* returns them. What *pod_may_wait* may be told
        late, in blocks of *pods_together*.
        """
        self.malformed = 0
        """Objects that could not be read and were skipped."""
        self._client = client
        self._clock = clock
        decoders = {NODES: extenders.decode_node, PODS: extenders.decode_pod}
        readers = {PODS: read_pod} if read_pod is not None else {}
        watched: dict[Kind[Any], Reflector[Any]] = {
            kind: Reflector(
                client,
                kind.path,
                decode=self._converted(kind, decoders.get(kind, kind.decode)),
                outline=PodOutline if isinstance(decoders.get(kind), PodDecoder) else None,
                decode_partly=self._converted(kind, kind.decode_partly),
                transform=self._with_version(kind)
                if kind.versions and kind.keeps_version
                else readers.get(kind),
                handler=handler,
                params=kind.params,
                clock=clock,
                rng=rng,
                on_malformed=self._on_malformed,
                contact=contact,
                objects=known_pods if kind is PODS else None,
                may_wait=pod_may_wait if kind is PODS else None,
                together=pods_together,
            )
            for kind, handler in handlers.items()
        }
        self._watched = watched
        self.nodes: Reflector[Node] = watched[NODES]
        self.pods: Reflector[Pod] = watched[PODS]
        self.reflectors: Mapping[str, Reflector[Any]] = {
            kind.path: reflector for kind, reflector in watched.items()
        }
        """All of them, by the path of their kind."""

    async def run(self, *, then: Callable[[], Awaitable[None]]) -> None:
        """Watch, and run *then*, which never returns, once all stores are synced.

        Kinds that the API server does not serve are left out; those of feature gates are watched
        as soon as it does.
        """
        served = await self._served()
        async with asyncio.TaskGroup() as tasks:
            for kind in served:
                name = f"watch {kind.path}"
                tasks.create_task(forever(name, self._watched[kind].run), name=name)
            for kind in self._watched.keys() - served:
                if kind.feature:
                    name = f"look for {kind.path}"
                    look = partial(self._watch_when_served, kind)
                    tasks.create_task(forever(name, look), name=name)
            for kind in served:
                await self._watched[kind].synced.wait()
            await then()

    async def _served(self) -> list[Kind[Any]]:
        """Return the kinds that the API server serves; say which it does not."""
        discovery = Discovery(self._client)
        served = []
        for kind in self._watched:
            if kind in (NODES, PODS) or await self._find(kind, discovery):
                served.append(kind)
            elif kind.feature in FEATURE_GATES[RELEASE]:
                log.warning(
                    "the API server does not serve a kind of a feature gate, which needs both"
                    " flags of kube-apiserver; looking for it again and again",
                    extra={
                        "kind": kind.name,
                        "until_then": kind.without,
                        "feature_gates": f"--feature-gates={kind.feature}=true",
                        "runtime_config": _runtime_config(kind),
                    },
                )
            else:
                without = {"therefore": kind.without} if kind.without else {}
                log.warning(
                    "the API server does not serve a kind", extra={"path": kind.path, **without}
                )
        return served

    async def _watch_when_served(self, kind: Kind[Any]) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            if await self._find(kind, Discovery(self._client)):
                log.info("the API server serves a kind now", extra={"kind": kind.name})
                await self._watched[kind].run()

    async def _find(self, kind: Kind[Any], discovery: Discovery) -> bool:
        """Have the reflector of *kind* watch where the API server has it; False if it has not."""
        for path in kind.paths:
            if await self._is_served(path, discovery):
                self._watched[kind].path = path
                return True
        return False

    def _converted(self, kind: Kind[Any], decode: Callable[..., T]) -> Callable[..., T]:
        """Return what decodes JSON of the version that the API server has of *kind*."""
        if not kind.conversions:
            return decode

        def decode_converted(data: bytes, *last: Any) -> T:
            convert = kind.conversion(self._watched[kind].path)
            if convert is not None:
                data = msgspec.json.encode(convert(msgspec.json.decode(data)))
            return decode(data, *last)

        return decode_converted

    def _with_version(self, kind: Kind[Any]) -> Callable[[Any], Any]:
        """Return what has an object say its version, which those of a list do not."""

        def with_version(obj: Any) -> Any:
            if obj.api_version:
                return obj
            prefix = self._watched[kind].path.rpartition("/")[0]
            return msgspec.structs.replace(obj, api_version=prefix.removeprefix("/apis/"))

        return with_version

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
