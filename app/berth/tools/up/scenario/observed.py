"""The observed cluster: objects of some kinds as the API has them, kept up to date."""

import asyncio
import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from berth.cluster.resources import Object
from berth.kube.client.api import Api
from berth.kube.informer.reflector import Reflector
from berth.kube.informer.store import ResourceEventHandler
from berth.runtime.clock import Clock
from berth.runtime.tasks import Start
from berth.tools.up.scenario.references import resource_of

ALWAYS_SEEN: Final = ("Pod", "Node", "Event")

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class _Handler:
    """Counts the changes of a kind, tells its followers of them, and wakes who waits for one."""

    def __init__(self) -> None:
        self.changes = 0
        self.waiters: dict[asyncio.Event, None] = {}
        """In the order in which they came."""
        self.followers: list[ResourceEventHandler[Object]] = []

    def on_add(self, obj: Object, /) -> None:
        self._note()
        for follower in self.followers:
            follower.on_add(obj)

    def on_update(self, old: Object, new: Object, /) -> None:
        self._note()
        for follower in self.followers:
            follower.on_update(old, new)

    def on_delete(self, obj: Object, /) -> None:
        self._note()
        for follower in self.followers:
            follower.on_delete(obj)

    def _note(self) -> None:
        self.changes += 1
        for waiter in self.waiters:
            waiter.set()


class Observed:
    """Objects by kind, see :meth:`of`."""

    def __init__(
        self, api: Api, kinds: Iterable[str], *, release: str, clock: Clock, rng: random.Random
    ) -> None:
        """*release* of Kubernetes is what the server of *api* is of."""
        self._clock = clock
        kinds = dict.fromkeys((*ALWAYS_SEEN, *kinds))
        self._handlers = {kind: _Handler() for kind in kinds}
        self._reflectors = {
            kind: Reflector(
                api,
                resource_of(kind, release).collection_path(),
                decode=_decode,
                handler=self._handlers[kind],
                clock=clock,
                rng=rng,
                on_malformed=_must_not_happen,
            )
            for kind in kinds
        }

    async def run(self, start: Start) -> None:
        """Have *start* begin to watch; return when everything is seen."""
        for kind, reflector in self._reflectors.items():
            start(f"scenario sees {kind}", reflector.run)
        for reflector in self._reflectors.values():
            await reflector.synced.wait()

    @property
    def kinds(self) -> Collection[str]:
        """All that are seen."""
        return self._handlers.keys()

    def of(self, kind: str) -> Mapping[str, Object]:
        """Return the objects of *kind*, by ``namespace/name``."""
        return self._reflectors[kind].store

    def follow(self, kind: str, follower: ResourceEventHandler[Object]) -> None:
        """Tell *follower* of every change of objects of *kind* from now on."""
        self._handlers[kind].followers.append(follower)

    def version(self, kinds: Collection[str]) -> int:
        """Return how much has changed so far of *kinds*."""
        return sum(self._handlers[kind].changes for kind in kinds)

    async def changed(
        self, kinds: Collection[str], *, after: int, seconds: float = math.inf
    ) -> None:
        """Return when :meth:`version` is beyond *after*, or after *seconds*."""
        if self.version(kinds) != after:
            return
        happened = asyncio.Event()
        sleeping = None
        if seconds < math.inf:
            sleeping = asyncio.create_task(self._clock.sleep(seconds), name="scenario sleeps")
            sleeping.add_done_callback(lambda _: happened.set())
        for kind in kinds:
            self._handlers[kind].waiters[happened] = None
        try:
            await happened.wait()
        finally:
            for kind in kinds:
                self._handlers[kind].waiters.pop(happened, None)
            if sleeping is not None:
                sleeping.cancel()

    def last_events(self, count: int) -> Iterator[str]:
        """Yield the last events as lines, the oldest of them first."""
        events = sorted(self.of("Event").values(), key=_when)[-count:]
        for event in events:
            about = event.get("involvedObject") or {}
            times = event.get("count") or (event.get("series") or {}).get("count") or 1
            repeated = f" ({times} times)" if times > 1 else ""
            yield (
                f"{_when(event)[0][11:19]} {event.get('reason')}"
                f" {about.get('kind')}/{about.get('name')}: {event.get('message')}{repeated}"
            )


def _when(event: Object) -> tuple[str, int]:
    series = event.get("series") or {}
    when = (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"]["creationTimestamp"]
    )
    return str(when), int(event["metadata"]["resourceVersion"])


def _must_not_happen(key: str, _raw: bytes, error: Exception) -> None:
    raise RuntimeError(f"{key} cannot be read") from error
