"""The SQLite file of a cluster that is kept: its objects, the changes since, and its secrets.

Objects are as they were at one version, the compacted one. Each group of writes after that is one
row of the journal, which is read back in order: so a group costs one statement and one sync of the
disk, and watchers can go on where they were. What makes the journal too long goes into the objects.

Decision (2026-11): a write is durable when the disk has it (``synchronous = FULL``), because that
is what clients of a Kubernetes API rely on, and because one sync for a group of writes is cheap;
instead of when the operating system has it (``NORMAL``), which survives ``kill -9`` and no power
cut.
"""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.cluster.storage.log import LOG_CAPACITY, ChangeType
from berth.cluster.storage.stored import Stored
from berth.runtime.errors import UserError

FILE: Final = "berth.db"

SCHEMA_VERSION: Final = 1
"""Of the tables below. A file of a higher one was written by a newer berth."""

APPLICATION_ID: Final = 0x62657274
"""``bert``: what tells ``file`` and us that a SQLite file is one of berth."""

GROUP_BYTES: Final = 16 * 1024 * 1024
"""How large a row of the journal may become, give or take one object."""

KEPT_CHANGES: Final = LOG_CAPACITY // 2
"""How many changes stay in the journal, for watchers that come back after a restart."""

COMPACTED_SHARE: Final = 20
"""One part in so many of that is taken out at a time, in some 20 ms: writes wait meanwhile."""

_TABLES: Final = """
CREATE TABLE objects (
  resource TEXT, namespace TEXT, name TEXT,
  uid TEXT NOT NULL, version INTEGER NOT NULL, labels BLOB NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (resource, namespace, name)
);
CREATE TABLE journal (version INTEGER PRIMARY KEY, changes INTEGER NOT NULL, records BLOB NOT NULL);
CREATE TABLE compacted (version INTEGER NOT NULL);
INSERT INTO compacted VALUES (0);
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL);
"""

_UPSERT: Final = """
INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET uid = excluded.uid, version = excluded.version,
  labels = excluded.labels, body = excluded.body
"""


class Record(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One change, as the journal has it. A deletion has the last state of its object."""

    resource: str
    type: ChangeType
    namespace: str
    name: str
    uid: str
    version: int
    labels: dict[str, str]
    body: bytes

    @property
    def stored(self) -> Stored:
        key = (self.namespace, self.name)
        return Stored.of_parts(key, self.uid, self.version, self.labels, self.body)


def record_of(resource: str, change: ChangeType, stored: Stored) -> Record:
    """Return what is kept of a change of an object with the storage key *resource*."""
    return Record(
        resource, change, *stored.key, stored.uid, stored.version, stored.labels, stored.body
    )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Record]).decode
_encode_labels = msgspec.json.Encoder().encode
_decode_labels = msgspec.json.Decoder(dict[str, str]).decode


class DatabaseError(UserError):
    """What is kept cannot be read or written; the message names the file."""


class Database:
    """The file of one cluster, which no other process may open meanwhile.

    Synchronous, and for any thread. Everything raises DatabaseError.
    """

    def __init__(self, folder: Path, *, kept_changes: int = KEPT_CHANGES) -> None:
        """Open the file in *folder*, or make both."""
        self.path = folder / FILE
        self._kept_changes = kept_changes
        self._compacted_at_once = max(1, kept_changes // COMPACTED_SHARE)
        self._lock = threading.RLock()
        with self._using_file():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # For its owner only from the start; SQLite gives its other files the mode of this one.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._connection = sqlite3.connect(
                self.path, timeout=0, isolation_level=None, check_same_thread=False
            )
        try:
            with self._using_file():
                self._prepare()
                count = "SELECT coalesce(sum(changes), 0) FROM journal"
                self._changes: int = self._one(count)
        except BaseException:
            self._connection.close()
            raise

    @property
    def compacted(self) -> int:
        """The version at which :meth:`objects` are; 0 when nothing was ever compacted."""
        with self._using_file():
            return int(self._one("SELECT version FROM compacted"))

    def objects(self) -> Iterator[tuple[str, Stored]]:
        """Yield the objects, with their storage keys, in no particular order."""
        with self._using_file():
            for resource, namespace, name, uid, version, labels, body in self._connection.execute(
                "SELECT resource, namespace, name, uid, version, labels, body FROM objects"
            ):
                key = (namespace, name)
                stored = Stored.of_parts(key, uid, version, _decode_labels(labels), body)
                yield resource, stored

    def changes(self) -> Iterator[Record]:
        """Yield the changes since then, in order."""
        with self._using_file():
            for (records,) in self._connection.execute(
                "SELECT records FROM journal ORDER BY version"
            ):
                yield from _decode(records)

    def append(self, records: Sequence[Record]) -> None:
        """Keep these changes, which follow those that are there; they are durable after this."""
        with self._using_file():
            for group in _groups(records):
                self._connection.execute(
                    "INSERT INTO journal VALUES (?, ?, ?)",
                    (group[-1].version, len(group), _encode(group)),
                )
            self._changes += len(records)
            if self._changes >= self._kept_changes + self._compacted_at_once:
                with self._transaction():
                    self._compact()

    def secret(self, name: str) -> bytes | None:
        """Return a secret that was kept under this name."""
        with self._using_file():
            found = self._connection.execute("SELECT value FROM secrets WHERE name = ?", (name,))
            row = found.fetchone()
        return None if row is None else bytes(row[0])

    def keep_secret(self, name: str, value: bytes) -> None:
        """Keep a secret, in place of what was kept under this name."""
        with self._using_file():
            self._connection.execute("INSERT OR REPLACE INTO secrets VALUES (?, ?)", (name, value))

    def close(self) -> None:
        with self._using_file():
            self._connection.close()

    def _prepare(self) -> None:
        """Lock the file, make sure that it is ours, and make its tables if it is new."""
        execute = self._connection.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        is_new = self._one("SELECT count(*) FROM sqlite_schema") == 0
        if not is_new:
            self._check_schema()
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        with self._transaction():  # which locks it, new or not
            if is_new:
                for statement in _TABLES.split(";"):
                    execute(statement)
                execute(f"PRAGMA application_id = {APPLICATION_ID}")
                execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _check_schema(self) -> None:
        if self._one("PRAGMA application_id") != APPLICATION_ID:
            raise DatabaseError(f"{self.path}: it is a SQLite file, but not one of berth")
        found: int = self._one("PRAGMA user_version")
        if found != SCHEMA_VERSION:
            raise DatabaseError(
                f"{self.path}: another version of berth wrote it (its schema has version {found},"
                f" this berth reads {SCHEMA_VERSION})"
            )

    def _compact(self) -> None:
        """Take the oldest changes into the objects, but leave as many as are to stay."""
        last: dict[tuple[str, str, str], Record] = {}
        compacted = 0
        rows = self._connection.execute("SELECT changes, records FROM journal ORDER BY version")
        for changes, records in rows:
            if self._changes - changes < self._kept_changes:
                break
            group = _decode(records)
            last.update({(each.resource, each.namespace, each.name): each for each in group})
            compacted = group[-1].version
            self._changes -= changes
        rows.close()
        if not last:
            return
        gone = [key for key, each in last.items() if each.type is ChangeType.DELETED]
        self._connection.executemany(
            "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", gone
        )
        self._connection.executemany(
            _UPSERT,
            (
                (*key, each.uid, each.version, _encode_labels(each.labels), each.body)
                for key, each in last.items()
                if each.type is not ChangeType.DELETED
            ),
        )
        self._connection.execute("DELETE FROM journal WHERE version <= ?", (compacted,))
        self._connection.execute("UPDATE compacted SET version = ?", (compacted,))

    def _one(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _using_file(self) -> Iterator[None]:
        """Have the file to oneself; say of an error which file it is about, and what it means."""
        try:
            with self._lock:
                yield
        except sqlite3.Error as exc:
            code = getattr(exc, "sqlite_errorname", "")
            if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise DatabaseError(f"{self.path}: another process uses it") from exc
            raise DatabaseError(f"{self.path}: {exc}") from exc
        except OSError as exc:
            raise DatabaseError(f"{exc.filename or self.path}: {exc.strerror}") from exc
        except (msgspec.MsgspecError, ValueError) as exc:
            raise DatabaseError(f"{self.path}: it is damaged: {exc}") from exc


def _groups(records: Sequence[Record]) -> Iterable[Sequence[Record]]:
    """Divide what would make too large a row."""
    first = size = 0
    for index, record in enumerate(records):
        if size > GROUP_BYTES:
            yield records[first:index]
            first, size = index, 0
        size += len(record.body)
    yield records[first:]
