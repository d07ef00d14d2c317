"""Tells the cluster's users what happened to a pod: events.k8s.io/v1 (spec §2.11, §12.2)."""

import logging
import random
import uuid
from collections import deque
from typing import Final

from berth.kube.client.errors import (
    AlreadyExistsError,
    ApiError,
    ServerError,
    TooManyRequestsError,
    UnavailableError,
    log_failure,
)
from berth.kube.client.events.api import EventApi
from berth.kube.client.events.series import EventSeriesCache
from berth.kube.client.writes.lanes import WriteLanes
from berth.kube.objects.event import Event, EventMeta, ObjectReference, event_name
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import API_VERSION, PodGroup
from berth.runtime.clock import Clock, rfc3339_micro

log = logging.getLogger(__name__)

NOTE_LIMIT: Final = 1024
ELLIPSIS: Final = b" ..."

RETRY_INTERVAL: Final = 10.0
RETRY_JITTER: Final = 0.25
MAX_TRIES: Final = 12
MAX_RETRYING: Final = 1000

SWEEP_INTERVAL: Final = 360.0
REFRESH_INTERVAL: Final = 1800.0


def shortened(note: str) -> str:
    """Return *note* in at most 1024 bytes: if longer, the first 1020 and `` ...``.

    A character that the cut would split is left out.
    """
    data = note.encode()
    if len(data) <= NOTE_LIMIT:
        return note
    kept = data[: NOTE_LIMIT - len(ELLIPSIS)].decode(errors="ignore")
    return kept + ELLIPSIS.decode()


def reference_to(obj: Pod | PodGroup) -> ObjectReference:
    """Return how events name *obj*: this version of it, so that a changed object starts anew."""
    metadata = obj.metadata
    return ObjectReference(
        kind="Pod" if isinstance(obj, Pod) else type(obj).__name__,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version="v1" if isinstance(obj, Pod) else obj.api_version or API_VERSION,
        resource_version=metadata.resource_version,
    )


class EventRecorder:
    """Records events of one *component* (the profile's scheduler name) through the event lane.

    Repeats become a series (:mod:`berth.kube.client.events.series`). Somebody must own :meth:`run`.
    """

    def __init__(
        self,
        api: EventApi,
        lanes: WriteLanes,
        *,
        clock: Clock,
        rng: random.Random,
        component: str,
        hostname: str,
    ) -> None:
        self._api = api
        self._lanes = lanes
        self._clock = clock
        self._rng = rng
        self._controller = component
        self._instance = f"{component}-{hostname}"
        self._series = EventSeriesCache()
        self._last_nanos = 0
        self._to_retry: deque[tuple[Event, int]] = deque(maxlen=MAX_RETRYING)

    def event(
        self,
        regarding: Pod,
        *,
        type: str,
        reason: str,
        action: str,
        note: str,
        related: Pod | PodGroup | None = None,
    ) -> None:
        """Record that something happened to *regarding*. Does not wait; may be called anywhere.

        *type* is Normal or Warning. *note* is cut to what the API accepts.
        """
        now = self._clock.now()
        event = Event(
            api_version="events.k8s.io/v1",
            kind="Event",
            metadata=EventMeta(
                name=event_name(regarding.metadata.name, self._nanos(now), new_uid=self._new_uid),
                namespace=regarding.metadata.namespace or "default",
            ),
            event_time=rfc3339_micro(now),
            reporting_controller=self._controller,
            reporting_instance=self._instance,
            action=action,
            reason=reason,
            regarding=reference_to(regarding),
            note=shortened(note),
            type=type,
            related=None if related is None else reference_to(related),
        )
        self._submit(self._series.observe(event, now=now))

    async def run(self) -> None:
        """Write again what failed, keep the counts of series fresh, forget old events; for ever."""
        started = self._clock.monotonic()
        next_sweep, next_refresh = started + SWEEP_INTERVAL, started + REFRESH_INTERVAL
        while True:
            jitter = 1.0 + self._rng.random() * RETRY_JITTER
            await self._clock.sleep(RETRY_INTERVAL * jitter)
            for _ in range(len(self._to_retry)):
                event, tries = self._to_retry.popleft()
                self._lanes.submit_event((event, tries), self._write)
            if self._clock.monotonic() >= next_refresh:
                next_refresh += REFRESH_INTERVAL
                self._submit(self._series.refresh())
            if self._clock.monotonic() >= next_sweep:
                next_sweep += SWEEP_INTERVAL
                self._submit(self._series.sweep(now=self._clock.now()))

    def _new_uid(self) -> uuid.UUID:
        return uuid.UUID(int=self._rng.getrandbits(128), version=4)

    def _nanos(self, now: float) -> int:
        """Return the time for an event's name, one later than the last when time stood still."""
        self._last_nanos = max(int(now * 1e9), self._last_nanos + 1)
        return self._last_nanos

    def _submit(self, events: list[Event]) -> None:
        for event in events:
            self._lanes.submit_event((event, 0), self._write)

    async def _write(self, tried: list[tuple[Event, int]]) -> None:
        """Write events, each of which was tried so often before."""
        errors = await self._api.write([event for event, _ in tried])
        for (event, tries), error in zip(tried, errors, strict=True):
            if error is not None:
                self._failed(event, tries, error)

    def _failed(self, event: Event, tries: int, error: ApiError) -> None:
        """Remember *event* for :meth:`run` when the server may take it later."""
        match error:
            case UnavailableError() | ServerError() | TooManyRequestsError():
                if tries + 1 >= MAX_TRIES:
                    log_failure(log, "event given up", error, fields(event))
                else:
                    self._to_retry.append((event, tries + 1))
            case AlreadyExistsError():
                pass  # an earlier try wrote it, and its answer was lost
            case _:
                log_failure(log, "event refused", error, fields(event))


def fields(event: Event) -> dict[str, object]:
    """Return the fields of a log line about *event*."""
    return {"event": event.metadata.name, "reason": event.reason}
