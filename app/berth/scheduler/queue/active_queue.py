"""Pods that are ready to be tried, the ones that are bound to fail after the others.

Decision (2026-11): a pod that asks for as much as one that has just failed, or for more, and is
otherwise like it, is passed over while there are others to try. Whom it would have to wait for, it
waits for all the same: nothing that others find depends on an attempt that fails. It has its own
attempt when there is nobody else, or in between, and in its place in the order as soon as the
failure of the lesser one is known no more. If its own signature comes to be known to fail, too, it
stays where it is.

Decision (2026-11): those that are passed over are kept by what they have in common, in order. Where
thousands wait, failures become known and are forgotten with every pod that goes; looking at each of
those that wait then would take longer than until the next pod goes.
"""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Hashable
from functools import reduce
from heapq import heappop, heappush
from itertools import chain
from operator import and_
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import astuple

from berth.runtime.clock import Clock
from berth.runtime.tasks import Steps, at_once
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.framework.pod_signature import Demand, Requests
from berth.scheduler.queue.failure_cache import FailureCache
from berth.scheduler.queue.heap import Entry, PodHeap, SortKey
from berth.scheduler.queue.nominator import Nominator

PATIENCE: Final = 2.0
"""Seconds for which pods that are bound to fail give way to all others."""
TRICKLE: Final = 32
"""After that, one of so many pods that are popped is one of them."""
MOST_KINDS: Final = 64
"""Pods of so many kinds are passed over at once, for each kind is looked at when a failure becomes
known or is forgotten. The others keep their place."""


_UNKNOWN: Final = -1
"""In place of a version: what follows from the failures is to be found out again."""


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
        self._kinds: dict[Hashable, _Kind] = {}
        """Those that are passed over, by what they have in common. Those that have been taken out
        otherwise are stale, as in the heap."""
        self._promising: Entry | None = None
        """The first of them that may get a node."""
        self._version = known.version
        """Of the failures that this follows from."""
        self._since = 0.0
        """When pods began to be passed over, in monotonic seconds."""
        self._popped = 0

    def pop(self) -> QueuedPodInfo | None:
        """Take out the first pod that may get a node; if there is none, the first of all."""
        if not self.may_pass_over:
            return super().pop()
        entry: Entry | None = None
        if self._is_turn_of_passed_over():
            entry = self._first_passed_over()
        if entry is None:
            at_once(self.passing_over())
            entry = self._first_promising() or self._first_passed_over()
        if entry is None:
            return None
        del self._entries[entry[2].key]
        return entry[2]

    def reorder(self, queued: QueuedPodInfo) -> None:
        entry = self._entries[queued.key]
        super().reorder(queued)
        if any(kind.remove(entry) for kind in self._kinds.values()):  # it may be of another now
            self._version = _UNKNOWN
            if self._is_here(entry):
                heappush(self._heap, entry)

    @property
    def may_pass_over(self) -> bool:
        """Whether pods may be known to be bound to fail."""
        return bool(self._known or self._kinds)

    def passing_over(self) -> Steps[None]:
        """Pass over pods, each a step, until the first one that may get a node is the first."""
        while (queued := self.peek()) is not None:
            demand = self._bound_to_fail(queued)
            if demand is None:
                break
            kind = self._kinds.get(demand.of)
            if kind is None:
                if len(self._kinds) >= MOST_KINDS:
                    break
                if not self._kinds:
                    self._since = self._clock.monotonic()
                kind = self._kinds[demand.of] = _Kind()
            kind.add(heappop(self._heap), demand.requests)
            yield

    def _is_turn_of_passed_over(self) -> bool:
        self._popped += 1
        return (
            bool(self._kinds)
            and not self._popped % TRICKLE
            and self._clock.monotonic() - self._since > PATIENCE
        )

    def _first_promising(self) -> Entry | None:
        """Return the first that may get a node, passed over or not."""
        passed_over = self._first_taken_back()
        if self.peek() is None or (passed_over is not None and passed_over < self._heap[0]):
            return passed_over
        return self._heap[0]

    def _first_taken_back(self) -> Entry | None:
        """Return the first that was passed over, and may get a node now."""
        known, version = self._promising, self._known.version
        if version != self._version or (known is not None and not self._is_here(known)):
            self._version = version
            firsts = [self._first_of(of, self._known.least(of)) for of in [*self._kinds]]
            self._promising = min((first for first in firsts if first is not None), default=None)
        return self._promising

    def _first_passed_over(self) -> Entry | None:
        firsts = [self._first_of(of, ()) for of in [*self._kinds]]
        return min((first for first in firsts if first is not None), default=None)

    def _first_of(self, of: Hashable, least: Collection[Requests]) -> Entry | None:
        """Return the first pod of a kind that requests less than each of *least*, of something."""
        kind = self._kinds[of]
        while (entry := kind.first(least)) is not None and not self._is_here(entry):
            kind.remove(entry)
        if not len(kind):
            del self._kinds[of]
        return entry

    def _is_here(self, entry: Entry) -> bool:
        return self._entries.get(entry[2].key) is entry

    def _bound_to_fail(self, queued: QueuedPodInfo) -> Demand | None:
        if self._nominator.nominated_node(queued.uid) is not None:
            return None
        return self._known.bound_to_fail(queued)

    @property
    def num_kept(self) -> int:
        return super().num_kept + sum(map(len, self._kinds.values()))

    def _rebuild(self) -> None:
        super()._rebuild()
        self._kinds.clear()
        self._promising = None

    @property
    def has_promising(self) -> bool:
        """Whether there is a pod that was not passed over, or would not be now."""
        return self._first_promising() is not None

    def check_invariants(self) -> None:
        passed_over = chain.from_iterable(kind.entries for kind in self._kinds.values())
        for kind in self._kinds.values():
            kind.check_invariants()
        heap, self._heap = self._heap, sorted((*self._heap, *passed_over))
        try:
            super().check_invariants()
        finally:
            self._heap = heap


class _Kind:
    """Pods that differ in their requests only, in the order of the queue."""

    __slots__ = ("_columns", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._columns = [array("q") for _ in msgspec.structs.fields(Requests)]
        """How much of each resource they request."""

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, entry: Entry, requests: Requests) -> None:
        at = bisect_left(self.entries, entry)
        self.entries.insert(at, entry)
        for column, amount in zip(self._columns, astuple(requests), strict=True):
            column.insert(at, amount)

    def remove(self, entry: Entry) -> bool:
        """Take out *entry*; False if it is not here."""
        at = bisect_left(self.entries, entry)
        if at == len(self.entries) or self.entries[at] is not entry:
            return False
        del self.entries[at]
        for column in self._columns:
            del column[at]
        return True

    def first(self, least: Collection[Requests]) -> Entry | None:
        """Return the first that requests less of something than each of *least*."""
        if not least or not self.entries:
            return self.entries[0] if self.entries else None
        columns = [np.frombuffer(column, np.int64) for column in self._columns]
        fails = np.zeros(len(self.entries), bool)
        for requests in least:
            amounts = zip(columns, astuple(requests), strict=True)
            fails |= reduce(and_, (column >= amount for column, amount in amounts))
        at = int(fails.argmin())
        return None if fails[at] else self.entries[at]

    def check_invariants(self) -> None:
        """Raise AssertionError if the columns disagree; for tests and debugging."""
        assert self.entries == sorted(self.entries)
        assert {len(column) for column in self._columns} == {len(self.entries)}
