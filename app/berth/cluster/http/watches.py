"""Watches: the log of changes as a stream of lines, seen through a selection.

One line is one ``WatchEvent``. What a watcher sees is decided on the state before and after: an
object that leaves the selection is DELETED for it, one that enters is ADDED.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from berth.clock import Clock
from berth.cluster import errors
from berth.cluster.http.chunks import CHUNK_PIECES, chunks, taking_turns
from berth.cluster.http.reads import Selection, version_of
from berth.cluster.http.rendering import Renderer
from berth.cluster.options import Query, flag, number
from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.storage.store import Change, ChangeType, Cursor, ExpiredError, Store, Stored

BATCH = CHUNK_PIECES
"""Changes taken at a time."""

GATHERING_TURNS = 3
"""Turns of the event loop from the first change to the chunk that has it. Much of what is written
meanwhile comes with it: a third as many chunks under the load of ``berth up``, at both ends."""

BOOKMARK_SECONDS = 60.0
DEFAULT_SECONDS = 3600.0
"""How long a watch lives that does not say."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What the client asked for."""

    version: int | None = None
    """Changes after this one; None: from now."""
    initial_events: bool = False
    """Begin with what is there, as ADDED."""
    initial_bookmark: bool = False
    """Say where what was there ends."""
    bookmarks: bool = False
    seconds: float = DEFAULT_SECONDS


def watch_options(query: Query) -> WatchOptions:
    """Read the parameters of a watch."""
    version = version_of(query)
    streaming_list = flag(query, "sendInitialEvents")
    if "sendInitialEvents" in query and query.get("resourceVersionMatch") != "NotOlderThan":
        raise errors.bad_request(
            "sendInitialEvents: Forbidden: resourceVersionMatch must be NotOlderThan with it"
        )
    bookmarks = flag(query, "allowWatchBookmarks")
    return WatchOptions(
        version=None if streaming_list else version,
        initial_events=streaming_list or (version is None and "sendInitialEvents" not in query),
        initial_bookmark=streaming_list and bookmarks,
        bookmarks=bookmarks,
        seconds=float(number(query, "timeoutSeconds") or DEFAULT_SECONDS),
    )


def type_for(wanted: Selection, change: Change) -> ChangeType | None:
    """Return what a change is to someone who sees only *wanted*; None: nothing."""
    if wanted.is_everything:
        return change.type
    is_in = change.type is not ChangeType.DELETED and wanted.takes(change.stored)
    was_in = change.old is not None and wanted.takes(change.old)
    if is_in:
        return ChangeType.MODIFIED if was_in else ChangeType.ADDED
    return ChangeType.DELETED if was_in else None


class Watch:
    """One client's watch. Everything but the waiting is synchronous."""

    def __init__(
        self,
        store: Store,
        wanted: Selection,
        options: WatchOptions,
        *,
        clock: Clock,
        render: Renderer,
    ) -> None:
        """Raises a 410 when the log does not reach back to the asked version."""
        self._store = store
        self._wanted = wanted
        self._options = options
        self._clock = clock
        self._render = render
        self._end = clock.monotonic() + options.seconds
        self._next_bookmark = clock.monotonic() + BOOKMARK_SECONDS
        self._told = store.version if options.version is None else options.version
        """All changes up to this version are in what was yielded; what a bookmark may say."""
        try:
            self._cursor: Cursor = store.watch(wanted.resource.storage_key, self._told)
        except ExpiredError as exc:
            raise errors.expired(str(exc)) from exc
        # Taken in the same step as the cursor, so that nothing falls between them.
        self._initial = self._initial_state() if options.initial_events else []

    async def lines(self, is_open: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield chunks of whole lines until the time is up or *is_open* says no."""
        initial, self._initial = self._initial, []
        added = (
            self._render.frame(ChangeType.ADDED, self._render.event(stored)) for stored in initial
        )
        async for chunk in taking_turns(chunks(added)):
            yield chunk
        del initial, added
        if self._options.initial_bookmark:
            yield self._bookmark(annotations={INITIAL_EVENTS_END: "true"})
        while is_open():
            try:
                changes = self._cursor.take(BATCH)
            except ExpiredError as exc:
                status = errors.expired(str(exc)).status()
                yield self._render.frame(
                    "ERROR", self._render.other(status, builtin.meta("Status"))
                )
                return
            if len(changes) < BATCH:
                # Now: more is written while the chunk is sent.
                self._told = max(self._told, self._store.durable_version)
            for chunk in chunks(self._said(changes)):
                yield chunk
            if len(changes) == BATCH:
                continue
            now = self._clock.monotonic()
            if now >= self._end:
                return
            if self._options.bookmarks and now >= self._next_bookmark:
                self._next_bookmark = now + BOOKMARK_SECONDS
                yield self._bookmark()
                continue
            await self._cursor.wait()
            for _ in range(GATHERING_TURNS):
                await asyncio.sleep(0)

    def _initial_state(self) -> list[Stored]:
        wanted = self._wanted
        found = self._store.list(wanted.resource.storage_key, wanted.namespace)
        return list(found) if wanted.is_all else [each for each in found if wanted.takes(each)]

    def _said(self, changes: Iterable[Change]) -> Iterable[bytes]:
        for change in changes:
            kind = type_for(self._wanted, change)
            if kind is None:
                continue
            shown = change.stored
            if kind is ChangeType.DELETED and change.type is not kind and change.old is not None:
                # It left the selection: show the last state in it, at the version it left.
                shown = change.old.at(change.stored.version)
            yield self._render.frame(kind, self._render.event(shown))

    def _bookmark(self, annotations: Object | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(self._told)}
        if annotations:
            metadata["annotations"] = annotations
        return self._render.frame("BOOKMARK", self._render.bookmark(metadata))
