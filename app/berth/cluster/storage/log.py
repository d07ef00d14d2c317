"""The log of recent changes of one storage key, and the places of its watchers."""

import asyncio
import math
from bisect import bisect_right
from enum import StrEnum
from typing import Final

from berth.cluster.storage.stored import Stored

LOG_CAPACITY = 20_000
"""Changes remembered per storage key: seconds of lag at full load."""

LOG_BYTES = 64 * 1024 * 1024
"""How large the objects in the log of one storage key may be together: who changes large objects
again and again shortens the log."""

LOGS_BYTES: Final = 512 * 1024 * 1024
"""The same of all logs together: a tenant may write objects of many kinds."""

GATHERING_TURNS: Final = 3
"""Turns of the event loop from a change until watchers look. Much of what is written meanwhile
comes with it: a third as many chunks under the load of ``berth up``, at both ends."""


class ExpiredError(Exception):
    """The log does not reach back to what was asked, or what was asked is yet to come."""


class ChangeType(StrEnum):
    """What a watch event says, in the words of the API."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change:
    """One write: ``stored`` is the object after it (of a deletion: its last state, at the
    deletion's version), ``old`` the one before."""

    __slots__ = ("old", "stored", "type")

    def __init__(self, change: ChangeType, stored: Stored, old: Stored | None) -> None:
        self.type = change
        self.stored = stored
        self.old = old


class Log:
    """The latest changes of one storage key, in order. Positions count from the first ever."""

    def __init__(self, capacity: int, size: int = LOG_BYTES, *, compacted: int = 0) -> None:
        """*capacity* is in changes, *size* in bytes of their objects.

        Changes up to version *compacted* are forgotten already.
        """
        self._capacity = capacity
        self._size_limit = size
        self._size = 0
        self._changes: list[Change] = []
        self._versions: list[int] = []
        self._start = 0
        self.published = 0
        """The position up to which watchers may read."""
        self.compacted = compacted
        """The version of the latest forgotten change."""
        self._waiters: dict[asyncio.Future[None], float] = {}
        """Those who wait for a change, and until when."""
        self.first_due = math.inf
        """Nobody waits only until an earlier time."""
        self._is_gathering = False

    @property
    def end(self) -> int:
        """The position of the next change."""
        return self._start + len(self._changes)

    @property
    def size(self) -> int:
        """The bytes of the objects in the log."""
        return self._size

    def halve(self) -> None:
        """Forget half of the changes, but not the latest."""
        if len(self._changes) > 1:
            self._forget(len(self._changes) // 2)

    def clear(self) -> None:
        """Forget all changes."""
        if self._changes:
            self._forget(len(self._changes))

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self._versions.append(change.stored.version)
        self._size += len(change.stored.body)
        if len(self._changes) >= 2 * self._capacity:
            # Halving now and then keeps appending cheap; never fewer than the capacity remain.
            self._forget(self._capacity)
        elif self._size > self._size_limit:
            self.halve()

    def publish(self, end: int) -> None:
        """Show watchers the changes before position *end*."""
        self.published = end
        if self._waiters and not self._is_gathering:
            self._is_gathering = True
            self._wake_later(GATHERING_TURNS)

    def _wake_later(self, turns: int) -> None:
        """Wake the waiters in so many turns of the event loop."""
        if turns:
            asyncio.get_running_loop().call_soon(self._wake_later, turns - 1)
        else:
            self.wake()

    def _forget(self, count: int) -> None:
        """Drop the oldest changes."""
        self.compacted = self._versions[count - 1]
        self._size -= sum(len(change.stored.body) for change in self._changes[:count])
        del self._changes[:count]
        del self._versions[:count]
        self._start += count

    def after(self, version: int) -> int:
        """Return the position of the first change newer than *version*."""
        if version < self.compacted:
            raise ExpiredError(f"too old resource version: {version} ({self.compacted})")
        return self._start + bisect_right(self._versions, version)

    def read(self, position: int, limit: int, size: float = math.inf) -> list[Change]:
        """Return at most *limit* changes from *position* on.

        Their objects have *size* bytes together, or it is one change.
        """
        if position < self._start:
            raise ExpiredError(f"the watcher is too slow: {self.compacted} is compacted")
        first = position - self._start
        changes = self._changes[first : first + limit]
        total = 0
        for count, change in enumerate(changes):
            total += len(change.stored.body)
            if total > size and count:
                return changes[:count]
        return changes

    def since(self, version: int) -> list[Change]:
        """Return all changes newer than *version*."""
        return self.read(self.after(version), len(self._changes))

    def wake(self) -> None:
        """Let everyone who waits look again."""
        self._is_gathering = False
        for future in self._waiters:
            if not future.done():
                future.set_result(None)
        self._waiters.clear()
        self.first_due = math.inf

    def wake_due(self, now: float) -> None:
        """Let those look again who asked to be woken at *now* or before."""
        self.first_due = math.inf
        for future, until in self._waiters.items():
            if until > now:
                self.first_due = min(self.first_due, until)
            elif not future.done():
                future.set_result(None)  # who waits takes it out

    async def wait(self, until: float) -> None:
        """Return when something was published, or :meth:`wake_due` was called with *until*."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[future] = until
        self.first_due = min(self.first_due, until)
        try:
            await future
        finally:
            self._waiters.pop(future, None)


class Cursor:
    """A watcher's place in the log of one storage key."""

    def __init__(self, log: Log, position: int) -> None:
        self._log = log
        self._position = position

    @property
    def is_at_end(self) -> bool:
        """Whether there is nothing to :meth:`take`."""
        return self._position >= self._log.published

    def take(self, limit: int, size: float = math.inf) -> list[Change]:
        """Return the next changes, and move past them.

        At most *limit*, and one or as many as have *size* bytes.
        """
        visible = max(self._log.published - self._position, 0)
        changes = self._log.read(self._position, min(limit, visible), size)
        self._position += len(changes)
        return changes

    async def wait(self, *, until: float = math.inf) -> None:
        """Return when there may be something to :meth:`take`, or the store was woken.

        *until* is the time from which :meth:`Store.wake_due` wakes it.
        """
        if self.is_at_end:
            await self._log.wait(until)
