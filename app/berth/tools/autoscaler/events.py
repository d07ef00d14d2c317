"""The ConfigMap with the status, and the events about it: what the autoscaler did as a whole."""

import logging

import msgspec

from berth.cluster.actions import MERGE
from berth.cluster.events.correlator import Reference, Type
from berth.cluster.events.recorder import EventRecorder
from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError, NotFoundError
from berth.runtime.clock import Clock
from berth.tools.autoscaler import status

log = logging.getLogger(__name__)

_PATH = f"/api/v1/namespaces/{status.NAMESPACE}/configmaps"


class StatusEvents:
    """Writes the ConfigMap, and records events about it once it is there."""

    def __init__(self, client: Api, events: EventRecorder, *, clock: Clock) -> None:
        self._client = client
        self._events = events
        self._clock = clock
        self._uid = ""

    async def begin(self) -> None:
        """Write that nothing is known yet."""
        await self.write(status.initializing(self._clock.now()))

    async def write(self, text: str) -> None:
        """Write the status *text*; what goes wrong is logged."""
        body = status.config_map(text, now=self._clock.now())
        try:
            written = await self._write(msgspec.json.encode(body))
        except ApiError as exc:
            log.warning("status cannot be written", extra={"error": str(exc)})
        else:
            self._uid = msgspec.json.decode(written)["metadata"]["uid"]

    def record(self, reason: str, message: str, *, type: Type = "Normal") -> None:
        about = Reference("v1", "ConfigMap", status.NAMESPACE, status.CONFIG_MAP, self._uid)
        self._events.event(about, type=type, reason=reason, message=message)

    async def _write(self, body: bytes) -> bytes:
        path = f"{_PATH}/{status.CONFIG_MAP}"
        try:
            return await self._client.request("PATCH", path, body=body, content_type=MERGE)
        except NotFoundError:
            return await self._client.request("POST", _PATH, body=body)
