"""Recorders, which controllers and kubelets call, and the one task that writes for them."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from berth.cluster.actions import Patch, perform
from berth.cluster.events.correlator import EventCorrelator, Occurrence, Reference, Type
from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError, NotFoundError
from berth.kube.client.rate_limit import TokenBucket
from berth.runtime.clock import Clock

log = logging.getLogger(__name__)

QUEUED: Final = 5_000
"""Events that wait to be written. What comes when it is full is lost, as in client-go (1,000)."""

BURST: Final = 300
PER_SECOND: Final = 200.0
"""How fast events are written. A real kubelet writes 50 a second (``eventRecordQPS``); here all
nodes share one processor, which is for pods first."""


@dataclass(frozen=True, slots=True)
class EventRecorder:
    """Records what one *component* does. Neither waits nor fails."""

    record: Callable[[Occurrence], None]
    component: str
    clock: Clock
    host: str = ""

    def event(
        self,
        regarding: Reference,
        *,
        type: Type = "Normal",
        reason: str,
        message: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Record that something happened to *regarding*; the event gets *annotations*."""
        at, notes = self.clock.now(), tuple((annotations or {}).items())
        self.record(
            Occurrence(regarding, type, reason, message, self.component, self.host, at, notes)
        )


class EventBroadcaster:
    """Writes what its recorders tell, one event after the other, when nothing else is due.

    Best effort: what the server refuses, and what does not reach it, is lost.
    """

    def __init__(self, client: Api, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._correlator = EventCorrelator()
        self._bucket = TokenBucket(qps=PER_SECOND, burst=BURST, clock=clock)
        self._queue: deque[Occurrence] = deque()
        self._added = asyncio.Event()
        self.lost = 0
        """Events that nobody will see."""

    def recorder(self, component: str, *, host: str = "") -> EventRecorder:
        """Return a recorder for *component*, such as ``replicaset-controller``."""
        return EventRecorder(self._record, component, self._clock, host)

    async def run(self) -> None:
        """Write events; ends only by cancellation."""
        while True:
            if not self._queue:
                self._added.clear()
                await self._added.wait()
            await self._bucket.take()
            await self._write(self._queue.popleft())

    def _record(self, occurrence: Occurrence) -> None:
        if len(self._queue) >= QUEUED:
            self.lost += 1
            return
        self._queue.append(occurrence)
        self._added.set()

    async def _write(self, occurrence: Occurrence) -> None:
        action = self._correlator.correlate(occurrence)
        if action is None:
            return
        try:
            try:
                await perform(self._client, action)
            except NotFoundError:
                if not isinstance(action, Patch):
                    raise
                await perform(self._client, self._correlator.recreate(occurrence))
        except ApiError as exc:
            self.lost += 1
            log.debug("event lost", extra={"reason": occurrence.reason, "error": str(exc)})
