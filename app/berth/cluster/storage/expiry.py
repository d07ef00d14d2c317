"""Objects with a time to live, as etcd's leases give it to events."""

from collections import deque
from contextlib import suppress

from berth.cluster.storage.log import ChangeType, ExpiredError
from berth.cluster.storage.store import ConflictError, NotFoundError, Store
from berth.cluster.storage.stored import Key
from berth.runtime.clock import Clock

BATCH = 1_000
"""Deletions in one sweep, about 20 ms; the rest is for the next."""


class Expiry:
    """Deletes the objects of a storage key that nobody has written for some time.

    Whoever owns it calls :meth:`sweep` about once a second. What was there before it was made
    counts as written then.
    """

    def __init__(self, store: Store, storage_key: str, *, seconds: float, clock: Clock) -> None:
        self._store = store
        self._storage_key = storage_key
        self._seconds = seconds
        self._clock = clock
        self._due: deque[tuple[float, Key, int]] = deque()
        """When, monotonic, and which object at which version; earliest first."""
        self._cursor = store.watch(storage_key, store.version)
        self._note_all()

    def sweep(self) -> None:
        """Delete what is due."""
        self._note_changes()
        now = self._clock.monotonic()
        for _ in range(BATCH):
            if not self._due or self._due[0][0] > now:
                return
            _, key, version = self._due.popleft()
            with suppress(ConflictError, NotFoundError):  # written again, or gone
                self._store.delete(self._storage_key, *key, expected=version)

    def _note_changes(self) -> None:
        due = self._clock.monotonic() + self._seconds
        try:
            while changes := self._cursor.take(BATCH):
                self._due.extend(
                    (due, change.stored.key, change.stored.version)
                    for change in changes
                    if change.type is not ChangeType.DELETED
                )
        except ExpiredError:  # more was written since the last sweep than anybody remembers
            self._cursor = self._store.watch(self._storage_key, self._store.version)
            self._note_all()

    def _note_all(self) -> None:
        due = self._clock.monotonic() + self._seconds
        known = {(key, version) for _, key, version in self._due}
        for stored in self._store.list(self._storage_key):
            if (stored.key, stored.version) not in known:
                self._due.append((due, stored.key, stored.version))
