"""The one place where API writes leave: by priority, bounded, merged per pod.

::

    deciding code --submit--> bind    [..........]  --\\
                              status  [key: write]  ----> workers --> API server
                              event   [..........]  --/

A worker that is free takes the next write of the first lane that has one and is below its own
limit. Binds may occupy every worker; the limits of the other lanes add up to fewer than there are,
so that a flood of status patches or events leaves room for binds. While there are binds, the other
lanes share a trickle, for it is not only workers that writes compete for, but this process's time
and the server's; unless one of them is half full.

Writes for one pod leave in order, whatever their lanes: one after the other, and what a bind
overtakes is out of date and is not made.
"""

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping
from enum import StrEnum
from itertools import chain
from typing import Any, Final, TypeVar

import msgspec

from berth.client.errors import FencedError, NotFoundError
from berth.clock import Clock

log = logging.getLogger(__name__)

T = TypeVar("T")
Write = Callable[[], Awaitable[T]]
"""Makes one API write when called; called once, when its turn has come."""

EXPECTED: Final = (FencedError, NotFoundError)
"""How writes end that nobody awaits and nobody misses: their pod is gone, or somebody else leads.

There may be as many of them at once as there are writes that wait, so warnings would bury others.
"""


class Lane(StrEnum):
    """First lane first."""

    BIND = "bind"
    STATUS = "status"
    EVENT = "event"


class Limits(msgspec.Struct, frozen=True):
    """How much of each lane may be under way, and how much may wait.

    ``trickle`` is for status and event lane together while there are binds. ``pending_events`` is
    kube-scheduler's (spec §2.11), ``pending_status`` more than there are pods. The bind lane needs
    none: each write in it has a caller that waits.
    """

    workers: int = 48
    status: int = 24
    event: int = 8
    trickle: int = 2
    pending_status: int = 100_000
    pending_events: int = 1_000

    def __post_init__(self) -> None:
        if self.workers <= self.status + self.event:
            raise ValueError(
                f"workers={self.workers} must exceed status={self.status} + event={self.event},"
                " or binds wait for them"
            )


class LaneStats(msgspec.Struct):
    """Counters of one lane since the start, and its state now. Times are in seconds."""

    depth: int = 0
    in_flight: int = 0
    done: int = 0
    failed: int = 0
    dropped: int = 0
    superseded: int = 0
    wait_total: float = 0.0
    wait_longest: float = 0.0


class Item(msgspec.Struct, eq=False):
    """One write that waits. ``key`` is the pod's if order matters, ``result`` is for a waiter."""

    lane: Lane
    write: Write[Any]
    submitted_at: float
    key: Hashable = None
    result: asyncio.Future[Any] | None = None
    is_withdrawn: bool = False


class LaneState(msgspec.Struct):
    limit: int
    room: int
    """How many may wait."""
    pending: deque[Item] = msgspec.field(default_factory=deque)
    stats: LaneStats = msgspec.field(default_factory=LaneStats)


DEFAULT_LIMITS: Final = Limits()


class WriteLanes:
    """Takes writes without waiting and makes them from a few long-lived workers.

    ``submit_*`` may be called from code that decides; it never awaits. Somebody must own
    :meth:`run`.
    """

    def __init__(self, *, clock: Clock, limits: Limits = DEFAULT_LIMITS) -> None:
        self._clock = clock
        self._limits = limits
        self._lanes = {
            Lane.BIND: LaneState(limits.workers, sys.maxsize),
            Lane.STATUS: LaneState(limits.status, limits.pending_status),
            Lane.EVENT: LaneState(limits.event, limits.pending_events),
        }
        self._by_key: dict[Hashable, Item] = {}  # status writes that wait, whether queued or held
        self._keys_in_flight: set[Hashable] = set()
        self._held: dict[Hashable, list[Item]] = {}  # until another write for that pod is done
        self._idle: deque[asyncio.Future[None]] = deque()

    async def run(self) -> None:
        """Make the submitted writes, for ever; ends by cancellation, which cancels who waits."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for number in range(self._limits.workers):
                    tasks.create_task(self._work(), name=f"write-lanes-{number}")
        finally:
            pending = [item for state in self._lanes.values() for item in state.pending]
            for item in (*pending, *chain.from_iterable(self._held.values())):
                if item.result is not None:
                    item.result.cancel()

    async def bind(self, write: Write[T], *, pod_key: Hashable = None) -> T:
        """Make a write ahead of all others; return its result or raise its error.

        For bindings and for what a binding waits for. With a *pod_key* it takes the place of a
        status write for that pod, and is made after one that has begun. When the caller is
        cancelled, a write that has begun runs on, since a request cannot be taken back; one that
        has not is never made.
        """
        if pod_key is not None and self._withdraw(pod_key):
            self._lanes[Lane.STATUS].stats.superseded += 1
        return await self._awaited(Lane.BIND, write, key=pod_key)

    async def evict(self, write: Write[T]) -> T:
        """Make a write in the status lane, and return or raise as :meth:`bind` does."""
        return await self._awaited(Lane.STATUS, write)

    def submit_status(self, pod_key: Hashable, write: Write[object]) -> None:
        """Have *write* made; it takes the place of one for the same pod that has not begun.

        Writes for one pod are made one after the other. An error is logged: the next attempt at the
        pod writes its status again. For the same reason the oldest write is dropped when too many
        wait.
        """
        stats = self._lanes[Lane.STATUS].stats
        waiting = self._by_key.get(pod_key)
        if waiting is not None:
            waiting.write = write
            stats.superseded += 1
            return
        item = Item(Lane.STATUS, write, self._clock.monotonic(), key=pod_key)
        self._by_key[pod_key] = item
        stats.depth += 1
        self._enqueue(item)
        if len(self._by_key) > self._lanes[Lane.STATUS].room:
            self._drop_oldest_status()

    def submit_event(self, write: Write[object]) -> bool:
        """Have *write* made when nothing else is waiting; return False if it was dropped instead.

        Dropped, and counted, when as many events wait as may. An error of the write is logged.
        """
        state = self._lanes[Lane.EVENT]
        if len(state.pending) >= state.room:
            state.stats.dropped += 1
            return False
        state.stats.depth += 1
        self._enqueue(Item(Lane.EVENT, write, self._clock.monotonic()))
        return True

    @property
    def stats(self) -> Mapping[Lane, LaneStats]:
        """Each lane's counters; for metrics and debug, not to be changed."""
        return {lane: state.stats for lane, state in self._lanes.items()}

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is under way."""
        return not any(s.depth or s.in_flight for s in self.stats.values())

    @property
    def is_binding(self) -> bool:
        """Whether there are binds, under way or about to be."""
        stats = self._lanes[Lane.BIND].stats
        return stats.depth > 0 or stats.in_flight > 0

    @property
    def is_behind(self) -> bool:
        """Whether so many writes wait that one more event might be dropped before long."""
        most = self._limits.pending_events // 4
        return any(self._lanes[lane].stats.depth > most for lane in (Lane.STATUS, Lane.EVENT))

    async def _awaited(self, lane: Lane, write: Write[T], *, key: Hashable = None) -> T:
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._lanes[lane].stats.depth += 1
        item = Item(lane, write, self._clock.monotonic(), key=key, result=result)
        self._enqueue(item)
        return await result

    def _enqueue(self, item: Item) -> None:
        self._lanes[item.lane].pending.append(item)
        self._wake_one()

    def _wake_one(self) -> None:
        while self._idle:
            worker = self._idle.popleft()
            if not worker.done():
                worker.set_result(None)
                return

    def _drop_oldest_status(self) -> None:
        item = self._withdraw(next(iter(self._by_key)))
        state = self._lanes[Lane.STATUS]
        state.stats.dropped += 1
        if item is not None and item in state.pending:  # and near its front
            state.pending.remove(item)

    def _withdraw(self, key: Hashable) -> Item | None:
        """Do not make the status write that waits for a pod, if there is one; return it.

        Its place is passed over when its turn comes.
        """
        item = self._by_key.pop(key, None)
        if item is not None:
            item.is_withdrawn = True
            self._lanes[Lane.STATUS].stats.depth -= 1
        return item

    def _gives_way(self, state: LaneState) -> bool:
        """Whether the lane has to wait for binds; not if writes might be dropped before long."""
        if state is self._lanes[Lane.BIND] or not self.is_binding:
            return False
        if state.stats.depth > state.room // 2:
            return False
        others = (self._lanes[lane].stats.in_flight for lane in (Lane.STATUS, Lane.EVENT))
        return sum(others) >= self._limits.trickle

    def _next(self) -> Item | None:
        """Take the write whose turn it is out of its lane and count it as under way."""
        for state in self._lanes.values():
            while state.pending and state.stats.in_flight < state.limit:
                if self._gives_way(state):
                    break
                item = state.pending.popleft()
                if item.is_withdrawn:
                    continue
                if item.key in self._keys_in_flight:
                    self._held.setdefault(item.key, []).append(item)
                    continue
                state.stats.depth -= 1
                if self._by_key.get(item.key) is item:
                    del self._by_key[item.key]
                if item.result is not None and item.result.cancelled():
                    continue
                if item.key is not None:
                    self._keys_in_flight.add(item.key)
                state.stats.in_flight += 1
                waited = self._clock.monotonic() - item.submitted_at
                state.stats.wait_total += waited
                state.stats.wait_longest = max(state.stats.wait_longest, waited)
                return item
        return None

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            item = self._next()
            if item is None:
                called = loop.create_future()
                self._idle.append(called)
                await called
                continue
            try:
                await self._make(item)
            finally:
                self._finished(item)

    async def _make(self, item: Item) -> None:
        """Make one write and give its ending to whoever waits."""
        stats = self._lanes[item.lane].stats
        result = item.result
        try:
            answer = await item.write()
        except asyncio.CancelledError:
            if result is not None:
                result.cancel()
            if asyncio.current_task().cancelling():  # type: ignore[union-attr] # a worker is a task
                raise
            stats.failed += 1  # not we were cancelled, but something that the write waited for
        except Exception as exc:  # noqa: BLE001 - a worker outlives any write; told or logged
            stats.failed += 1
            if result is None:
                level = logging.DEBUG if isinstance(exc, EXPECTED) else logging.WARNING
                log.log(level, "API write failed", extra={"lane": item.lane, "error": str(exc)})
            elif not result.done():
                result.set_exception(exc)
        else:
            stats.done += 1
            if result is not None and not result.done():
                result.set_result(answer)

    def _finished(self, item: Item) -> None:
        self._lanes[item.lane].stats.in_flight -= 1
        if item.key is not None:
            self._keys_in_flight.discard(item.key)
            for held in reversed(self._held.pop(item.key, ())):
                self._lanes[held.lane].pending.appendleft(held)
                self._wake_one()
        if item.lane is Lane.BIND and not self.is_binding:
            for lane in (Lane.STATUS, Lane.EVENT):  # they gave way
                for _ in range(min(len(self._lanes[lane].pending), self._lanes[lane].limit)):
                    self._wake_one()
