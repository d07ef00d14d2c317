"""Keeps a store equal to what an API server has, by listing and watching for ever."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence, ValuesView
from contextlib import AbstractContextManager, aclosing, nullcontext
from itertools import islice
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.contact import Contact
from berth.kube.client.errors import (
    ApiError,
    GoneError,
    InvalidError,
    TooManyRequestsError,
    from_status,
)
from berth.kube.informer.identity import Identify, Identity, identity_in, identity_of, is_older
from berth.kube.informer.store import ResourceEventHandler, Store
from berth.kube.informer.watch_event import (
    WatchEvent,
    decode_bookmark,
    decode_list,
    decode_watch_event,
    event_decoder,
)
from berth.runtime.clock import Clock
from berth.runtime.metrics import Distribution
from berth.runtime.tasks import Turn, background, in_turns

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH: Final = 200
"""Events handled before others on the event loop get a turn, if they do not take long."""

WATCH_SECONDS: Final = 300
"""A watch is asked to last this long, and up to twice as long: client-go's spread, so that the
watches of a fleet do not come back at the same moment."""

FIRST_PAUSE: Final = 0.8
LONGEST_PAUSE: Final = 30.0
RESET_AFTER: Final = 120.0
"""Seconds between connections that fail: doubled each time, and up to doubled again by chance; from
the beginning when there was no pause for so long. These are client-go's."""

REMEMBERED_DELETIONS: Final = 1000
"""So many of the latest deletions are told from events of those objects that come too late."""

PROCESSING_SECONDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Bounds for how long it takes to process one event: client-go's."""

DUE_SECONDS: Final = 0.5
"""Between two looks for changes that have waited for long enough."""
MOST_PUT_OFF: Final = 5_000
"""Of so many objects changes are kept back."""

SHORT_WATCH: Final = 1.0
"""A watch that the server ends sooner, without having said anything, counts as failed."""


MOST_REASONS: Final = 5
LONGEST_REASON: Final = 300
"""Parts reported of an object that cannot be read, and characters of an error about all of it."""

DecodePartly: TypeAlias = Callable[[bytes, T | None], tuple[T, Sequence[object]]]
"""Makes an object of what can be read of its JSON and of the last known state, if there is one.
Also returns what could not be read, for messages. Raises if too little can be read."""

MayWait: TypeAlias = Callable[[WatchEvent[Any]], tuple[str, str, float] | None]
"""Returns the key and the version of the object of an event if that may wait, and for how many
seconds; None: it may not, or it is something else than a change, such as a deletion."""


class Incoming(msgspec.Struct, Generic[T]):
    """A list while it arrives. ``unreadable`` are the keys of objects that did not decode."""

    objects: dict[str, T] = msgspec.field(default_factory=dict)
    unreadable: set[str] = msgspec.field(default_factory=set)


class Unreadable(msgspec.Struct, frozen=True):
    """An object of the API server that did not decode as a whole."""

    reasons: tuple[str, ...]
    """What could not be read and why; the first few."""
    counts: bool
    """Whether the rest of it was taken in; otherwise the state known before stays."""


class Reflector(Generic[T]):
    """Lists and watches one kind of object at *path* and notifies *handler* of changes.

    *decode* makes an object of its JSON, or of an *outline*, a struct that has parts of it as JSON,
    if there is one: what a watch sends is decoded to that first, and only once. When it raises,
    *decode_partly* may make one of what can be read, given the last known state. When that raises
    as well, or is None, *on_malformed* is called with the object's key (``""`` if even that cannot
    be read), its bytes and the error, and the last known state stays. What was decoded is stored as
    *transform* returns it. *params* select what is listed and watched, such as ``fieldSelector``.
    ``synced`` is set when the handler has the whole initial state. ``store`` and ``unreadable`` (by
    key, the objects whose last version did not decode) are for reading only.

    What *may_wait* is put off: of the versions that an object has meanwhile, only the last is
    decoded and told.
    """

    def __init__(
        self,
        client: Api,
        path: str,
        *,
        decode: Callable[[Any], T],
        outline: type[object] | None = None,
        handler: ResourceEventHandler[T],
        clock: Clock,
        rng: random.Random,
        on_malformed: Callable[[str, bytes, Exception], None],
        params: Mapping[str, str] | None = None,
        page_size: int = 500,
        identify: Identify[T] = identity_of,
        decode_partly: DecodePartly[T] | None = None,
        transform: Callable[[T], T] | None = None,
        contact: Contact | None = None,
        objects: dict[str, T] | None = None,
        may_wait: MayWait | None = None,
        together: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """*contact* ends a pause when another client has noticed that the server is back.

        *objects* becomes the ``store``; pass it if something needs the store earlier. What is put
        off is missing there. The handler is told of it in blocks of *together*.
        """
        self.synced = asyncio.Event()
        self.cut_off_since: float | None = None
        """Since when, monotonic, no watch is open; None while one is."""
        self.lists = 0
        self.is_replacing = False
        """Whether what the handler is told comes from a list: without order, and maybe late."""
        self.queued = 0
        """Objects of a list, or their deletions, that the handler has not been told of yet."""
        self.processing = Distribution(PROCESSING_SECONDS)
        """How long it took to process each event, with the handler, in seconds."""
        self.malformed = 0
        self._client = client
        self.path = path
        """May be set until :meth:`run` is called."""
        self.params = dict(params or {})
        self.unreadable: dict[str, Unreadable] = {}
        self._decode = decode
        self._decode_event: Callable[[bytes], WatchEvent[Any]] = (
            decode_watch_event if outline is None else event_decoder(outline)
        )
        self._decode_partly = decode_partly
        self._transform = transform
        self._identify = identify
        self._on_malformed = on_malformed
        self._clock = clock
        self._rng = rng
        self._page_size = page_size
        self._contact = contact
        self._store = Store(handler, identify=identify, objects=objects)
        self._may_wait = may_wait
        self._together = together
        self._put_off: dict[str, tuple[float, WatchEvent[Any]]] = {}
        """By key of objects whose changes are kept back: until when, and the last event. The first
        to be put off is first."""
        self._version = ""  # the last one received; "" when a list is needed
        self._streams_lists = True  # until the server turns out not to know how
        self._next_pause = FIRST_PAUSE
        self._paused_at = float("-inf")
        self._listed = ""
        """The version of the last list; all that is older is in it."""
        self._deleted: dict[str, str] = {}
        """The versions of the latest deletions since, by key."""
        self._is_out_of_order = False
        """Whether the watch that is open sent a change after a later one."""

    @property
    def version(self) -> str:
        """The resource version that the store has come to; "" before the first list."""
        return self._version

    @property
    def handler_failures(self) -> int:
        """How many calls of the handler raised."""
        return self._store.handler_failures

    @property
    def store(self) -> Mapping[str, T]:
        """The objects by key; the handler is told of all that was put off first."""
        self.catch_up()
        return self._store.objects

    def catch_up(self) -> None:
        """Tell the handler of all that was put off."""
        if self._put_off:
            self._tell([*self._put_off])

    async def run(self) -> None:
        """Reconnect for ever; ends only by cancellation."""
        if self._may_wait is None:
            await self._reconnect()
        async with background() as start:
            start(f"put off {self.path}", self._catch_up_in_time)
            await self._reconnect()

    async def _catch_up_in_time(self) -> None:
        while True:
            await self._clock.sleep(DUE_SECONDS)
            now = self._clock.monotonic()
            due = [key for key, (until, _) in self._put_off.items() if until <= now]
            async for some in in_turns(due, piece=BATCH):
                self._tell(some)

    def _tell(self, keys: Sequence[str]) -> None:
        """Tell of these objects, but for those that were told of meanwhile."""
        events = [self._put_off.pop(key)[1] for key in keys if key in self._put_off]
        if not events:
            return
        started = self._clock.monotonic()
        with self._together():
            for event in events:
                self._put(*self._decoded(event))
        took = self._clock.monotonic() - started
        self.processing.observe(took / len(events), len(events))

    async def _reconnect(self) -> None:
        while True:
            heard_before, started = self._version, self._clock.monotonic()
            asked_to_wait = 0.0
            try:
                await self._list_and_watch()
            except ApiError as exc:
                if self._note_failure(exc) and heard_before:
                    continue  # the server is there, and has what it takes to go on
                if isinstance(exc, TooManyRequestsError):
                    asked_to_wait = exc.retry_after or 0.0
            except (msgspec.DecodeError, RecursionError) as exc:
                self._cut_off()
                log.warning("watch is garbled", extra={"path": self.path, "error": str(exc)})
            else:
                lasted = self._clock.monotonic() - started
                if lasted >= SHORT_WATCH or self._version != heard_before:
                    continue  # the usual end of a watch
                self._cut_off()
            await self._pause(at_least=asked_to_wait)

    def _note_failure(self, error: ApiError) -> bool:
        """Forget the version if the server cannot go on from it, and say whether that is so."""
        self._cut_off()
        if isinstance(error, GoneError) or is_from_the_future(error):
            self._version = ""
            log.info("listing again", extra={"path": self.path, "cause": error.message})
            return True
        log.warning("watch failed", extra={"path": self.path, "error": str(error)})
        return False

    def _cut_off(self) -> None:
        if self.cut_off_since is None:
            self.cut_off_since = self._clock.monotonic()

    async def _list_and_watch(self) -> None:
        """Make the store equal to the server's state, and follow it until the server ends that."""
        if not self._version:
            if self._streams_lists and await self._streamed_list_and_watch():
                return
            await self._paged_list()
        await self._watch()

    async def _streamed_list_and_watch(self) -> bool:
        """Let one watch send the current state, then what happens (``sendInitialEvents``).

        Servers before 1.27 refuse its parameters. Then this returns False, and does not come again.
        """
        initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        async with aclosing(self._events(initial)) as events:
            try:
                self._begin_at(await self._receive_initial(events))
            except ApiError as exc:
                if exc.status != 400 and not isinstance(exc, InvalidError):
                    raise
            if not self._version:
                log.info("server does not stream lists", extra={"path": self.path})
                self._streams_lists = False
                return False
            await self._follow(events)
            return True

    async def _receive_initial(self, events: AsyncGenerator[WatchEvent[Any], None]) -> str:
        """Take in the initial state; return its version, "" if the watch ended before it did.

        The store changes only when the list is complete: before, what is missing is unknown.
        """
        incoming: Incoming[T] = Incoming()
        async for event in events:
            if event.type != "BOOKMARK":
                self._collect(event, incoming)
                continue
            bookmark = decode_bookmark(event.object)
            if bookmark.ends_initial_state:
                await self._replace(incoming)
                return bookmark.metadata.resource_version
        return ""

    async def _paged_list(self) -> None:
        """List all pages, the newest state that the server has."""
        incoming: Incoming[T] = Incoming()
        params = {**self.params, "limit": str(self._page_size)}
        while True:
            page = decode_list(await self._client.request("GET", self.path, params=params))
            turn = Turn(self._clock, items=BATCH)
            for item in page.items:
                self._collect(WatchEvent("ADDED", item), incoming)
                if turn.is_over():
                    await turn.next()
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        await self._replace(incoming)
        self._begin_at(page.metadata.resource_version)

    def _begin_at(self, version: str) -> None:
        """Go on from the version of a list."""
        self._version = self._listed = version
        self._deleted.clear()

    async def _watch(self) -> None:
        """Watch from the last version received."""
        async with aclosing(self._events({"resourceVersion": self._version})) as events:
            await self._follow(events)

    async def _events(self, params: Mapping[str, str]) -> AsyncGenerator[WatchEvent[Any], None]:
        """Yield the events of one watch that are not put off; an ERROR is raised.

        Lets others have their turns.
        """
        seconds = WATCH_SECONDS + int(self._rng.random() * WATCH_SECONDS)
        asked = {
            **self.params,
            **params,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        turn = Turn(self._clock, items=BATCH)
        async with aclosing(self._client.watch(self.path, asked)) as lines:
            async for line in lines:
                if self._version:
                    self.cut_off_since = None
                if not line:
                    continue  # the watch is open
                event = self._decode_event(line)
                if event.type == "ERROR":
                    raise from_status(bytes(event.object))
                if not self._puts_off(event):
                    yield event
                if turn.is_over():
                    await turn.next()

    async def _follow(self, events: AsyncGenerator[WatchEvent[Any], None]) -> None:
        """Take in events until the watch ends; list next if they came out of order.

        Then one may have been on its way when the watch ended, and none of the next repeats it.
        """
        try:
            async for event in events:
                started = self._clock.monotonic()
                self._apply(event)
                if event.type != "BOOKMARK":
                    self.processing.observe(self._clock.monotonic() - started)
        finally:
            if self._is_out_of_order:
                self._is_out_of_order = False
                self._version = ""

    def _apply(self, event: WatchEvent[Any]) -> None:
        """Do what one event says. The version moves on also when the object is unreadable.

        A server sends changes in the order of their versions. What is older is a repetition, which
        would bring a deleted object back, or take away its successor of the same name; unless it is
        newer than what is known of its object: then the order was lost on the way.
        """
        if event.type == "BOOKMARK":
            self._move_on_to(decode_bookmark(event.object).metadata.resource_version)
            return
        identity, obj = self._decoded(event)
        if earlier := self._put_off.pop(identity.key, None):
            self._put(*self._decoded(earlier[1]))
        version = identity.resource_version
        if is_older(version, self._version):
            if not self._is_news(identity, event.type):
                return
            if not self._is_out_of_order:
                self._is_out_of_order = True
                log.warning("events of a watch are out of order", extra={"path": self.path})
        elif version:
            self._version = version
        if event.type == "DELETED":
            self._deleted.pop(identity.key, None)
            self._deleted[identity.key] = version
            if len(self._deleted) > REMEMBERED_DELETIONS:
                self._listed = self._deleted.pop(next(iter(self._deleted)))
            self.unreadable.pop(identity.key, None)
            self._store.remove(identity.key, obj)
        else:
            self._put(identity, obj)

    def _put(self, identity: Identity, obj: T | None) -> None:
        if obj is not None:
            self._store.put(identity, obj)

    def _puts_off(self, event: WatchEvent[Any]) -> bool:
        """Keep *event* back if it may wait, in place of an earlier one; not one out of order.

        Not what belongs to a list, either.
        """
        if self._may_wait is None or not self._version:
            return False
        answer = self._may_wait(event)
        if answer is None:
            return False
        key, version, seconds = answer
        if is_older(version, self._version):
            return False
        self._version = version or self._version
        until, earlier = self._clock.monotonic() + seconds, self._put_off.get(key)
        if earlier is not None and earlier[0] < until:
            until = earlier[0]
        self._put_off[key] = until, event
        if len(self._put_off) > MOST_PUT_OFF:
            self._tell([*islice(self._put_off, BATCH)])
        return True

    def _move_on_to(self, version: str) -> None:
        if not is_older(version, self._version):
            self._version = version

    def _is_news(self, identity: Identity, kind: str) -> bool:
        """Whether an event that comes after a later one tells what is not known yet."""
        version = identity.resource_version
        known = self.store.get(identity.key)
        if known is not None:
            return is_older(self._identify(known).resource_version, version)
        if kind == "DELETED" or not is_older(self._listed, version):
            return False
        return is_older(self._deleted.get(identity.key, self._listed), version)

    def _collect(self, event: WatchEvent[Any], incoming: Incoming[T]) -> None:
        identity, obj = self._decoded(event)
        if event.type == "DELETED":
            self.unreadable.pop(identity.key, None)
            incoming.objects.pop(identity.key, None)
            incoming.unreadable.discard(identity.key)
        elif obj is not None:
            incoming.objects[identity.key] = obj
        else:
            incoming.unreadable.add(identity.key)

    def _decoded(self, event: WatchEvent[Any]) -> tuple[Identity, T | None]:
        """Return the object with its identity; None after reporting that it cannot be read."""
        given = event.object
        if isinstance(given, msgspec.Raw):
            given = bytes(given)
        try:
            obj = self._decode(given)
            if self._transform is not None:
                obj = self._transform(obj)
            identity = self._identify(obj)
        except Exception as exc:  # noqa: BLE001 - one bad object must not hide the others
            return self._decoded_partly(_json(given), exc)
        if self.unreadable:
            self.unreadable.pop(identity.key, None)
        return identity, obj

    def _decoded_partly(self, raw: bytes, error: Exception) -> tuple[Identity, T | None]:
        """Return what can be read of an object that raised *error*, as :meth:`_decoded` does."""
        identity = identity_in(raw)
        if identity.key and self._decode_partly is not None:
            try:
                obj, unread = self._decode_partly(raw, self.store.get(identity.key))
                if self._transform is not None:
                    obj = self._transform(obj)
                identity = self._identify(obj)
            except Exception as exc:  # noqa: BLE001 - see above
                error = exc
            else:
                self._note_unread(identity.key, unread)
                return identity, obj
        self.malformed += 1
        if identity.key:
            reason = str(error)[:LONGEST_REASON]
            self.unreadable[identity.key] = Unreadable((reason,), counts=False)
        self._on_malformed(identity.key, raw, error)
        return identity, None

    def _note_unread(self, key: str, unread: Sequence[object]) -> None:
        """Keep, and log once, what could not be read of an object."""
        if not unread:
            self.unreadable.pop(key, None)
            return
        self.malformed += 1
        unreadable = Unreadable(tuple(map(str, unread[:MOST_REASONS])), counts=True)
        if self.unreadable.get(key) != unreadable:
            self.unreadable[key] = unreadable
            extra = {"path": self.path, "object": key, "unread": "; ".join(unreadable.reasons)}
            log.error("only parts of an object can be read, and count", extra=extra)

    async def _replace(self, incoming: Incoming[T]) -> None:
        """Make the store equal to a list, and say so."""
        self.catch_up()
        for key in [*self.unreadable]:
            if key not in incoming.objects and key not in incoming.unreadable:
                del self.unreadable[key]
        steps = self._store.replace(incoming.objects, keep=incoming.unreadable)
        self.is_replacing = True
        gone = self.store.keys() - incoming.objects.keys() - incoming.unreadable
        self.queued = len(incoming.objects) + len(gone)
        turn, started = Turn(self._clock, items=BATCH), self._clock.monotonic()
        try:
            for _ in steps:
                self.processing.observe(self._clock.monotonic() - started)
                self.queued = max(self.queued - 1, 0)
                if turn.is_over():
                    await turn.next()
                started = self._clock.monotonic()
        finally:
            self.is_replacing, self.queued = False, 0
        self.lists += 1
        self.cut_off_since = None
        self.synced.set()

    async def _pause(self, *, at_least: float) -> None:
        now = self._clock.monotonic()
        if now - self._paused_at >= RESET_AFTER:
            self._next_pause = FIRST_PAUSE
        self._paused_at = now
        pause = self._next_pause * (1.0 + self._rng.random())
        self._next_pause = min(self._next_pause * 2.0, LONGEST_PAUSE)
        if self._contact is None or at_least:
            await self._clock.sleep(max(pause, at_least))
            return
        sleeping = asyncio.create_task(self._clock.sleep(pause), name="pause")
        recovered = asyncio.create_task(self._contact.recovered(), name="server is back")
        try:
            await asyncio.wait((sleeping, recovered), return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_back = recovered.done()
            for task in (sleeping, recovered):
                task.cancel()
            await asyncio.gather(sleeping, recovered, return_exceptions=True)
        if is_back:
            self._next_pause = FIRST_PAUSE
            await self._clock.sleep(FIRST_PAUSE * self._rng.random())  # not all at the same moment


class Told(Mapping[str, T]):
    """The store of a reflector, for those who look now and then; see :attr:`Reflector.store`."""

    def __init__(self, reflector: Reflector[T]) -> None:
        self._reflector = reflector

    def __getitem__(self, key: str) -> T:
        return self._reflector.store[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._reflector.store)

    def __len__(self) -> int:
        return len(self._reflector.store)

    def values(self) -> ValuesView[T]:
        return self._reflector.store.values()


def _json(given: object) -> bytes:
    """Return the JSON of an object, or as much of it as is in its outline."""
    return given if isinstance(given, bytes) else msgspec.json.encode(given)


def is_from_the_future(error: ApiError) -> bool:
    """Say whether the server has not yet come to our version, as after a restored backup."""
    return error.status == 504 and "Too large resource version" in error.message
