"""Events on the API server, in the version that it serves (spec §2.11)."""

from typing import Any, Final

import msgspec

from berth.client.api import Api
from berth.client.discovery import Discovery
from berth.client.errors import NotFoundError
from berth.client.writes.pods import STRATEGIC_MERGE_PATCH
from berth.objects.event import Event

_GROUP: Final = "/apis/events.k8s.io/v1"
_CORE: Final = "/api/v1"

encode: Final = msgspec.json.encode


class EventApi:
    """Writes events as events.k8s.io/v1, or as v1 where the server is too old to serve that.

    Which one it is, is asked before the first event. kube-scheduler merges similar events in its
    own way where they are of v1; here they become series as always, written as ``count``.
    """

    def __init__(self, client: Api) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._is_served: bool | None = None
        """Whether the server has the newer version; None: it was not asked yet."""

    async def write(self, event: Event) -> None:
        """Create *event* or, when it is a series, update it. Raises ApiError."""
        is_served = self._is_served
        if is_served is None:
            is_served = self._is_served = await self._discovery.serves(f"{_GROUP}/events")
        path = f"{_GROUP if is_served else _CORE}/namespaces/{event.metadata.namespace}/events"
        if event.series is not None:
            patch = {"series": event.series} if is_served else _course(event)
            try:
                await self._client.request(
                    "PATCH",
                    f"{path}/{event.metadata.name}",
                    body=encode(patch),
                    content_type=STRATEGIC_MERGE_PATCH,
                )
            except NotFoundError:
                pass  # expired on the server, or its creation was dropped: it is created instead
            else:
                return
        await self._client.request("POST", path, body=encode(event if is_served else _core(event)))


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
