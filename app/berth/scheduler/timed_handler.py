"""How long it takes to take in what watches tell (spec §8, ``event_handling_duration_seconds``)."""

from collections.abc import Callable
from typing import Generic, TypeVar

from berth.framework.events import ActionType, ClusterEvent, EventResource
from berth.informer.store import Handler

T = TypeVar("T")


class EventTimer:
    """Measures how long changes take; the label is that of the event that a change comes to."""

    def __init__(self, now: Callable[[], float], tell: Callable[[str, float], None]) -> None:
        """*now* is a monotonic time; *tell* is given labels and seconds."""
        self.now = now
        self._tell = tell

    def took(self, label: str, started: float) -> None:
        """Note that what was begun at *started*, by :meth:`now`, is done."""
        self._tell(label, self.now() - started)


class TimedHandler(Generic[T]):
    """Passes on what another handler is to know, and measures it."""

    def __init__(self, handler: Handler[T], *, resource: EventResource, timer: EventTimer) -> None:
        self._handler = handler
        self._timer = timer
        self._added, self._updated, self._deleted = (
            ClusterEvent(resource, action).label
            for action in (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE)
        )

    def on_add(self, obj: T) -> None:
        started = self._timer.now()
        self._handler.on_add(obj)
        self._timer.took(self._added, started)

    def on_update(self, old: T, new: T) -> None:
        started = self._timer.now()
        self._handler.on_update(old, new)
        self._timer.took(self._updated, started)

    def on_delete(self, obj: T) -> None:
        started = self._timer.now()
        self._handler.on_delete(obj)
        self._timer.took(self._deleted, started)
