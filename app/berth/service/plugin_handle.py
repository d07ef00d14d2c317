"""What plugins of a running scheduler may ask for."""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from berth.clock import Clock
from berth.framework.devices.commitment import ClaimWriter
from berth.framework.listers import Listers
from berth.framework.node_table import NodeTable
from berth.framework.outcomes import Outcomes
from berth.framework.pod_info import PodInfo
from berth.objects.pod import Pod
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.scheduler.api_writer import ApiWriter
from berth.scheduler.background import Background


@dataclass(slots=True)
class PluginHandle:
    """The :class:`~berth.framework.handle.Handle` of a running scheduler."""

    nodes: NodeTable
    clock: Clock
    rng: random.Random
    listers: Listers
    writer: ApiWriter
    pod: Callable[[str], Pod | None]
    is_preempting: Callable[[str], bool]
    nominated_node: Callable[[str], str]
    claim_writer: ClaimWriter
    background: Background
    outcomes: Outcomes

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self.background.start(name, work)

    def event(self, pod: Pod, *, type: str, reason: str, action: str, note: str) -> None:
        profile = pod.spec.scheduler_name
        self.writer.event(pod, profile=profile, type=type, reason=reason, action=action, note=note)

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        await self.writer.patch_pod_status(pod, status)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await self.writer.bind(pod, node_name)

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        return await self.writer.update_persistent_volume(volume)

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        return await self.writer.update_persistent_volume_claim(claim)
