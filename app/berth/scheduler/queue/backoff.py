"""backoffQ and errorBackoffQ: pods that wait after a failed attempt (spec §3.7)."""

from collections.abc import Iterator
from math import floor, ldexp, sqrt
from typing import Final

import msgspec

from berth.runtime.clock import Clock
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.queue.heap import PodHeap, SortKey


class Backoff(msgspec.Struct, frozen=True):
    """How long a pod backs off after a failure, in seconds; ``maximum`` 0: not at all."""

    initial: float = 1.0
    maximum: float = 10.0
    pops_early: bool = True
    """Whether rejected pods are taken before the end if nothing else is ready.

    The feature gate SchedulerPopFromBackoffQ. Ends of backoffs are whole seconds then.
    """

    def duration(self, count: int, *, size: int = 1) -> float:
        """Return the backoff after *count* failures in a row: doubling, capped; 0 for none.

        The cap grows with the square root of the *size* of a group (1.37 spec N8.1).
        """
        if count == 0:
            return 0.0
        maximum = self.maximum if size == 1 else _whole_nanoseconds(self.maximum * sqrt(size))
        # Compared before it is doubled, as upstream does, so that no count can overflow.
        if self.initial > ldexp(maximum, 1 - count):
            return maximum
        return ldexp(self.initial, count - 1)

    def expiration(self, queued: QueuedPodInfo) -> float:
        """Return when the backoff of *queued* ends, by the clock; 0.0: it has none.

        Kept in *queued* until its next failure.
        """
        if queued.backoff_expiration is None:
            count = queued.consecutive_errors_count or queued.unschedulable_count
            backoff = self.duration(count, size=len(queued.pods))
            end = queued.timestamp + backoff
            queued.backoff_expiration = self.align(end) if backoff else 0.0
        return queued.backoff_expiration

    def align(self, time: float) -> float:
        """Return *time* as ends of backoffs are compared with it."""
        return floor(time) if self.pops_early else time


DEFAULT_BACKOFF: Final = Backoff()


def _whole_nanoseconds(seconds: float) -> float:
    return floor(seconds * 1e9) / 1e9


class BackoffQueue:
    """backoffQ, of pods that were rejected, and errorBackoffQ, of pods whose attempt broke.

    Both are ordered by the end of the backoff. Rejected pods of the same end come out in the order
    of the active queue; that is many, where ends are whole seconds.
    """

    def __init__(self, *, clock: Clock, backoff: Backoff, sort_key: SortKey) -> None:
        self._clock = clock
        self._backoff = backoff
        self._rejected = PodHeap(lambda queued: (self._expiration(queued), sort_key(queued)))
        self._failed = PodHeap(self._expiration)

    def use(self, backoff: Backoff) -> None:
        """Use *backoff* for the next failures; what has begun does not change."""
        self._backoff = backoff

    def _expiration(self, queued: QueuedPodInfo) -> float:
        return self._backoff.expiration(queued)

    def is_backing_off(self, queued: QueuedPodInfo) -> bool:
        """Whether the backoff of *queued* is not over; the second of its end is part of it."""
        return self._backoff.expiration(queued) >= self._backoff.align(self._clock.now())

    @property
    def pops_early(self) -> bool:
        """Whether :meth:`pop_early` ever returns a pod."""
        return self._backoff.pops_early

    def add(self, queued: QueuedPodInfo, *, may_pop_early: bool = True) -> None:
        """Add a pod; :meth:`pop_early` returns it only if it was rejected, and may be."""
        rejected = queued.unschedulable_plugins or queued.pending_plugins
        (self._rejected if rejected and may_pop_early else self._failed).add(queued)

    def update(self, queued: QueuedPodInfo) -> None:
        """Restore the order after the pod in *queued*, which is here, has changed."""
        if self._rejected.get(queued.key) is queued:
            self._rejected.reorder(queued)

    def pop_early(self) -> QueuedPodInfo | None:
        """Take out the first rejected pod though its backoff is not over; failed ones never."""
        return self._rejected.pop() if self.pops_early else None

    def pop_expired(self) -> Iterator[QueuedPodInfo]:
        """Take out all pods whose backoff is over, one by one, the rejected ones first."""
        for heap in (self._rejected, self._failed):
            while (queued := heap.peek()) is not None and not self.is_backing_off(queued):
                heap.pop()
                yield queued

    def has_early(self) -> bool:
        """Whether :meth:`pop_early` would return a pod."""
        return self.pops_early and len(self._rejected) > 0

    def remove(self, key: str) -> QueuedPodInfo | None:
        return self._rejected.remove(key) or self._failed.remove(key)

    def get(self, key: str) -> QueuedPodInfo | None:
        return self._rejected.get(key) or self._failed.get(key)

    def __len__(self) -> int:
        return len(self._rejected) + len(self._failed)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """Yield the pods in no particular order."""
        yield from self._rejected
        yield from self._failed

    def in_order(self) -> list[QueuedPodInfo]:
        """Return the rejected pods, then the failed ones, each by the end of their backoff."""
        return self._rejected.in_order() + self._failed.in_order()

    def check_invariants(self) -> None:
        """Raise AssertionError if a pod is in the wrong heap; for tests and debugging."""
        self._rejected.check_invariants()
        self._failed.check_invariants()
        for queued in self._rejected:
            assert queued.unschedulable_plugins or queued.pending_plugins, queued.key
        for queued in self._failed:
            assert self._rejected.get(queued.key) is None, queued.key
