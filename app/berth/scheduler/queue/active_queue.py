"""Pods that are ready to be tried, the ones that are bound to fail after the others.

Decision (2026-11): a pod that asks for as much as one that has just failed, or for more, and is
otherwise like it, is passed over while there are others to try. Whom it would have to wait for, it
waits for all the same: nothing that others find depends on an attempt that fails. It has its own
attempt when there is nobody else, or in between, and in its place in the order as soon as the
failure of the lesser one is known no more.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from berth.runtime.clock import Clock
from berth.runtime.tasks import Steps, at_once
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.queue.failure_cache import FailureCache
from berth.scheduler.queue.heap import Entry, PodHeap, SortKey
from berth.scheduler.queue.nominator import Nominator

PATIENCE: Final = 2.0
"""Seconds for which pods that are bound to fail give way to all others."""
TRICKLE: Final = 32
"""After that, one of so many pods that are popped is one of them."""


class ActiveQueue(PodHeap):
    """Pods by sort key, without those that are passed over."""

    def __init__(
        self,
        sort_key: SortKey,
        known: FailureCache,
        nominator: Nominator,
        *,
        clock: Clock,
    ) -> None:
        super().__init__(sort_key)
        self._known = known
        self._nominator = nominator
        self._clock = clock
        self._passed_over: list[Entry] = []
        """A heap. Those that have been taken out otherwise are stale, as in the other one."""
        self._version = known.version
        self._since = 0.0
        """When pods began to be passed over, in monotonic seconds."""
        self._popped = 0

    def pop(self) -> QueuedPodInfo | None:
        """Take out the first pod that may get a node; if there is none, the first of all."""
        if not self.may_pass_over:
            return super().pop()
        self._take_back()
        if self._is_turn_of_passed_over():
            queued = self._pop_passed_over()
            if queued is not None:
                return queued
        at_once(self.passing_over())
        return self._pop_passed_over() if self.peek() is None else self._pop_peeked()

    @property
    def may_pass_over(self) -> bool:
        """Whether pods may be known to be bound to fail."""
        return bool(self._known or self._passed_over)

    def passing_over(self) -> Steps[None]:
        """Pass over pods, each a step, until the first one that may get a node is the first."""
        self._take_back()
        while (queued := self.peek()) is not None and self._is_bound_to_fail(queued):
            if not self._passed_over:
                self._since = self._clock.monotonic()
            heappush(self._passed_over, heappop(self._heap))
            yield

    def _take_back(self) -> None:
        """Look at all again if a failure is known no more."""
        if self._passed_over and self._version != self._known.version:
            self._heap += self._passed_over
            self._passed_over.clear()
            heapify(self._heap)
        self._version = self._known.version

    def _is_turn_of_passed_over(self) -> bool:
        self._popped += 1
        return (
            bool(self._passed_over)
            and not self._popped % TRICKLE
            and self._clock.monotonic() - self._since > PATIENCE
        )

    def _pop_passed_over(self) -> QueuedPodInfo | None:
        while self._passed_over:
            entry = heappop(self._passed_over)
            if self._entries.get(entry[2].key) is entry:
                del self._entries[entry[2].key]
                return entry[2]
        return None

    def _is_bound_to_fail(self, queued: QueuedPodInfo) -> bool:
        if self._nominator.nominated_node(queued.uid) is not None:
            return False
        return self._known.is_bound_to_fail(queued)

    def _drop_stale(self) -> None:
        heap = self._heap
        super()._drop_stale()
        if self._heap is not heap:
            self._passed_over.clear()  # they are in the new heap

    @property
    def has_promising(self) -> bool:
        """Whether there is a pod that was not passed over."""
        return self.peek() is not None

    def check_invariants(self) -> None:
        heap, self._heap = self._heap, sorted((*self._heap, *self._passed_over))
        try:
            super().check_invariants()
        finally:
            self._heap = heap
