"""Idleness of a cluster: ``berth up --exit-when-idle``."""

from typing import Any, Final

import msgspec

from berth.kube.client.api import Api
from berth.service.scheduler_service import SchedulerService
from berth.tools.up.progress import Progress

QUIET_LOOKS: Final = 3
"""Idle for so many looks in a row: idle."""


class Idleness:
    """Tells when the scheduler and the controllers have nothing left to do."""

    def __init__(self, service: SchedulerService, client: Api) -> None:
        self._service = service
        self._client = client
        self._quiet_looks = 0

    @property
    def is_reached(self) -> bool:
        return self._quiet_looks >= QUIET_LOOKS

    async def look(self, progress: Progress) -> None:
        """Look once more, after what *progress* saw."""
        is_quiet = (
            self._service.is_idle
            and not progress.states["starting"]
            and not progress.states["stopping"]
            and await controllers_are_done(self._client)
        )
        self._quiet_looks = self._quiet_looks + 1 if is_quiet else 0


class _Workload(msgspec.Struct):
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


class _Workloads(msgspec.Struct):
    items: list[_Workload] = []


async def controllers_are_done(client: Api) -> bool:
    """Whether everything that makes pods all at once has as many as it should.

    A StatefulSet may wait for ever with its second pod until the first has a node.
    """
    for path in (
        "/apis/apps/v1/deployments",
        "/apis/apps/v1/replicasets",
        "/api/v1/replicationcontrollers",
    ):
        answer = msgspec.json.decode(await client.request("GET", path), type=_Workloads)
        for workload in answer.items:
            status, wanted = workload.status, workload.spec.get("replicas", 1)
            if status.get("observedGeneration", 0) < workload.metadata.get("generation", 1):
                return False
            if status.get("replicas", 0) != wanted:
                return False
    return True
