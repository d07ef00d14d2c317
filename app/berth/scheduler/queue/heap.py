"""A priority queue of pods that also finds, replaces and removes them by key."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Any

from berth.runtime.tasks import in_turns
from berth.scheduler.framework.pod_info import QueuedPodInfo

SortKey = Callable[[QueuedPodInfo], Any]
"""What to order by, smallest first; must not change while the pod is in the heap."""

Entry = tuple[Any, int, QueuedPodInfo]
_STALE_ALLOWED = 64


class PodHeap:
    """Queued pods by ``namespace/name``, smallest sort key first, equal ones in order of arrival.

    Removed and replaced entries stay in the heap as stale ones until they come up or outnumber the
    rest, so that adding and removing cost O(log n) amortised.
    """

    def __init__(self, sort_key: SortKey) -> None:
        self._sort_key = sort_key
        self._entries: dict[str, Entry] = {}
        self._heap: list[Entry] = []
        self._sequence = 0

    def add(self, queued: QueuedPodInfo) -> None:
        """Insert *queued*; a pod of the same key is replaced."""
        self._sequence += 1
        entry = (self._sort_key(queued), self._sequence, queued)
        self._entries[queued.key] = entry
        heappush(self._heap, entry)
        self._drop_stale()

    def reorder(self, queued: QueuedPodInfo) -> None:
        """Put *queued*, which is here, where it belongs now that its pod has changed."""
        if self._entries[queued.key][0] != self._sort_key(queued):
            self.add(queued)

    def peek(self) -> QueuedPodInfo | None:
        """Return the first pod and leave it in place."""
        heap, entries = self._heap, self._entries
        while heap:
            queued = heap[0][2]
            if entries.get(queued.key) is heap[0]:
                return queued
            heappop(heap)
        return None

    def pop(self) -> QueuedPodInfo | None:
        """Take out the first pod."""
        return None if self.peek() is None else self._pop_peeked()

    def _pop_peeked(self) -> QueuedPodInfo:
        """Take out the pod that :meth:`peek` has just returned."""
        queued = heappop(self._heap)[2]
        del self._entries[queued.key]
        return queued

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take out the pod of *key*; None if it is not here."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._drop_stale()
        return entry[2]

    def get(self, key: str) -> QueuedPodInfo | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[2]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """Yield the pods in no particular order."""
        return (entry[2] for entry in self._entries.values())

    def in_order(self) -> list[QueuedPodInfo]:
        """Return the pods in the order in which they would come out; costs a sort."""
        return [entry[2] for entry in sorted(self._entries.values())]

    def first(self) -> QueuedPodInfo | None:
        """Return what :meth:`peek` would, and change nothing; linear in the number of pods."""
        entries = self._entries.values()
        return min(entries)[2] if entries else None

    def ahead_of(self, key: str) -> int:
        """Return how many pods would come out before that of *key*, which is here.

        Linear in the number of pods.
        """
        return sum(map(self._entries[key].__gt__, self._entries.values()))

    async def all_ahead_of(self, keys: Iterable[str]) -> dict[str, int]:
        """Return how many pods would come out before each of *keys*; unknown keys are left out.

        Linear in the number of pods, without a sort. Yields to others meanwhile.
        """
        asked = sorted(self._entries[key] for key in keys if key in self._entries)
        if not asked:
            return {}
        counts: Counter[int] = Counter()
        async for entries in in_turns(list(self._entries.values())):
            counts.update(map(partial(bisect_right, asked), entries))
        before = accumulate(counts[place] for place in range(len(asked)))
        return {entry[2].key: ahead for entry, ahead in zip(asked, before, strict=True)}

    def check_invariants(self) -> None:
        """Raise AssertionError if heap and index disagree; for tests and debugging."""
        heap = self._heap
        assert all(heap[(at - 1) // 2][:2] < heap[at][:2] for at in range(1, len(heap)))
        in_heap = {id(entry) for entry in heap}
        for key, entry in self._entries.items():
            assert entry[2].key == key, (entry[2].key, key)
            assert id(entry) in in_heap, key
            assert entry[0] == self._sort_key(entry[2]), f"{key}: sort key changed in the heap"

    def _drop_stale(self) -> None:
        if self.num_kept > 2 * len(self._entries) + _STALE_ALLOWED:
            self._rebuild()

    @property
    def num_kept(self) -> int:
        """Return how many entries there are, with stale ones."""
        return len(self._heap)

    def _rebuild(self) -> None:
        """Keep only what is not stale."""
        self._heap = list(self._entries.values())
        heapify(self._heap)
