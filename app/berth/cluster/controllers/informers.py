"""One watch per kind, shared by all controllers; which kinds there are follows the registry."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, cast

from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import LeaseView, NodeView
from berth.cluster.kinds.registry import Registry, collected
from berth.cluster.object_views import Meta, ObjectView
from berth.cluster.pods.controllers import PodView
from berth.cluster.reading import completing
from berth.cluster.resources import ResourceType
from berth.kube.client.api import Api
from berth.kube.informer.reflector import Reflector
from berth.runtime.clock import Clock
from berth.runtime.tasks import forever

log = logging.getLogger(__name__)

T = TypeVar("T", bound=ObjectView)

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""The media type of objects of which nothing but the metadata is of interest."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind whose objects own, or are owned, and its objects."""

    resource: ResourceType
    table: Table[Any]
    versions: frozenset[str] = frozenset()
    """The ``apiVersion`` of each form in which they are served; empty: that of *resource*."""

    @property
    def names(self) -> Iterator[tuple[str, str]]:
        """``apiVersion`` and ``kind`` by which references name them."""
        versions = self.versions or (self.resource.group_version,)
        return ((version, self.resource.kind) for version in versions)

    def path(self, meta: Meta) -> str:
        return self.path_of(meta.namespace, meta.name)

    def path_of(self, namespace: str, name: str) -> str:
        return self.resource.path_of(namespace, name)


@dataclass(frozen=True, slots=True)
class _Watched:
    kind: Kind
    reflector: Reflector[Any]
    task: asyncio.Task[None]


class SharedInformers:
    """Tables of all kinds that the garbage collector knows, as watches fill them.

    A kind that a controller asked for with :meth:`table` is read as its view says; of all others
    only the metadata is. Kinds that the registry gets are watched, those that it loses are dropped.
    """

    def __init__(
        self,
        client: Api,
        metadata_client: Api,
        registry: Registry,
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """*metadata_client* asks for METADATA_ONLY."""
        self._client = client
        self._metadata_client = metadata_client
        self._registry = registry
        self._clock = clock
        self._rng = rng
        self._views: dict[str, type[ObjectView]] = {}
        self._tables: dict[str, Table[Any]] = {}
        self._watched: dict[str, _Watched] = {}
        self._changed = asyncio.Event()
        self._started = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        registry.listen(self._changed.set)

    def table(self, storage_key: str, view: type[T]) -> Table[T]:
        """Return the objects of a kind, which is to be read as *view*.

        To be called before :meth:`run`. Raises ValueError when somebody reads it in another way.
        """
        if self._views.setdefault(storage_key, view) is not view:
            raise ValueError(f"{storage_key} is read as {self._views[storage_key].__name__}")
        return cast("Table[T]", self._tables.setdefault(storage_key, Table()))

    def listen(self, listener: Callable[[], None]) -> None:
        """Have *listener* called when :attr:`kinds` may be others than before."""
        self._listeners.append(listener)

    @property
    def kinds(self) -> Iterator[Kind]:
        """The kinds that are watched."""
        return (each.kind for each in self._watched.values())

    async def synced(self) -> None:
        """Return when the tables of the kinds that there were at first are complete."""
        await self._started.wait()
        for watched in list(self._watched.values()):
            await watched.reflector.synced.wait()

    async def run(self) -> None:
        """Watch; ends only by cancellation."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                self._follow(group)
                self._started.set()
                await self._changed.wait()

    def _follow(self, group: asyncio.TaskGroup) -> None:
        """Watch what the registry has."""
        served = {each.storage_key: each for each in collected(self._registry)}
        versions: dict[str, set[str]] = {}
        for each in self._registry:
            versions.setdefault(each.storage_key, set()).add(each.group_version)
        gone = [
            key
            for key, watched in self._watched.items()
            if key not in served
            or served[key].collection_path() != watched.kind.resource.collection_path()
        ]
        for key in gone:
            self._watched.pop(key).task.cancel()
            if key not in self._views:
                del self._tables[key]
        for key, resource in served.items():
            table = self._tables.setdefault(key, Table())
            kind = Kind(resource, table, frozenset(versions[key]))
            watched = self._watched.get(key)
            if watched is not None:
                self._watched[key] = replace(watched, kind=kind)
                continue
            reflector = self._reflector(kind)
            name = f"controllers watch {key}"
            task = group.create_task(forever(name, reflector.run), name=name)
            self._watched[key] = _Watched(kind, reflector, task)
        for listener in self._listeners:
            listener()

    def _reflector(self, kind: Kind) -> Reflector[Any]:
        view = self._views.get(kind.resource.storage_key, ObjectView)
        return Reflector(
            self._metadata_client if view is ObjectView else self._client,
            kind.resource.collection_path(),
            decode=reader(kind.resource, view),
            handler=kind.table,
            clock=self._clock,
            rng=self._rng,
            on_malformed=_log_malformed,
        )


def reader(resource: ResourceType, view: type[T]) -> Callable[[bytes], T]:
    """Return what reads an object of a kind for controllers, as a client in Go reads it.

    Most views carry parts along as they are; so that plans may rely on their types, these are
    checked against the schema.
    """
    decode = view.decoder()
    if view is ObjectView:
        return decode
    return completing(resource.schema, decode, is_typed=issubclass(view, TYPED))


TYPED: Final = (LeaseView, NodeView, PodView)
"""Views of many objects, which say the types of all that they read."""


def _log_malformed(key: str, _raw: bytes, error: Exception) -> None:
    log.warning("object cannot be read", extra={"key": key, "error": str(error)})
