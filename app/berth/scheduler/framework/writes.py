"""Writes of plugins to the API server."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Never, Protocol

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.scheduler.framework.pod_info import PodInfo


class ConflictError(Exception):
    """The object was changed since it was read."""


class ResourceClaimWrites(Protocol):
    """ResourceClaims on the API server.

    Bodies are whole objects with the ``resourceVersion`` that was read. Raises ConflictError when
    there is a newer one, and other errors of the client.
    """

    async def get(self, namespace: str, name: str) -> ResourceClaim: ...

    async def create(self, body: Mapping[str, Any]) -> ResourceClaim: ...

    async def update(self, body: Mapping[str, Any]) -> ResourceClaim:
        """Write everything but the status."""
        ...

    async def update_status(self, body: Mapping[str, Any]) -> ResourceClaim: ...

    async def patch_status(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> ResourceClaim:
        """Apply a strategic merge patch to the status."""
        ...

    async def delete(self, namespace: str, name: str) -> None: ...


class PluginWrites(Protocol):
    """Writes to the API server, in the order and at the rate that the scheduler allows.

    The coroutines return when the API server has answered, and raise errors of the client.
    """

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Create the Binding of *pod* to a node."""
        ...

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Apply a strategic merge patch to the status of *pod*."""
        ...

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write annotations and ``claimRef`` of *volume*; return what the API server stored.

        Raises also when the volume was changed since *volume* was read.
        """
        ...

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Write the annotations of *claim*, as :meth:`update_persistent_volume` does."""
        ...

    @property
    def resource_claims(self) -> ResourceClaimWrites:
        """Reads and writes of ResourceClaims."""
        ...

    def event(self, pod: Pod, *, type: str, reason: str, action: str, note: str) -> None:
        """Record an event on *pod* in the name of its profile, without waiting."""
        ...

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run *work*, which writes to the API server, without waiting; a failure is logged.

        For writes that follow from a decision made in a synchronous extension point. *name* says
        in the log what was being done.
        """
        ...


class NoApiServerError(Exception):
    """A plugin is to write, and there is nothing to write to."""

    def __init__(self) -> None:
        super().__init__("there is no API server to write to")


class _NoResourceClaims:
    async def get(self, namespace: str, name: str) -> Never:
        raise NoApiServerError

    async def create(self, body: Mapping[str, Any]) -> Never:
        raise NoApiServerError

    async def update(self, body: Mapping[str, Any]) -> Never:
        raise NoApiServerError

    async def update_status(self, body: Mapping[str, Any]) -> Never:
        raise NoApiServerError

    async def patch_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Never:
        raise NoApiServerError

    async def delete(self, namespace: str, name: str) -> None:
        raise NoApiServerError


class _NoWrites:
    resource_claims: Final = _NoResourceClaims()

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        raise NoApiServerError

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        raise NoApiServerError

    async def update_persistent_volume(self, volume: PersistentVolume) -> Never:
        raise NoApiServerError

    async def update_persistent_volume_claim(self, claim: PersistentVolumeClaim) -> Never:
        raise NoApiServerError

    def event(self, pod: Pod, *, type: str, reason: str, action: str, note: str) -> None: ...

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None: ...


NO_WRITES: Final[PluginWrites] = _NoWrites()
"""For simulations and explanations, which change nothing.

Writes raise :class:`NoApiServerError`; what is not waited for, events among it, is dropped.
"""
