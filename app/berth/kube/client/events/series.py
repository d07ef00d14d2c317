"""Series of events, and what of them is worth writing (spec §2.11).

Synchronous and without I/O: methods return the events that are to be written.
"""

from collections import OrderedDict
from typing import Final

import msgspec

from berth.kube.objects.event import Event, EventSeries, ObjectReference
from berth.runtime.clock import rfc3339_micro

IDLE_LIMIT: Final = 360.0
"""Seconds without a repeat after which an event is forgotten, and its series with it."""

MAX_REMEMBERED: Final = 10_000
"""Events remembered. kube-scheduler has no such limit; most events never repeat, and at hundreds of
bindings a second their memory would be most of ours. Beyond it the oldest are forgotten early."""

Key = tuple[str, str, str, str, str, ObjectReference, ObjectReference | None]


def isomorphic_key(event: Event) -> Key:
    """Return what repeats of *event* have in common: all but its note and its times."""
    return (
        event.type,
        event.action,
        event.reason,
        event.reporting_controller,
        event.reporting_instance,
        event.regarding,
        event.related,
    )


class Occurrences(msgspec.Struct):
    """An event as first seen, how often it was, and when last (unix seconds)."""

    event: Event
    last_at: float
    count: int = 1

    def as_series(self) -> Event:
        """Return the event with its series as of now."""
        series = EventSeries(count=self.count, last_observed_time=rfc3339_micro(self.last_at))
        return msgspec.structs.replace(self.event, series=series)


class EventSeriesCache:
    """Remembers recent events. Times handed in are unix seconds."""

    def __init__(self, *, capacity: int = MAX_REMEMBERED) -> None:
        self._seen: OrderedDict[Key, Occurrences] = OrderedDict()
        """Not a dict, which walks to its oldest entry over the gaps of those before it."""
        self._capacity = capacity

    def __len__(self) -> int:
        return len(self._seen)

    def observe(self, event: Event, *, now: float) -> list[Event]:
        """Take note of *event* and return what is to be written for it.

        The first of its kind is written as it is. The second makes it a series, which is written.
        Later ones are only counted, until :meth:`refresh` or :meth:`sweep`.
        """
        key = isomorphic_key(event)
        seen = self._seen.get(key)
        if seen is None:
            self._seen[key] = Occurrences(event, now)
            if len(self._seen) > self._capacity:
                return [event, *self._forget([next(iter(self._seen))])]
            return [event]
        seen.count += 1
        seen.last_at = now
        return [seen.as_series()] if seen.count == 2 else []

    def refresh(self) -> list[Event]:
        """Return all series, to be written with their counts as of now."""
        return [seen.as_series() for seen in self._seen.values() if seen.count > 1]

    def sweep(self, *, now: float) -> list[Event]:
        """Forget what has been idle for ``IDLE_LIMIT``; return its series, to be written last."""
        idle = [key for key, seen in self._seen.items() if now - seen.last_at > IDLE_LIMIT]
        return self._forget(idle)

    def _forget(self, keys: list[Key]) -> list[Event]:
        forgotten = [self._seen.pop(key) for key in keys]
        return [seen.as_series() for seen in forgotten if seen.count > 1]
