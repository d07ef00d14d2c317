"""What watch events of other kinds than pods and nodes do to the queue (spec §11.1)."""

from typing import Any, Generic, TypeVar

from berth.framework.events import ActionType, ClusterEvent, EventResource
from berth.framework.listers import ApiObject, Lister
from berth.queue.scheduling_queue import SchedulingQueue

T = TypeVar("T", bound=ApiObject)


class ObjectHandler(Generic[T]):
    """Keeps a lister, and wakes the pods that wait for changes of its kind.

    The lister comes first: a pod that is tried again sees what woke it.
    """

    def __init__(
        self,
        lister: Lister[T],
        *,
        queue: SchedulingQueue,
        resource: EventResource,
        wakes: ActionType,
    ) -> None:
        """*wakes* are the changes, of add, update and delete, that pods may wait for."""
        self._lister = lister
        self._queue = queue
        self._resource = resource
        self._wakes = wakes

    def on_add(self, obj: T) -> None:
        self._lister.on_add(obj)
        self._wake(ActionType.ADD, new=obj)

    def on_update(self, old: T, new: T) -> None:
        self._lister.on_update(old, new)
        self._wake(ActionType.UPDATE, old=old, new=new)

    def on_delete(self, obj: T) -> None:
        self._lister.on_delete(obj)
        self._wake(ActionType.DELETE, old=obj)

    def _wake(self, action: ActionType, **objects: Any) -> None:
        if action & self._wakes:
            self._queue.move_all_to_active_or_backoff_queue(
                ClusterEvent(self._resource, action), **objects
            )
