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

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from berth.cluster.resources import Object
from berth.cluster.storage.journal import Journal
from berth.cluster.storage.log import (
    LOG_BYTES,
    LOG_CAPACITY,
    LOGS_BYTES,
    Change,
    ChangeType,
    Cursor,
    ExpiredError,
    Log,
)
from berth.cluster.storage.stored import Key, Stored

OBJECT_LIMIT = 3 * 1024 * 1024
"""Bytes of one object: as much as a request may have, so that what was read can be written. etcd
takes half of that, but in protobuf, which is about half as long."""

STORE_LIMIT = 2 * 1024 * 1024 * 1024
"""Bytes of all objects: etcd's default."""

RESERVED_SHARE = 8
"""One part in so many of that limit is added for changes: what is there can still be bound, marked
and deleted when there is no room for new objects."""

_key = attrgetter("key")
_size = attrgetter("size")


class StoreError(Exception):
    """A write or read that the store refuses."""


class AlreadyExistsError(StoreError):
    """An object of that name is there."""

    def __init__(self, existing: Stored) -> None:
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


class _Collection:
    """The objects of one storage key, sorted, and their log."""

    def __init__(self, storage_key: str, log: Log) -> None:
        self.storage_key = storage_key
        self.objects: dict[Key, Stored] = {}
        self.keys: list[Key] = []
        self.sorted: list[Stored] = []
        """The objects in the order of their keys, so that a list of all is a copy."""
        self.log = log
        self.followers: list[Callable[[Change], None]] = []

    def span(self, namespace: str, start: Key | None = None) -> slice:
        """Return where the objects of a namespace are, all if it is empty, from *start* on."""
        if not namespace and start is None:
            return slice(None)
        first = bisect_left(self.keys, start or (namespace, ""))
        return slice(first, bisect_left(self.keys, (namespace + "\0", "")) if namespace else None)

    def between(self, first: int, end: int) -> Iterator[Stored]:
        """Yield the objects in these places."""
        return map(self.sorted.__getitem__, range(first, end))

    def put(self, stored: Stored) -> None:
        """Keep an object, or its successor."""
        index = bisect_left(self.keys, stored.key)
        if stored.key in self.objects:
            self.sorted[index] = stored
        else:
            self.keys.insert(index, stored.key)
            self.sorted.insert(index, stored)
        self.objects[stored.key] = stored

    def remove(self, key: Key) -> None:
        """Keep an object no longer."""
        index = bisect_left(self.keys, key)
        del self.keys[index], self.sorted[index], self.objects[key]


class Listing(NamedTuple):
    """The objects of a list, in order, as they were at a version."""

    version: int
    objects: Sequence[Stored]
    """The first of them, if no more were asked for."""
    total: int
    """How many there are."""


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
        logs_bytes: int = LOGS_BYTES,
        limit: int = STORE_LIMIT,
        journal: Journal | None = None,
    ) -> None:
        """It begins with what *journal* has kept, and keeps all writes there."""
        self._log_capacity = log_capacity
        self._log_bytes = log_bytes
        self._logs_bytes = logs_bytes
        self._logs_size = 0
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

    def count(self, storage_key: str) -> int:
        """Return how many objects there are."""
        collection = self._collections.get(storage_key)
        return 0 if collection is None else len(collection.keys)

    def get(self, storage_key: str, namespace: str, name: str) -> Stored:
        """Return the object or raise :class:`NotFoundError`."""
        try:
            return self._collections[storage_key].objects[namespace, name]
        except KeyError:
            raise NotFoundError(f"{storage_key} {namespace}/{name}") from None

    def list(self, storage_key: str, namespace: str = "") -> Sequence[Stored]:
        """Return the objects, of one namespace if it is given, sorted by namespace and name."""
        collection = self._collection(storage_key)
        return collection.sorted[collection.span(namespace)]

    def listing(
        self,
        storage_key: str,
        namespace: str = "",
        *,
        version: int | None = None,
        start: Key | None = None,
        most: int | None = None,
    ) -> "Listing":
        """Return the objects as they were at *version* (None: now), from the key *start* on.

        Not more than *most*; what they cost does not depend on how many there are.
        Raises :class:`ExpiredError` when *version* is forgotten, or yet to come.
        """
        if version is not None and version > self._version:
            raise ExpiredError(f"resource version {version} is yet to come: {self._version}")
        collection = self._collection(storage_key)
        span = collection.span(namespace, start)
        first, end, _ = span.indices(len(collection.sorted))
        last = end if most is None else min(first + most, end)
        if version is None:
            return Listing(self._version, collection.sorted[first:last], end - first)
        before: dict[Key, Stored | None] = {}
        for change in reversed(collection.log.since(version)):
            key = change.stored.key
            if (not namespace or key[0] == namespace) and (start is None or key >= start):
                before[key] = change.old
        if not before:
            return Listing(version, collection.sorted[first:last], end - first)
        came = sum(key in collection.objects for key in before)
        others = sorted(filter(None, before.values()), key=_key)
        still = collection.between(first, end)
        objects = heapq.merge((each for each in still if each.key not in before), others, key=_key)
        return Listing(version, list(islice(objects, most)), end - first - came + len(others))

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
        collection = self._collection(storage_key)
        old = _current(collection, key, expected)
        stored = Stored(obj, old.version if dry_run else self._version + 1)
        self._check_room(stored, old, self._limit + self._limit // RESERVED_SHARE)
        if not dry_run:
            self._commit(collection, Change(ChangeType.MODIFIED, stored, old))
        return stored

    def delete(
        self,
        storage_key: str,
        namespace: str,
        name: str,
        *,
        expected: int | None = None,
        last_state: Object | None = None,
        dry_run: bool = False,
    ) -> Stored:
        """Remove an object, if it is at version *expected* when that is given.

        Returns its last state, at the version of the deletion: *last_state*, or as it is stored.
        """
        collection = self._collection(storage_key)
        old = _current(collection, (namespace, name), expected)
        version = self._version + 1
        last = old.at(version) if last_state is None else Stored(last_state, version)
        if not dry_run:
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
        """Let all watchers look whether they are to go on."""
        for collection in self._collections.values():
            collection.log.wake()

    def wake_due(self, now: float) -> None:
        """Let the watchers look at the clock whose time has come by *now*."""
        for collection in self._collections.values():
            if collection.log.first_due <= now:
                collection.log.wake_due(now)

    def check_invariants(self) -> None:
        """Raise if the views of a collection disagree. For tests; linear in objects and changes."""
        kept = [object_ for all_ in self._collections.values() for object_ in all_.objects.values()]
        assert self._size == sum(len(stored.body) for stored in kept)
        assert self._logs_size == sum(each.log.size for each in self._collections.values())
        for storage_key, collection in self._collections.items():
            assert collection.keys == sorted(collection.objects), storage_key
            by_key = [collection.objects[key] for key in collection.keys]
            assert collection.sorted == by_key, storage_key
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

    def _check_room(self, stored: Stored, old: Stored | None, limit: int) -> None:
        size = len(stored.body)
        growth = size - (0 if old is None else len(old.body))
        if growth <= 0:
            return
        if size > OBJECT_LIMIT:
            raise TooLargeError(f"the object would have {size} bytes, limit is {OBJECT_LIMIT}")
        if self._size + growth > limit:
            raise FullError(f"{self._size} bytes are kept, limit is {limit}")

    def _restore(self, journal: Journal) -> None:
        """Take over what was kept: the objects as they once were, and the changes since then."""
        self._compacted = journal.compacted
        self._version = journal.version
        for storage_key, stored in journal.objects():
            self._collection(storage_key).objects[stored.key] = stored
            self._size += len(stored.body)
        for collection in self._collections.values():
            collection.keys = sorted(collection.objects)
            collection.sorted = [collection.objects[key] for key in collection.keys]
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
            collection.remove(stored.key)
        else:
            collection.put(stored)
            self._size += len(stored.body)
        log = collection.log
        before = log.size
        log.append(change)
        self._logs_size += log.size - before
        if self._logs_size > self._logs_bytes:
            largest = max((each.log for each in self._collections.values()), key=_size)
            before = largest.size
            largest.halve()
            self._logs_size += largest.size - before

    def compact(self, storage_key: str) -> None:
        """Forget the changes of one storage key: nobody can watch from before any more."""
        collection = self._collections.get(storage_key)
        if collection is not None:
            self._logs_size -= collection.log.size
            collection.log.clear()


def _current(collection: _Collection, key: Key, expected: int | None) -> Stored:
    """Return the object that is to be replaced, if it is at version *expected*."""
    old = collection.objects.get(key)
    if old is None:
        raise NotFoundError(f"{collection.storage_key} {key[0]}/{key[1]}")
    if expected is not None and old.version != expected:
        raise ConflictError(f"{collection.storage_key} {key}: at {old.version}, not at {expected}")
    return old
