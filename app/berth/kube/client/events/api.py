"""Events on the API server, in the version that it serves (spec §2.11)."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from berth.kube.client.api import PostingApi
from berth.kube.client.discovery import Discovery
from berth.kube.client.errors import ApiError, NotFoundError
from berth.kube.client.writes.pods import STRATEGIC_MERGE_PATCH
from berth.kube.objects.event import Event, EventSeries

_GROUP: Final = "/apis/events.k8s.io/v1"
_CORE: Final = "/api/v1"

encode: Final = msgspec.json.encode


class EventApi:
    """Writes events as events.k8s.io/v1, or as v1 where the server is too old to serve that.

    Which one it is, is asked before the first event. kube-scheduler merges similar events in its
    own way where they are of v1; here they become series as always, written as ``count``.
    """

    def __init__(self, client: PostingApi) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._is_served: bool | None = None
        """Whether the server has the newer version; None: it was not asked yet."""

    async def write(self, events: Sequence[Event]) -> list[ApiError | None]:
        """Create *events* or, where they are series, update them; return the error of each.

        Those that are created leave in one go, before the series, which may be of one of them.
        """
        try:
            is_served = await self._serves()
        except ApiError as exc:
            return [exc] * len(events)
        errors: list[ApiError | None] = [None] * len(events)
        new = [n for n, event in enumerate(events) if event.series is None]
        if new:
            posts = [
                (_path(events[n], is_served=is_served), _body(events[n], is_served=is_served))
                for n in new
            ]
            for n, answer in zip(new, await self._client.post_all(posts), strict=True):
                errors[n] = answer if isinstance(answer, ApiError) else None
        for n, event in enumerate(events):
            if event.series is not None:
                try:
                    await self._update(event, event.series, is_served=is_served)
                except ApiError as exc:
                    errors[n] = exc
        return errors

    async def _serves(self) -> bool:
        if self._is_served is None:
            self._is_served = await self._discovery.serves(f"{_GROUP}/events")
        return self._is_served

    async def _update(self, event: Event, series: EventSeries, *, is_served: bool) -> None:
        path = _path(event, is_served=is_served)
        try:
            await self._client.request(
                "PATCH",
                f"{path}/{event.metadata.name}",
                body=encode({"series": series} if is_served else _course(event)),
                content_type=STRATEGIC_MERGE_PATCH,
            )
        except NotFoundError:  # expired on the server, or its creation was dropped
            await self._client.request("POST", path, body=_body(event, is_served=is_served))


def _path(event: Event, *, is_served: bool) -> str:
    return f"{_GROUP if is_served else _CORE}/namespaces/{event.metadata.namespace}/events"


def _body(event: Event, *, is_served: bool) -> bytes:
    return encode(event if is_served else _core(event))


def _core(event: Event) -> dict[str, Any]:
    """Return *event* as v1 has it: other names, and times in whole seconds."""
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": event.metadata,
        "involvedObject": event.regarding,
        "reason": event.reason,
        "message": event.note,
        "type": event.type,
        "action": event.action,
        "source": {"component": event.reporting_controller},
        "firstTimestamp": _whole_seconds(event.event_time),
        "reportingComponent": event.reporting_controller,
        "reportingInstance": event.reporting_instance,
        **_course(event),
    }
    return body if event.related is None else {**body, "related": event.related}


def _course(event: Event) -> dict[str, Any]:
    """Return how often *event* was and when last, as v1 has it."""
    if event.series is None:
        return {"count": 1, "lastTimestamp": _whole_seconds(event.event_time)}
    last = _whole_seconds(event.series.last_observed_time)
    return {"count": event.series.count, "lastTimestamp": last}


def _whole_seconds(micro_time: str) -> str:
    return f"{micro_time.partition('.')[0]}Z"
