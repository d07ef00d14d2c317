"""What plugins of a scheduler may ask for."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from berth.clock import Clock
from berth.core.outside import Outside
from berth.framework.devices.commitment import ClaimWriter
from berth.framework.listers import Listers
from berth.framework.node_table import NodeTable
from berth.framework.outcomes import Outcomes
from berth.framework.pod_info import PodInfo
from berth.objects.pod import Pod
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim


@dataclass(frozen=True, slots=True)
class PluginHandle:
    """The :class:`~berth.framework.handle.Handle` of a :class:`SchedulerCore`."""

    outside: Outside
    nodes: NodeTable
    is_preempting: Callable[[str], bool]
    nominated_node: Callable[[str], str]
    start: Callable[[str, Callable[[], Awaitable[None]]], None]

    @property
    def clock(self) -> Clock:
        return self.outside.clock

    @property
    def rng(self) -> Random:
        return self.outside.rng.plugins

    @property
    def listers(self) -> Listers:
        return self.outside.listers

    @property
    def outcomes(self) -> Outcomes:
        return self.outside.metrics

    @property
    def claim_writer(self) -> ClaimWriter:
        return self.outside.resource_claims

    def pod(self, key: str) -> Pod | None:
        return self.outside.pods.get(key)

    def event(self, pod: Pod, *, type: str, reason: str, action: str, note: str) -> None:
        profile = pod.spec.scheduler_name
        self.outside.api.event(
            pod, profile=profile, type=type, reason=reason, action=action, note=note
        )

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        await self.outside.api.patch_pod_status(pod, status)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await self.outside.api.bind(pod, node_name)

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        return await self.outside.api.update_persistent_volume(volume)

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        return await self.outside.api.update_persistent_volume_claim(claim)
