"""DefaultBinder: write the pod's node to the API."""

from typing import Any

from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import BindPlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status


class DefaultBinder(BindPlugin):
    """Creates the Binding (spec §2.11, §5.19); a failed write is an error of the attempt."""

    NAME = "DefaultBinder"

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("DefaultBinder: needs a handle to bind with")
        self._handle = handle

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        try:
            await self._handle.writes.bind(pod, node_name)
        except Exception as exc:  # noqa: BLE001 - however the client fails, the attempt has failed
            return Status.error(str(exc))
        return None
