"""How decisions reach the API: bindings, conditions and events, through the write lanes."""

import logging
import random
from collections.abc import Mapping

from app.client import pods
from app.client.api_client import ApiClient
from app.client.errors import ConflictError, ServerError, UnavailableError
from app.client.events import EventRecorder
from app.client.lanes import WriteLanes
from app.client.pod_status import PodStatusWriter
from app.clock import Clock
from app.framework.pod_info import PodInfo
from app.objects.meta import Condition
from app.objects.pod import Pod

log = logging.getLogger(__name__)


class ApiWriter:
    """The :class:`~app.scheduler.scheduler.Reporter` of a real cluster, and what binds."""

    def __init__(
        self,
        client: ApiClient,
        lanes: WriteLanes,
        *,
        recorders: Mapping[str, EventRecorder],
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """*recorders* has one event recorder per profile, by scheduler name."""
        self._client = client
        self._lanes = lanes
        self._recorders = recorders
        self._status = PodStatusWriter(client, lanes, clock=clock, rng=rng)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Bind *pod*, ahead of all other writes; raises ApiError when it is certain that it failed.

        When the answer was lost or says conflict, the pod is read again: if it is on *node_name*
        already, our own earlier request did it.
        """
        try:
            await self._lanes.bind(lambda: pods.bind(self._client, pod.pod, node_name))
        except (ConflictError, ServerError, UnavailableError) as exc:
            if await pods.bound_node(self._client, pod.pod) != node_name:
                raise
            log.info("bind had succeeded", extra={"pod": pod.key, "error": str(exc)})

    def event(
        self, pod: Pod, *, profile: str, type: str, reason: str, action: str, note: str
    ) -> None:
        self._recorders[profile].event(pod, type=type, reason=reason, action=action, note=note)

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        self._status.submit(pod, condition=condition, nominated_node_name=nominated_node_name)
