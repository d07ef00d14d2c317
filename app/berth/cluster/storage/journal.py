"""Keeps the writes of a :class:`~berth.cluster.storage.store.Store`, many at a time.

Writes are gathered while the disk is busy with the ones before; then one transaction keeps all of
them (group commit), on a thread of its own. So the more there is to write, the less a write costs.
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from berth.cluster.storage.database import Database, DatabaseError, Record, record_of
from berth.cluster.storage.log import Change, ChangeType, Log
from berth.cluster.storage.stored import Stored


class JournalError(DatabaseError):
    """A write could not be kept, so no later one can be. The message names the file."""


class _Group:
    """Writes that become durable together."""

    __slots__ = ("done", "ends", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.ends: dict[Log, int] = {}
        """Up to where their logs can be shown then."""
        self.done = asyncio.Event()


class Journal:
    """The writes since the start of a cluster, in *database*, which it owns.

    Appending needs a running event loop. When the database cannot be written, :meth:`run` and
    :meth:`durable` raise, and nothing is kept any more: what is in memory is ahead of it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")
        self._gathered: _Group | None = None
        self._written: _Group | None = None
        """Those that the thread is at."""
        self._failure: JournalError | None = None
        self._failed = asyncio.Event()
        self.compacted = database.compacted
        """The version at which :meth:`objects` are."""
        self.version = max(1, self.compacted)
        """That of the latest durable write."""

    @property
    def problem(self) -> str:
        """Why nothing can be kept any more; "" while it can."""
        return "" if self._failure is None else str(self._failure)

    def objects(self) -> Iterator[tuple[str, Stored]]:
        """Yield the objects that were kept, with their storage keys."""
        return self._database.objects()

    def changes(self) -> Iterator[tuple[str, ChangeType, Stored]]:
        """Yield what happened to them afterwards, in order."""
        for record in self._database.changes():
            self.version = record.version
            yield record.resource, record.type, record.stored

    def append(self, resource: str, change: Change, log: Log) -> None:
        """Keep a change of an object with this storage key, which is the last in *log*."""
        group = self._gathered
        if group is None:
            group = self._gathered = _Group()
            if self._written is None:
                asyncio.get_running_loop().call_soon(self._write)
        group.records.append(record_of(resource, change.type, change.stored))
        group.ends[log] = log.end

    async def durable(self) -> None:
        """Return when all that was appended until now is durable, or raise JournalError."""
        group = self._gathered or self._written
        if group is not None:
            await group.done.wait()
        if self._failure is not None:
            raise self._failure

    async def run(self) -> None:
        """Wait until something cannot be written, and raise JournalError then."""
        await self._failed.wait()
        await self.durable()

    async def close(self) -> None:
        """Keep what was appended, if that is possible, and close the database."""
        while (group := self._gathered or self._written) and self._failure is None:
            await group.done.wait()
        self._thread.shutdown()
        self._database.close()

    def _write(self) -> None:
        """Have the thread keep what was gathered."""
        group, self._gathered = self._gathered, None
        if group is None:
            return
        if self._failure is not None:
            group.done.set()
            return
        self._written = group
        work = asyncio.get_running_loop().run_in_executor(
            self._thread, self._database.append, group.records
        )
        work.add_done_callback(lambda work: self._finished(group, work))

    def _finished(self, group: _Group, work: asyncio.Future[None]) -> None:
        self._written = None
        error = work.exception()
        if error is None:
            self.version = group.records[-1].version
            for log, end in group.ends.items():
                log.publish(end)
        else:
            self._failure = JournalError(str(error))
            self._failed.set()
        group.done.set()
        self._write()
