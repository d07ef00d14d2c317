"""What a plugin may ask of the scheduler it runs in."""

from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, Protocol

from berth.clock import Clock
from berth.framework.devices.commitment import ClaimWriter
from berth.framework.listers import Listers
from berth.framework.node_table import NodeTable
from berth.framework.outcomes import Outcomes
from berth.framework.pod_info import PodInfo
from berth.objects.pod import Pod
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim


class Handle(Protocol):
    """Given to every plugin when it is made."""

    @property
    def clock(self) -> Clock: ...

    @property
    def rng(self) -> Random: ...

    @property
    def nodes(self) -> NodeTable:
        """The live table. A Filter judges the table it is given instead."""
        ...

    @property
    def listers(self) -> Listers:
        """Namespaces, services and the like as the watches last told."""
        ...

    @property
    def outcomes(self) -> Outcomes:
        """To be told of what only the plugin sees; it must not decide by who listens."""
        ...

    def pod(self, key: str) -> Pod | None:
        """The pod ``namespace/name`` as the watch last told; None if there is none."""
        ...

    def is_preempting(self, uid: str) -> bool:
        """Whether victims are being evicted for this pod, so that trying it would be too early."""
        ...

    def nominated_node(self, uid: str) -> str:
        """The node that this pod is nominated to; "" for none.

        The pod's own status may not say so yet.
        """
        ...

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Write the binding to the API; raises OSError-like errors of the client."""
        ...

    @property
    def claim_writer(self) -> ClaimWriter:
        """Resource claims on the API server."""
        ...

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Apply a strategic merge patch to the status of *pod*; raises errors of the client."""
        ...

    def event(self, pod: Pod, *, type: str, reason: str, action: str, note: str) -> None:
        """Record an event on *pod* in the name of its profile."""
        ...

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Have *work* done, which writes to the API, without waiting; its failure is logged.

        For writes that follow from what is decided synchronously.
        """
        ...

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write annotations and ``claimRef`` of *volume* to the API; return what that made of it.

        Raises errors of the client, also when the volume was changed since *volume* was read.
        """
        ...

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Write the annotations of *claim*, as :meth:`update_persistent_volume` does."""
        ...
