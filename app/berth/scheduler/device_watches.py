"""The kinds of dynamic resources that are watched, and which changes pods wait for (spec §11.1)."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from berth.framework.assume_cache import resource_claim_cache
from berth.framework.events import ActionType, ClusterEvent, EventResource
from berth.framework.listers import Listers
from berth.informer.store import Handler
from berth.objects.devices import DeviceClass, ResourceClaim, ResourceSlice, decode_claim
from berth.queue.scheduling_queue import SchedulingQueue

_GROUP: Final = "/apis/resource.k8s.io/v1"


class DeviceWatch(NamedTuple):
    """One kind: where it is, how it is read, who is told, and what its events are called."""

    path: str
    kind: type[msgspec.Struct]
    decode: Callable[[bytes], Any]
    handler: Handler[Any]
    resource: EventResource


class Waker:
    """Wakes the pods that wait for changes of one kind; deletions help nobody."""

    def __init__(self, queue: SchedulingQueue, resource: EventResource) -> None:
        self._queue = queue
        self._added = ClusterEvent(resource, ActionType.ADD)
        self._updated = ClusterEvent(resource, ActionType.UPDATE)

    def on_add(self, obj: Any) -> None:
        self._queue.move_all_to_active_or_backoff_queue(self._added, new=obj)

    def on_update(self, old: Any, new: Any) -> None:
        self._queue.move_all_to_active_or_backoff_queue(self._updated, old=old, new=new)

    def on_delete(self, obj: Any) -> None:
        pass

    def on_change(self, old: Any, new: Any) -> None:
        if new is None:
            self.on_delete(old)
        elif old is None:
            self.on_add(new)
        else:
            self.on_update(old, new)


class Relay:
    """Tells one handler after the other: first who knows the objects, then who acts on it."""

    def __init__(self, *handlers: Handler[Any]) -> None:
        self._handlers = handlers

    def on_add(self, obj: Any) -> None:
        for handler in self._handlers:
            handler.on_add(obj)

    def on_update(self, old: Any, new: Any) -> None:
        for handler in self._handlers:
            handler.on_update(old, new)

    def on_delete(self, obj: Any) -> None:
        for handler in self._handlers:
            handler.on_delete(obj)


def device_watches(listers: Listers, queue: SchedulingQueue) -> list[DeviceWatch]:
    """Return the watches that keep the kinds of *listers* and wake pods in *queue*.

    Of claims the queue hears what is known of them, assumed changes included.
    """
    claims, slices, classes = (
        Waker(queue, EventResource.RESOURCE_CLAIM),
        Waker(queue, EventResource.RESOURCE_SLICE),
        Waker(queue, EventResource.DEVICE_CLASS),
    )
    resource_claim_cache(listers).follow(lambda old, new: claims.on_change(old, new))
    return [
        DeviceWatch(
            f"{_GROUP}/resourceclaims",
            ResourceClaim,
            decode_claim,
            listers.resource_claims,
            EventResource.RESOURCE_CLAIM,
        ),
        DeviceWatch(
            f"{_GROUP}/resourceslices",
            ResourceSlice,
            msgspec.json.Decoder(ResourceSlice).decode,
            Relay(listers.resource_slices, slices),
            EventResource.RESOURCE_SLICE,
        ),
        DeviceWatch(
            f"{_GROUP}/deviceclasses",
            DeviceClass,
            msgspec.json.Decoder(DeviceClass).decode,
            Relay(listers.device_classes, classes),
            EventResource.DEVICE_CLASS,
        ),
    ]
