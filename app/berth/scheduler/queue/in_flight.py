"""Pods that are being tried, and the events that happened meanwhile (spec §3.5)."""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from berth.scheduler.queue.hints import EventHints


class InFlightEvent(NamedTuple):
    hints: EventHints
    old: Any
    new: Any


class InFlight:
    """One list of events for all pods in flight, and for each pod where its events begin.

    Events are numbered from the start of the process. An event is kept until no pod is left that
    was popped before it.
    """

    def __init__(self) -> None:
        self._events: deque[InFlightEvent] = deque()
        self._first = 0
        """The number of the first event that is kept."""
        self._markers: OrderedDict[str, int] = OrderedDict()
        """Pod UID to the number of the first event after its pop, in order of popping."""

    def start(self, uid: str) -> bool:
        """Mark the pod as being tried; return False if it already is."""
        if uid in self._markers:
            return False
        self._markers[uid] = self._first + len(self._events)
        return True

    def record(self, hints: EventHints, *, old: Any, new: Any) -> None:
        """Keep an event if a pod is in flight that it could matter to."""
        if self._markers and hints.is_of_interest:
            self._events.append(InFlightEvent(hints, old, new))

    def events_since_pop(self, uid: str) -> Iterable[InFlightEvent] | None:
        """Return what happened since the pod was popped, oldest first; None: not in flight."""
        marker = self._markers.get(uid)
        if marker is None:
            return None
        return islice(self._events, marker - self._first, None)

    def done(self, uid: str) -> None:
        """Forget the pod, and the events that no other pod needs; unknown pods are ignored."""
        if self._markers.pop(uid, None) is None or not self._events:
            return
        end = self._first + len(self._events)
        needed = next(iter(self._markers.values()), end)
        for _ in range(self._first, needed):
            self._events.popleft()
        self._first = needed

    def counts(self) -> Counter[str]:
        """Return how many entries the list has by event label, pods as ``PodPopped``."""
        counts = Counter(event.hints.label for event in self._events)
        if self._markers:
            counts["PodPopped"] = len(self._markers)
        return counts

    def uids(self) -> dict[str, int]:
        """Return how many events are kept for each pod in flight, in order of popping."""
        end = self._first + len(self._events)
        return {uid: end - marker for uid, marker in self._markers.items()}

    def __contains__(self, uid: str) -> bool:
        return uid in self._markers

    def __len__(self) -> int:
        """The number of pods in flight."""
        return len(self._markers)

    def check_invariants(self) -> None:
        """Raise AssertionError if events are kept that no pod needs; for tests and debugging."""
        markers = list(self._markers.values())
        assert markers == sorted(markers)
        assert not self._events or markers[0] == self._first
        assert all(marker <= self._first + len(self._events) for marker in markers)
