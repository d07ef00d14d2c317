"""The pods that have been pending for longest."""

from collections.abc import Iterable
from heapq import nsmallest
from itertools import chain
from typing import Final, NamedTuple

from berth.clock import Clock, rfc3339
from berth.framework.pod_info import QueuedPodInfo
from berth.metrics.overview import PendingPod
from berth.queue.sub_queues import SubQueues
from berth.tasks import PIECE, in_turns

TOLD: Final = 10
LONG: Final = 300.0
"""Seconds for which a pod may be pending before somebody should look."""


class _Found(NamedTuple):
    since: float
    """Seconds since 1970."""
    key: str
    uid: str


class OldestPending:
    """Finds them, and how many have been pending for more than LONG seconds.

    To look at all pods takes a millisecond for each PIECE of them. With more of them it is done
    once in as many seconds. Gated pods are left out: they wait because somebody wants them to.
    """

    def __init__(self, sub_queues: SubQueues, *, clock: Clock) -> None:
        self._sub_queues = sub_queues
        self._clock = clock
        self._next_look = float("-inf")
        self._found: list[_Found] = []
        self._long: int = 0

    async def look(self) -> None:
        """Look at the pods, if it is time to; others on the event loop get a turn meanwhile."""
        now = self._clock.monotonic()
        if now < self._next_look:
            return
        waiting = [*self._sub_queues]
        self._next_look = now + len(waiting) // PIECE
        found: list[_Found] = []
        self._long, is_long = 0, self._clock.now() - LONG
        async for some in in_turns(waiting):
            tried = [each for each in some if not each.gating_plugin]
            self._long += sum(each.pending_since < is_long for each in tried)
            found = nsmallest(TOLD, chain(found, _found(tried)))
        self._found = found

    @property
    def long_pending(self) -> int:
        """How many have been pending for more than LONG seconds, as of the last look."""
        return self._long

    def oldest(self) -> tuple[PendingPod, ...]:
        """Return the oldest, oldest first, without those that wait no more."""
        now = self._clock.now()
        return tuple(
            PendingPod(key, rfc3339(since), now - since)
            for since, key, uid in self._found
            if (queued := self._sub_queues.get(key)) is not None and queued.uid == uid
        )


def _found(pods: Iterable[QueuedPodInfo]) -> Iterable[_Found]:
    return (_Found(each.pending_since, each.key, each.uid) for each in pods)
