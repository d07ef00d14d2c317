"""The pods that have been pending for longest."""

from heapq import nsmallest
from itertools import chain
from typing import Final, NamedTuple

from berth.runtime.clock import Clock, rfc3339
from berth.runtime.tasks import PIECE, in_turns
from berth.scheduler.metrics.overview import PendingPod
from berth.scheduler.queue.sub_queues import SubQueues

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

    To look at a PIECE of the pods takes 2 ms, or more if the garbage collector looks at what is
    made for each. With several of them it is done once in as many seconds. Gated pods are left
    out: they wait because somebody wants them to.
    """

    def __init__(self, sub_queues: SubQueues, *, clock: Clock) -> None:
        self._sub_queues = sub_queues
        self._clock = clock
        self._next_look = float("-inf")
        self._found: list[_Found] = []
        self.long_pending = 0
        """How many have been pending for more than LONG seconds, as of the last look."""

    async def look(self) -> None:
        """Look at the pods, if it is time to; others on the event loop get a turn meanwhile."""
        now = self._clock.monotonic()
        if now < self._next_look:
            return
        waiting = [*self._sub_queues]
        self._next_look = now + len(waiting) // PIECE
        oldest_yet: list[_Found] = []
        num_long, is_long = 0, self._clock.now() - LONG
        async for some in in_turns(waiting, piece=PIECE // 4):
            tried = [(queued.pending_since, queued) for queued in some if not queued.gating_plugin]
            num_long += sum(since < is_long for since, _ in tried)
            newest = oldest_yet[-1].since if len(oldest_yet) == TOLD else float("inf")
            older = [(since, queued) for since, queued in tried if since < newest]
            oldest = sorted(since for since, _ in older)[:TOLD]
            among = (
                _Found(since, queued.key, queued.uid)
                for since, queued in older
                if since <= oldest[-1]
            )
            oldest_yet = nsmallest(TOLD, chain(oldest_yet, among))
        self._found, self.long_pending = oldest_yet, num_long

    def oldest(self) -> tuple[PendingPod, ...]:
        """Return the oldest, oldest first, without those that wait no more."""
        now = self._clock.now()
        return tuple(
            PendingPod(key, rfc3339(since), now - since)
            for since, key, uid in self._found
            if (queued := self._sub_queues.get(key)) is not None and queued.uid == uid
        )
