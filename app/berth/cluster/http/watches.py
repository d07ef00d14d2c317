"""Watches: the log of changes as a stream of lines, seen through a selection.

One line is one ``WatchEvent``. What a watcher sees is decided on the state before and after: an
object that leaves the selection is DELETED for it, one that enters is ADDED.
"""

import random
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Sequence
from typing import Final

from berth.cluster import errors
from berth.cluster.http.chunks import SlowClientError, chunks, taking_turns
from berth.cluster.http.list_options import ListOptions, version_for_watch
from berth.cluster.http.metrics import WatchSeries
from berth.cluster.http.outgoing import Pace
from berth.cluster.http.reads import Selection
from berth.cluster.http.rendering import Renderer
from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.storage.log import Change, ChangeType, Cursor, ExpiredError
from berth.cluster.storage.store import Store
from berth.cluster.storage.stored import Stored
from berth.runtime.clock import Clock

BATCH = 500
"""Changes taken at a time."""

BATCH_BYTES: Final = 1024 * 1024
"""Bytes of the objects in these, if it is more than one: a slow watcher keeps them in memory."""

MOST_FRAMES: Final = 1_000
"""Frames kept for those who watch the same: what is written in one turn, and some more."""

FRAME_BYTES: Final = 16 * 1024 * 1024
"""Bytes of these frames, and of the objects that they show, beside the latest."""

BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK_SECONDS: Final = 2.0
"""How long before its end a watch gets its last bookmark."""

LEAST_SECONDS: Final = 1800.0
"""How long a watch lives that does not say, or up to twice as long, so that not all begin anew at
once: ``--min-request-timeout``."""
MOST_SECONDS: Final = 3600.0
"""How long it lives whatever it says. A real server has no such limit."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def type_for(wanted: Selection, change: Change) -> ChangeType | None:
    """Return what a change is to someone who sees only *wanted*; None: nothing."""
    if wanted.is_everything:
        return change.type
    is_in = change.type is not ChangeType.DELETED and wanted.takes(change.stored)
    was_in = change.old is not None and wanted.takes(change.old)
    if is_in:
        return ChangeType.MODIFIED if was_in else ChangeType.ADDED
    return ChangeType.DELETED if was_in else None


def lasting(asked: int, rng: random.Random) -> float:
    """Return how many seconds a watch may last that asks for so many; 0: it does not."""
    return min(asked, MOST_SECONDS) if asked else LEAST_SECONDS * (1 + rng.random())


class Frames:
    """Events in the form in which they are sent, shared by all who watch the same."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Change, ChangeType, Hashable], bytes] = {}
        self._size = 0

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        return self._size

    def frame(self, change: Change, kind: ChangeType, render: Renderer) -> bytes:
        """Return the event that *change* is to somebody for whom it is a *kind*."""
        shared_as = render.shared_as
        if shared_as is None:
            return render.frame(kind, render.event(_shown(change, kind)))
        key = (change, kind, shared_as)
        frame = self._kept.get(key)
        if frame is None:
            frame = self._kept[key] = render.frame(kind, render.event(_shown(change, kind)))
            self._size += _held(change, frame)
            while len(self._kept) > 1 and (
                len(self._kept) > MOST_FRAMES or self._size > FRAME_BYTES
            ):
                oldest = next(iter(self._kept))
                self._size -= _held(oldest[0], self._kept.pop(oldest))
        return frame


def _held(change: Change, frame: bytes) -> int:
    """Return the bytes that a frame that is kept holds in memory."""
    old = 0 if change.old is None else len(change.old.body)
    return len(frame) + len(change.stored.body) + old


def _shown(change: Change, kind: ChangeType) -> Stored:
    """Return the state to show: of what left a selection the last in it, as of when it left."""
    if kind is ChangeType.DELETED and change.type is not kind and change.old is not None:
        return change.old.at(change.stored.version)
    return change.stored


class Watch:
    """One client's watch. Everything but the waiting is synchronous."""

    def __init__(
        self,
        store: Store,
        wanted: Selection,
        options: ListOptions,
        *,
        clock: Clock,
        render: Renderer,
        frames: Frames,
        series: WatchSeries,
        seconds: float,
        pace: Pace | None,
    ) -> None:
        """It lasts *seconds*, and ends before when *pace* says that its client is too slow.

        Raises a 500 for what is no version, and a 504 for an initial state yet to come.
        """
        self._store = store
        self._wanted = wanted
        self._clock = clock
        self._render = render
        self._frames = frames
        self._series = series
        self._pace = pace
        version = version_for_watch(options)
        streams_list = options.send_initial_events
        if streams_list is None:
            streams_list = options.is_any_version
        elif streams_list and version > store.version:
            raise errors.too_large_version(version, store.version)
        self._bookmarks = options.allow_watch_bookmarks
        self._says_initial_end = streams_list and self._bookmarks
        now = clock.monotonic()
        self._end = now + seconds
        self._next_bookmark = self._bookmark_after(now)
        self._told = store.version if streams_list or not version else version
        """All changes up to this version are in what was yielded; what a bookmark may say."""
        self._cursor: Cursor | None = None
        self._problem = ""
        try:
            self._cursor = store.watch(wanted.resource.storage_key, self._told)
        except ExpiredError as exc:
            self._problem = str(exc)
        # Taken in the same step as the cursor, so that nothing falls between them.
        self._initial: Sequence[Stored] = ()
        if streams_list:
            self._initial = store.list(wanted.resource.storage_key, wanted.namespace)

    async def lines(self, is_open: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield chunks of whole lines until the time is up or *is_open* says no.

        A watch that begins too early has one line, the error, as in the API server's watch cache.
        One that is too slow ends without a word: its client comes back with the last version.
        """
        if self._cursor is None:
            status = errors.expired(self._problem).status()
            shown = self._render.other(status, builtin.meta("Status"))
            yield self._sent(self._render.frame("ERROR", shown))
            return
        initial, self._initial = self._initial, ()
        added = map(self._added, initial)
        try:
            async for chunk in taking_turns(chunks(added, self._clock), self._pace):
                yield chunk
        except SlowClientError:
            self._series.terminated += 1
            return
        del initial, added
        if self._says_initial_end:
            yield self._bookmark(annotations={INITIAL_EVENTS_END: "true"})
        while is_open():
            try:
                changes = self._cursor.take(BATCH, BATCH_BYTES)
            except ExpiredError:
                self._series.terminated += 1
                return
            if changes and self._pace is not None and not await self._pace.turn():
                self._series.terminated += 1
                return
            is_all = self._cursor.is_at_end
            if is_all:
                # Now: more is written while the chunk is sent.
                self._told = max(self._told, self._store.durable_version)
            made = chunks(self._said(changes), self._clock)
            for chunk in made if self._pace is None else self._pace.charged(made):
                yield chunk
            del changes  # they may be large, and who waits keeps them
            now = self._clock.monotonic()
            if now >= self._end:
                return
            if not is_all:
                continue
            if self._bookmarks and now >= self._next_bookmark:
                self._next_bookmark = self._bookmark_after(now)
                yield self._bookmark()
                continue
            due = min(self._end, self._next_bookmark) if self._bookmarks else self._end
            await self._cursor.wait(until=due)

    def _bookmark_after(self, now: float) -> float:
        """Return when the next bookmark is due: in a minute, or shortly before the end."""
        last = self._end - LAST_BOOKMARK_SECONDS
        due = now + BOOKMARK_SECONDS
        return last if now < last < due else due

    def _added(self, stored: Stored) -> bytes:
        """Return the event of an object that is there already; nothing if it is not wanted."""
        if not (self._wanted.is_all or self._wanted.takes(stored)):
            return b""
        return self._sent(self._render.frame(ChangeType.ADDED, self._render.event(stored)))

    def _said(self, changes: Iterable[Change]) -> Iterable[bytes]:
        takes_everything = self._wanted.is_everything
        for change in changes:
            kind = change.type if takes_everything else type_for(self._wanted, change)
            if kind is not None:
                yield self._sent(self._frames.frame(change, kind, self._render))

    def _bookmark(self, annotations: Object | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(self._told)}
        if annotations:
            metadata["annotations"] = annotations
        return self._sent(self._render.frame("BOOKMARK", self._render.bookmark(metadata)))

    def _sent(self, frame: bytes) -> bytes:
        self._series.sent(len(frame))
        return frame
