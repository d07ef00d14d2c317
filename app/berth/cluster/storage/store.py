"""The object store: what etcd is to an API server, in memory and in one process.

Everything that writes is synchronous, so on one event loop every write is atomic. Objects are kept
as their JSON bytes, encoded once per write; lists and watches send those bytes. One resource
version counts all writes. Each storage key has a bounded log of changes, and a watch is a cursor
over it: a watcher that is too slow, or comes back too late, gets :class:`ExpiredError` and lists
again.

With a :class:`~berth.cluster.storage.journal.Journal`, writes become durable in groups, a few
milliseconds after they were made. Who writes next builds on them at once; but nobody outside may
learn of a write that a crash can take back: another write would then get its version. So watchers
are told of durable changes only, and every answer, to a read as to a write, waits with
:meth:`Store.durable` for what it may show.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from berth.cluster.resources import Object

if TYPE_CHECKING:
    from berth.cluster.storage.journal import Journal

LOG_CAPACITY = 20_000
"""Changes remembered per storage key: seconds of lag at full load, about 40 MB of pods."""

LOG_BYTES = 128 * 1024 * 1024
"""How large the objects in the log of one storage key may be together: who changes large objects
again and again shortens the log."""

OBJECT_LIMIT = 3 * 1024 * 1024
"""Bytes of one object: as much as a request may have, so that what was read can be written. etcd
takes half of that, but in protobuf, which is about half as long."""

STORE_LIMIT = 2 * 1024 * 1024 * 1024
"""Bytes of all objects: etcd's default."""

RESERVED_SHARE = 8
"""One part in so many of that limit is added for changes: what is there can still be bound, marked
and deleted when there is no room for new objects."""

Key = tuple[str, str]
"""Namespace ("" for cluster-scoped) and name: the order in which lists are sorted."""

_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], Object] = msgspec.json.Decoder(dict[str, Any]).decode


class StoreError(Exception):
    """A write or read that the store refuses."""


class AlreadyExistsError(StoreError):
    """An object of that name is there."""

    def __init__(self, existing: "Stored") -> None:
        super().__init__(existing.key)
        self.existing = existing


class NotFoundError(StoreError):
    """No object of that name is there."""


class ConflictError(StoreError):
    """The object is not at the expected resource version."""


class TooLargeError(StoreError):
    """The object is larger than any may be."""


class FullError(StoreError):
    """There is no room for the object."""


class ExpiredError(StoreError):
    """The log does not reach back to what was asked, or what was asked is yet to come."""


class ChangeType(StrEnum):
    """What a watch event says, in the words of the API."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Stored:
    """One object at one resource version. Immutable; shared by readers and the log.

    ``body`` is its JSON without ``kind`` and ``apiVersion``, which depend on who asks; ``labels``
    are for selectors and belong to the store.
    """

    __slots__ = ("body", "cells", "fields", "key", "labels", "uid", "version")

    def __init__(self, obj: Object, version: int) -> None:
        """*version* is 0 for an object that is not to be kept: it says none."""
        metadata = obj["metadata"]
        if version:
            metadata["resourceVersion"] = str(version)
        else:
            metadata.pop("resourceVersion", None)
        self.key: Key = (metadata.get("namespace") or "", metadata["name"])
        self.uid: str = metadata.get("uid") or ""
        self.version = version
        self.labels: dict[str, str] = dict(metadata.get("labels") or {})
        self.body = _encode({k: v for k, v in obj.items() if k not in ("kind", "apiVersion")})
        self.fields: dict[str, dict[str, str]] = {}
        """Values of fields that selectors asked for, by group and version: kept by readers, as they
        cannot change."""
        self.cells: tuple[object, Sequence[Any]] | None = None
        """What was last shown of it in tables: the columns, and what they said."""

    @classmethod
    def of_parts(
        cls, key: Key, uid: str, version: int, labels: dict[str, str], body: bytes
    ) -> "Stored":
        """Return what was kept of an object, without reading its JSON."""
        stored = cls.__new__(cls)
        stored.key = key
        stored.uid = uid
        stored.version = version
        stored.labels = labels
        stored.body = body
        stored.fields = {}
        return stored

    @property
    def name(self) -> str:
        return self.key[1]

    def decode(self) -> Object:
        """Return a private copy, without ``kind`` and ``apiVersion``."""
        return _decode(self.body)

    def at(self, version: int) -> "Stored":
        """Return the same object said to be of *version*: how a watch shows an object leaving."""
        return Stored(self.decode(), version)


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
        self.waiters: dict[asyncio.Future[None], None] = {}

    @property
    def end(self) -> int:
        """The position of the next change."""
        return self._start + len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self._versions.append(change.stored.version)
        self._size += len(change.stored.body)
        if len(self._changes) >= 2 * self._capacity:
            # Halving now and then keeps appending cheap; never fewer than the capacity remain.
            self._forget(self._capacity)
        elif self._size > self._size_limit and len(self._changes) > 1:
            self._forget(len(self._changes) // 2)

    def publish(self, end: int) -> None:
        """Show watchers the changes before position *end*."""
        self.published = end
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

    def read(self, position: int, limit: int) -> list[Change]:
        """Return at most *limit* changes from *position* on."""
        if position < self._start:
            raise ExpiredError(f"the watcher is too slow: {self.compacted} is compacted")
        first = position - self._start
        return self._changes[first : first + limit]

    def since(self, version: int) -> list[Change]:
        """Return all changes newer than *version*."""
        return self.read(self.after(version), len(self._changes))

    def wake(self) -> None:
        """Let everyone who waits look again."""
        for future in self.waiters:
            if not future.done():
                future.set_result(None)
        self.waiters.clear()


class Cursor:
    """A watcher's place in the log of one storage key."""

    def __init__(self, log: Log, position: int) -> None:
        self._log = log
        self._position = position

    def take(self, limit: int) -> list[Change]:
        """Return the next changes, at most *limit*, and move past them."""
        visible = max(self._log.published - self._position, 0)
        changes = self._log.read(self._position, min(limit, visible))
        self._position += len(changes)
        return changes

    async def wait(self) -> None:
        """Return when there may be something to :meth:`take`, or the store was woken."""
        if self._position < self._log.published:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._log.waiters[future] = None
        try:
            await future
        finally:
            self._log.waiters.pop(future, None)


class _Collection:
    """The objects of one storage key, sorted, and their log."""

    def __init__(self, storage_key: str, log: Log) -> None:
        self.storage_key = storage_key
        self.objects: dict[Key, Stored] = {}
        self.keys: list[Key] = []
        self.log = log
        self.followers: list[Callable[[Change], None]] = []

    def span(self, namespace: str, start: Key | None = None) -> Sequence[Key]:
        """Return the keys of a namespace, all if it is empty, from *start* on."""
        if not namespace and start is None:
            return self.keys
        first = bisect_left(self.keys, start or (namespace, ""))
        end = bisect_left(self.keys, (namespace + "\0", "")) if namespace else None
        return self.keys[first:end]


class Listing:
    """The objects of a list, in order. To be read before the next write."""

    def __init__(
        self,
        version: int,
        keys: Sequence[Key],
        objects: Mapping[Key, Stored],
        before: Mapping[Key, Stored | None],
    ) -> None:
        self.version = version
        self._keys = keys
        self._objects = objects
        self._before = before
        """Of those that have changed since *version*: as they were."""

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Stored]:
        if not self._before:
            return map(self._objects.__getitem__, self._keys)
        return (self._before.get(key) or self._objects[key] for key in self._keys)


class Store:
    """All objects of the cluster, by storage key (``pods``, ``deployments.apps``).

    Writers take an object with ``metadata.name`` (and namespace) filled, which they must not change
    afterwards. With *dry_run* everything is checked and nothing kept, and the resource version is
    what it was.
    """

    def __init__(
        self,
        *,
        log_capacity: int = LOG_CAPACITY,
        log_bytes: int = LOG_BYTES,
        limit: int = STORE_LIMIT,
        journal: "Journal | None" = None,
    ) -> None:
        """It begins with what *journal* has kept, and keeps all writes there."""
        self._log_capacity = log_capacity
        self._log_bytes = log_bytes
        self._limit = limit
        self._size = 0
        self._collections: dict[str, _Collection] = {}
        self._version = 1
        self._compacted = 0
        self._journal = journal
        if journal is not None:
            self._restore(journal)

    @property
    def version(self) -> int:
        """The resource version of the latest write."""
        return self._version

    @property
    def durable_version(self) -> int:
        """The resource version of the latest write that no crash takes back."""
        return self._version if self._journal is None else self._journal.version

    @property
    def problem(self) -> str:
        """Why nothing can be kept any more; "" while it can."""
        return "" if self._journal is None else self._journal.problem

    async def durable(self) -> None:
        """Return when no crash takes back what was written until now.

        Raises :class:`~berth.cluster.storage.journal.JournalError` when it cannot be kept.
        """
        if self._journal is not None:
            await self._journal.durable()

    def writes_of(self, storage_key: str) -> int:
        """Return how many writes there were; what was made from the objects before is stale."""
        return self._collection(storage_key).log.end

    def count(self, storage_key: str) -> int:
        """Return how many objects there are."""
        collection = self._collections.get(storage_key)
        return 0 if collection is None else len(collection.keys)

    def get(self, storage_key: str, namespace: str, name: str) -> Stored:
        """Return the object or raise :class:`NotFoundError`."""
        try:
            return self._collection(storage_key).objects[namespace, name]
        except KeyError:
            raise NotFoundError(f"{storage_key} {namespace}/{name}") from None

    def list(self, storage_key: str, namespace: str = "") -> Sequence[Stored]:
        """Return the objects, of one namespace if it is given, sorted by namespace and name."""
        collection = self._collection(storage_key)
        return [collection.objects[key] for key in collection.span(namespace)]

    def listing(
        self,
        storage_key: str,
        namespace: str = "",
        *,
        version: int | None = None,
        start: Key | None = None,
    ) -> "Listing":
        """Return the objects as they were at *version* (None: now), from the key *start* on.

        Raises :class:`ExpiredError` when that is forgotten, or yet to come.
        """
        if version is not None and version > self._version:
            raise ExpiredError(f"resource version {version} is yet to come: {self._version}")
        collection = self._collection(storage_key)
        keys = collection.span(namespace, start)
        changes = [] if version is None else collection.log.since(version)
        before: dict[Key, Stored | None] = {}
        for change in reversed(changes):
            key = change.stored.key
            if (not namespace or key[0] == namespace) and (start is None or key >= start):
                before[key] = change.old
        if before:
            # Deleted since then: not among the keys. Created since then: among them.
            gone = [key for key, old in before.items() if old and key not in collection.objects]
            keys = [key for key in keys if before.get(key, key) is not None]
            keys = sorted([*keys, *gone]) if gone else keys
        return Listing(
            self._version if version is None else version, keys, collection.objects, before
        )

    def create(self, storage_key: str, obj: Object, *, dry_run: bool = False) -> Stored:
        """Keep a new object, or raise :class:`AlreadyExistsError`.

        :class:`TooLargeError` and :class:`FullError` are for those that there is no room for.
        """
        stored = Stored(obj, 0 if dry_run else self._version + 1)
        collection = self._collection(storage_key)
        if existing := collection.objects.get(stored.key):
            raise AlreadyExistsError(existing)
        self._check_room(stored, None, self._limit)
        if not dry_run:
            self._commit(collection, Change(ChangeType.ADDED, stored, None))
        return stored

    def update(
        self, storage_key: str, obj: Object, *, expected: int | None = None, dry_run: bool = False
    ) -> Stored:
        """Replace an object, if it is at version *expected* when that is given.

        Raises like :meth:`create` when there is no room for what it grew.
        """
        metadata = obj["metadata"]
        key = (metadata.get("namespace") or "", metadata["name"])
        old = self._current(storage_key, key, expected)
        stored = Stored(obj, old.version if dry_run else self._version + 1)
        self._check_room(stored, old, self._limit + self._limit // RESERVED_SHARE)
        if not dry_run:
            collection = self._collection(storage_key)
            self._commit(collection, Change(ChangeType.MODIFIED, stored, old))
        return stored

    def delete(
        self,
        storage_key: str,
        namespace: str,
        name: str,
        *,
        expected: int | None = None,
        dry_run: bool = False,
    ) -> Stored:
        """Remove an object, if it is at version *expected* when that is given.

        Returns its last state, at the version of the deletion.
        """
        old = self._current(storage_key, (namespace, name), expected)
        last = old.at(self._version + 1)
        if not dry_run:
            collection = self._collection(storage_key)
            self._commit(collection, Change(ChangeType.DELETED, last, old))
        return last

    def watch(self, storage_key: str, version: int) -> Cursor:
        """Return a cursor over the changes after *version*.

        Raises :class:`ExpiredError` when they are forgotten or *version* is yet to come: a client
        that remembers a version of another life of this cluster must list again.
        """
        if version > self._version:
            raise ExpiredError(f"resource version {version} is yet to come: {self._version}")
        log = self._collection(storage_key).log
        return Cursor(log, log.after(version))

    def follow(self, storage_key: str, follow: Callable[[Change], None]) -> None:
        """Call *follow* with every change from now on, within the write: it may write itself."""
        self._collection(storage_key).followers.append(follow)

    def wake(self) -> None:
        """Let all watchers look at the time."""
        for collection in self._collections.values():
            collection.log.wake()

    def check_invariants(self) -> None:
        """Raise if the views of a collection disagree. For tests; linear in objects and changes."""
        kept = [each for all_ in self._collections.values() for each in all_.objects.values()]
        assert self._size == sum(len(stored.body) for stored in kept)
        for storage_key, collection in self._collections.items():
            assert collection.keys == sorted(collection.objects), storage_key
            changes = collection.log.since(collection.log.compacted)
            versions = [change.stored.version for change in changes]
            assert versions == sorted(set(versions)), storage_key
            for key, stored in collection.objects.items():
                assert stored.key == key, storage_key
                assert stored.version <= self._version, storage_key

    def _collection(self, storage_key: str) -> _Collection:
        try:
            return self._collections[storage_key]
        except KeyError:
            log = Log(self._log_capacity, self._log_bytes, compacted=self._compacted)
            return self._collections.setdefault(storage_key, _Collection(storage_key, log))

    def _current(self, storage_key: str, key: Key, expected: int | None) -> Stored:
        old = self.get(storage_key, *key)
        if expected is not None and old.version != expected:
            raise ConflictError(f"{storage_key} {key}: at {old.version}, not at {expected}")
        return old

    def _check_room(self, stored: Stored, old: Stored | None, limit: int) -> None:
        size = len(stored.body)
        growth = size - (0 if old is None else len(old.body))
        if growth <= 0:
            return
        if size > OBJECT_LIMIT:
            raise TooLargeError(f"the object would have {size} bytes, limit is {OBJECT_LIMIT}")
        if self._size + growth > limit:
            raise FullError(f"{self._size} bytes are kept, limit is {limit}")

    def _restore(self, journal: "Journal") -> None:
        """Take over what was kept: the objects as they once were, and the changes since then."""
        self._compacted = journal.compacted
        self._version = journal.version
        for storage_key, stored in journal.objects():
            self._collection(storage_key).objects[stored.key] = stored
            self._size += len(stored.body)
        for collection in self._collections.values():
            collection.keys = sorted(collection.objects)
        for storage_key, change, stored in journal.changes():
            collection = self._collection(storage_key)
            self._apply(collection, Change(change, stored, collection.objects.get(stored.key)))
            collection.log.publish(collection.log.end)

    def _commit(self, collection: _Collection, change: Change) -> None:
        """The one place where a write takes effect."""
        self._apply(collection, change)
        log = collection.log
        if self._journal is None:
            log.publish(log.end)
        else:
            self._journal.append(collection.storage_key, change, log)
        for follow in collection.followers:
            follow(change)

    def _apply(self, collection: _Collection, change: Change) -> None:
        stored = change.stored
        self._version = stored.version
        if change.old is not None:
            self._size -= len(change.old.body)
        if change.type is ChangeType.DELETED:
            del collection.keys[bisect_left(collection.keys, stored.key)]
            del collection.objects[stored.key]
        else:
            if change.type is ChangeType.ADDED:
                insort(collection.keys, stored.key)
            self._size += len(stored.body)
            collection.objects[stored.key] = stored
        collection.log.append(change)
