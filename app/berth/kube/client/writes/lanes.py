"""The one place where API writes leave: by priority, bounded, merged per pod.

::

    deciding code --submit--> bind    [..........]  --\\
                              status  [key: write]  ----> turns --> API server
                              event   [..........]  --/

When one of the ``workers`` places is free, the next write of the first lane that has one and is
below its own limit gets its turn. Binds may take every place; the limits of the other lanes add up
to fewer than there are, so that a flood of status patches or events leaves room for binds. While
there are binds, the other lanes share a trickle, for it is not only places that writes compete for,
but this process's time and the server's; unless one of them is half full.

A write that somebody awaits is made by the task that awaits it, others by a few long-lived tasks.
Events that wait are handed to their writer several at a time.

Writes for one pod leave in order, whatever their lanes: one after the other, and what a bind
overtakes is out of date and is not made.
"""

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from enum import StrEnum
from itertools import chain
from typing import Any, Final, TypeVar

import msgspec

from berth.kube.client.errors import FencedError, NotFoundError
from berth.runtime.clock import Clock

log = logging.getLogger(__name__)

T = TypeVar("T")
E = TypeVar("E")
Write = Callable[[], Awaitable[T]]
"""Makes one API write when called; called once, when its turn has come."""
WriteEvents = Callable[[list[E]], Awaitable[object]]
"""Writes some events; called when their turn has come."""

EXPECTED: Final = (FencedError, NotFoundError)
"""How writes end that nobody awaits and nobody misses: their pod is gone, or somebody else leads.

There may be as many of them at once as there are writes that wait, so warnings would bury others.
"""


class Lane(StrEnum):
    """First lane first."""

    BIND = "bind"
    STATUS = "status"
    EVENT = "event"


EVENTS_AT_ONCE: Final = 16
"""Events that one call of their writer is given, at most."""


class Limits(msgspec.Struct, frozen=True):
    """How much of each lane may be under way, and how much may wait.

    ``event`` counts calls of writers, of which each writes up to :data:`EVENTS_AT_ONCE`, one after
    the other. ``trickle`` is for status and event lane together while there are binds. As many
    events as binds may be under way when events have fallen behind: each bind makes one, so that
    they fall behind no further. ``pending_events`` is as many as are remembered for their repeats.
    kube-scheduler drops events when 1000 are pending (spec §2.11), which are those not yet handed
    to its client: how many wait there for the rate limit has no bound. ``pending_status`` is more
    than there are pods. The bind lane needs none: each write in it has a caller that waits.
    """

    workers: int = 56
    status: int = 24
    event: int = 16
    trickle: int = 2
    pending_status: int = 100_000
    pending_events: int = 10_000
    behind: int = 250
    """With more status patches or events than this waiting, the lanes are behind."""

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

    def waited(self, seconds: float) -> None:
        """Note that a write is begun, so long after it was submitted."""
        self.depth -= 1
        self.in_flight += 1
        self.wait_total += seconds
        self.wait_longest = max(self.wait_longest, seconds)


class Item(msgspec.Struct, eq=False):
    """One write, or several events at once. ``key`` is the pod's if order matters.

    ``turn`` is for a caller that makes the write itself. Others have ``write``, or ``write_events``
    with the ``events``.
    """

    lane: Lane
    submitted_at: float
    key: Hashable = None
    turn: asyncio.Future[None] | None = None
    write: Write[object] | None = None
    write_events: WriteEvents[Any] | None = None
    events: list[Any] = []
    is_withdrawn: bool = False

    @property
    def count(self) -> int:
        """How many writes it is."""
        return len(self.events) or 1

    async def make(self) -> None:
        """Make the write, or all of them."""
        if self.write_events is not None:
            await self.write_events(self.events)
        elif self.write is not None:
            await self.write()


class LaneState(msgspec.Struct):
    limit: int
    room: int
    """How many may wait."""
    busy: int = 0
    """How many are under way; events that are written together are one."""
    pending: deque[Item] = msgspec.field(default_factory=deque)
    stats: LaneStats = msgspec.field(default_factory=LaneStats)


DEFAULT_LIMITS: Final = Limits()


class WriteLanes:
    """Takes writes without waiting, and gives each its turn.

    ``submit_*`` may be called from code that decides; it never awaits. Somebody must own
    :meth:`run`.
    """

    def __init__(self, *, clock: Clock, limits: Limits = DEFAULT_LIMITS) -> None:
        self._clock = clock
        self._limits = limits
        self._bind = LaneState(limits.workers, sys.maxsize)
        self._status = LaneState(limits.status, limits.pending_status)
        self._event = LaneState(limits.event, limits.pending_events)
        self._lanes = {Lane.BIND: self._bind, Lane.STATUS: self._status, Lane.EVENT: self._event}
        self._busy = 0  # places that are taken, of all lanes
        self._by_key: dict[Hashable, Item] = {}  # status writes that wait, whether queued or held
        self._keys_in_flight: set[Hashable] = set()
        self._held: dict[Hashable, list[Item]] = {}  # until another write for that pod is done
        self._idle: deque[asyncio.Future[Item]] = deque()

    async def run(self) -> None:
        """Make what nobody awaits, for ever; ends by cancellation, which cancels who waits."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._limits.status + self._limits.event):
                tasks.create_task(self._work(), name=f"write-lanes-{number}")
            try:
                await asyncio.get_running_loop().create_future()
            finally:  # before the end of what is under way gives somebody a turn
                pending = [item for state in self._lanes.values() for item in state.pending]
                for item in (*pending, *chain.from_iterable(self._held.values())):
                    if item.turn is not None:
                        item.turn.cancel()

    def bind(self, write: Write[T], *, pod_key: Hashable = None) -> Coroutine[Any, Any, T]:
        """Make a write ahead of all others; return its result or raise its error.

        For bindings and for what a binding waits for. With a *pod_key* it takes the place of a
        status write for that pod, and is made after one that has begun. It is made by the caller's
        task: when that is cancelled the write is, too, and only the server knows what came of it.
        """
        if pod_key is not None and self._withdraw(pod_key):
            self._status.stats.superseded += 1
        return self._in_turn(Lane.BIND, self._bind, write, key=pod_key)

    def evict(self, write: Write[T]) -> Coroutine[Any, Any, T]:
        """Make a write in the status lane, and return or raise as :meth:`bind` does."""
        return self._in_turn(Lane.STATUS, self._status, write)

    def submit_status(self, pod_key: Hashable, write: Write[object]) -> None:
        """Have *write* made; it takes the place of one for the same pod that has not begun.

        Writes for one pod are made one after the other. An error is logged: the next attempt at the
        pod writes its status again. For the same reason the oldest write is dropped when too many
        wait.
        """
        waiting = self._by_key.get(pod_key)
        if waiting is not None:
            waiting.write = write
            self._status.stats.superseded += 1
            return
        item = Item(Lane.STATUS, self._clock.monotonic(), key=pod_key, write=write)
        self._by_key[pod_key] = item
        self._enqueue(item, self._status)
        if len(self._by_key) > self._status.room:
            self._drop_oldest_status()

    def submit_event(self, event: E, write: WriteEvents[E]) -> bool:
        """Have *event* written when nothing else is waiting; return False if it was dropped.

        Dropped, and counted, when as many events wait as may. Those that follow each other and have
        the same *write* are handed to it together. Its error is logged.
        """
        state = self._event
        if len(state.pending) >= state.room:
            state.stats.dropped += 1
            return False
        now = self._clock.monotonic()
        self._enqueue(Item(Lane.EVENT, now, write_events=write, events=[event]), state)
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
        stats = self._bind.stats
        return stats.depth > 0 or stats.in_flight > 0

    @property
    def is_behind(self) -> bool:
        """Whether so many writes wait that what is less urgent should not be added now."""
        most = self._limits.behind
        return self._status.stats.depth > most or self._event.stats.depth > most

    async def _in_turn(
        self, lane: Lane, state: LaneState, write: Write[T], *, key: Hashable = None
    ) -> T:
        item = Item(lane, self._clock.monotonic(), key=key)
        state.stats.depth += 1
        if not state.pending and key not in self._keys_in_flight and self._may_begin(state):
            self._begin(item, state)
        else:
            turn = item.turn = asyncio.get_running_loop().create_future()
            state.pending.append(item)
            self._give_turns()
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self._finished(item, state)  # its turn came at the same moment
                raise
        try:
            answer = await write()
        except BaseException:
            state.stats.failed += 1
            raise
        else:
            state.stats.done += 1
            return answer
        finally:
            self._finished(item, state)

    def _enqueue(self, item: Item, state: LaneState) -> None:
        state.stats.depth += 1
        state.pending.append(item)
        self._give_turns()

    def _drop_oldest_status(self) -> None:
        item = self._withdraw(next(iter(self._by_key)))
        state = self._status
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
            self._status.stats.depth -= 1
        return item

    def _may_begin(self, state: LaneState) -> bool:
        """Whether one more write of a lane may be under way."""
        if state.busy >= state.limit or self._busy >= self._limits.workers:
            return False
        if state is self._bind or not self.is_binding or state.stats.depth > state.room // 2:
            return True
        return self._status.busy + self._event.busy < self._limits.trickle

    def _give_turns(self) -> None:
        """Have all writes begun that may."""
        for state in (self._bind, self._status, self._event):
            while state.pending and self._may_begin(state):
                item = state.pending[0]
                while self._idle and self._idle[0].done():  # a worker that was cancelled
                    self._idle.popleft()
                if item.turn is None and not self._idle:
                    break  # nobody is there to make it
                state.pending.popleft()
                if item.is_withdrawn:
                    continue
                if item.turn is not None and item.turn.cancelled():
                    state.stats.depth -= 1
                    continue
                if item.key in self._keys_in_flight:
                    self._held.setdefault(item.key, []).append(item)
                    continue
                if self._by_key.get(item.key) is item:
                    del self._by_key[item.key]
                self._begin(item, state)
                if item.turn is not None:
                    item.turn.set_result(None)
                else:
                    self._idle.popleft().set_result(item)

    def _begin(self, item: Item, state: LaneState) -> None:
        """Count *item* as under way, along with the events that are written together with it."""
        self._busy += 1
        state.busy += 1
        if item.key is not None:
            self._keys_in_flight.add(item.key)
        now = self._clock.monotonic()
        state.stats.waited(now - item.submitted_at)
        if item.write_events is None:
            return
        pending = state.pending
        while (
            pending
            and len(item.events) < EVENTS_AT_ONCE
            and pending[0].write_events == item.write_events
        ):
            following = pending.popleft()
            state.stats.waited(now - following.submitted_at)
            item.events += following.events

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            called = loop.create_future()
            self._idle.append(called)
            self._give_turns()
            item = await called
            state = self._lanes[item.lane]
            try:
                await self._make(item, state.stats)
            finally:
                self._finished(item, state)

    async def _make(self, item: Item, stats: LaneStats) -> None:
        try:
            await item.make()
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr] # a worker is a task
                raise
            stats.failed += item.count  # not we, but something that the write waited for
        except Exception as exc:  # noqa: BLE001 - a worker outlives any write
            stats.failed += item.count
            level = logging.DEBUG if isinstance(exc, EXPECTED) else logging.WARNING
            log.log(level, "API write failed", extra={"lane": item.lane, "error": str(exc)})
        else:
            stats.done += item.count

    def _finished(self, item: Item, state: LaneState) -> None:
        self._busy -= 1
        state.busy -= 1
        state.stats.in_flight -= item.count
        if item.key is not None:
            self._keys_in_flight.discard(item.key)
            for held in reversed(self._held.pop(item.key, ())):
                self._lanes[held.lane].pending.appendleft(held)
        self._give_turns()
