"""The storage kinds that are watched, and which of their changes pods wait for (spec §11.1)."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from berth.client.volumes import decode_claim, decode_volume
from berth.framework.events import ActionType, EventResource
from berth.framework.listers import Lister, Listers
from berth.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from berth.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.object_handler import ObjectHandler

_STORAGE: Final = "/apis/storage.k8s.io/v1"
_CHANGED: Final = ActionType.ADD | ActionType.UPDATE


class StorageWatch(NamedTuple):
    """One kind: where it is, how it is read, who is told, and what its events are called."""

    path: str
    kind: type[msgspec.Struct]
    decode: Callable[[bytes], Any]
    handler: ObjectHandler[Any]
    resource: EventResource


def storage_watches(listers: Listers, queue: SchedulingQueue) -> list[StorageWatch]:
    """Return the watches that keep the storage kinds of *listers* and wake pods in *queue*."""

    def watch(
        path: str,
        kind: type[msgspec.Struct],
        lister: Lister[Any],
        resource: EventResource,
        wakes: ActionType = _CHANGED,
        *,
        decode: Callable[[bytes], Any] | None = None,
    ) -> StorageWatch:
        handler = ObjectHandler(lister, queue=queue, resource=resource, wakes=wakes)
        decode = decode or msgspec.json.Decoder(kind).decode
        return StorageWatch(path, kind, decode, handler, resource)

    return [
        watch(
            "/api/v1/persistentvolumes",
            PersistentVolume,
            listers.persistent_volumes,
            EventResource.PERSISTENT_VOLUME,
            decode=decode_volume,
        ),
        watch(
            "/api/v1/persistentvolumeclaims",
            PersistentVolumeClaim,
            listers.persistent_volume_claims,
            EventResource.PERSISTENT_VOLUME_CLAIM,
            decode=decode_claim,
        ),
        watch(
            f"{_STORAGE}/storageclasses",
            StorageClass,
            listers.storage_classes,
            EventResource.STORAGE_CLASS,
        ),
        watch(f"{_STORAGE}/csinodes", CSINode, listers.csi_nodes, EventResource.CSI_NODE),
        watch(
            f"{_STORAGE}/csidrivers",
            CSIDriver,
            listers.csi_drivers,
            EventResource.CSI_DRIVER,
            ActionType.UPDATE,
        ),
        watch(
            f"{_STORAGE}/csistoragecapacities",
            CSIStorageCapacity,
            listers.csi_storage_capacities,
            EventResource.CSI_STORAGE_CAPACITY,
        ),
        watch(
            f"{_STORAGE}/volumeattachments",
            VolumeAttachment,
            listers.volume_attachments,
            EventResource.VOLUME_ATTACHMENT,
            ActionType.DELETE,
        ),
    ]
