"""Between a core and its world: watches and the API server, whose words are recorded."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from berth.insight.recording import lines
from berth.insight.recording.kinds import kind_name
from berth.kube.informer.store import ResourceEventHandler
from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.scheduler.background import Background, Job, Work
from berth.scheduler.core.outside import ApiWrites
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.listers import KINDS

if TYPE_CHECKING:
    from berth.insight.recording.recorder import Recorder

EVICT: Final = "evict"
PATCH_POD_STATUS: Final = "patch pod status"
BOUND_NODE: Final = "look up node"
UPDATE: Final = "update"
CLAIM: Final = "claim: "
"""Begins the names of calls about ResourceClaims."""

_KIND: Final = {kind.type: kind for kind in KINDS.values()}


class RecordedHandler:
    """Records what a watch tells, and tells the handler."""

    def __init__(
        self, kind: Kind[Any], handler: ResourceEventHandler[Any], recorder: "Recorder"
    ) -> None:
        self._kind = kind
        self._name = kind_name(kind)
        self._handler = handler
        self._recorder = recorder

    def on_add(self, obj: Any) -> None:
        self._recorder.write(lines.Added(*self._told(obj)))
        self._handler.on_add(obj)

    def on_update(self, old: Any, new: Any) -> None:
        self._recorder.write(lines.Updated(*self._told(new)))
        self._handler.on_update(old, new)

    def on_delete(self, obj: Any) -> None:
        self._recorder.write(lines.Deleted(*self._told(obj)))
        self._handler.on_delete(obj)

    def _told(self, obj: Any) -> tuple[float, str, Any]:
        # It is encoded with its line, and only ever read as JSON.
        return self._recorder.tick(), self._name, self._recorder.exported(self._kind, obj)


class RecordedWrites:
    """The API, whose answers are recorded if something but the binding itself waits for them.

    That a binding has ended is a step of its own.
    """

    def __init__(self, api: ApiWrites, recorder: "Recorder") -> None:
        self._api = api
        self._answered = recorder.answered
        self.resource_claims = _RecordedClaims(api, recorder)
        self.background = _RecordedBackground(recorder)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def start(self, name: str, work: Work) -> None:
        self.background.start(name, work)

    async def evict(self, pod: Pod, condition: Condition, *, nominated: Pod | None = None) -> bool:
        write = self._api.evict(pod, condition, nominated=nominated)
        return await self._answered(EVICT, pod.metadata.uid, write)

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        write = self._api.patch_pod_status(pod, status)
        await self._answered(PATCH_POD_STATUS, pod.metadata.uid, write)

    async def bound_node(self, pod: Pod) -> str | None:
        return await self._answered(BOUND_NODE, pod.metadata.uid, self._api.bound_node(pod))

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        write = self._api.update_persistent_volume(volume)
        return await self._answered(
            UPDATE, volume.metadata.uid, write, kind=_KIND[PersistentVolume]
        )

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        write = self._api.update_persistent_volume_claim(claim)
        return await self._answered(
            UPDATE, claim.metadata.uid, write, kind=_KIND[PersistentVolumeClaim]
        )


class _RecordedClaims:
    """ResourceClaims on the API server."""

    def __init__(self, api: ApiWrites, recorder: "Recorder") -> None:
        self._api = api
        self._recorder = recorder

    async def _claim(self, verb: str, key: str, answer: Any) -> ResourceClaim:
        claim: ResourceClaim = await self._recorder.answered(
            CLAIM + verb, key, answer, kind=_KIND[ResourceClaim]
        )
        return claim

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        return await self._claim("get", name, self._api.resource_claims.get(namespace, name))

    async def create(self, body: Mapping[str, Any]) -> ResourceClaim:
        return await self._claim("create", key_of(body), self._api.resource_claims.create(body))

    async def update(self, body: Mapping[str, Any]) -> ResourceClaim:
        return await self._claim("update", key_of(body), self._api.resource_claims.update(body))

    async def update_status(self, body: Mapping[str, Any]) -> ResourceClaim:
        write = self._api.resource_claims.update_status(body)
        return await self._claim("update status", key_of(body), write)

    async def patch_status(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> ResourceClaim:
        write = self._api.resource_claims.patch_status(namespace, name, patch)
        return await self._claim("patch status", name, write)

    async def delete(self, namespace: str, name: str) -> None:
        write = self._api.resource_claims.delete(namespace, name)
        await self._recorder.answered(CLAIM + "delete", name, write)


def key_of(body: Mapping[str, Any]) -> str:
    """Return what tells a ResourceClaim of a call from others."""
    meta = body["metadata"]
    name: str = meta.get("name") or meta.get("generateName", "")
    return name


class _RecordedBackground(Background):
    def __init__(self, recorder: "Recorder") -> None:
        super().__init__()
        self._recorder = recorder

    async def do(self, job: Job) -> None:
        self._recorder.job_begins(job.name)
        await super().do(job)
