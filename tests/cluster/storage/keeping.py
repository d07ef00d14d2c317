"""A store that is kept, and disks that misbehave."""

import threading
from collections.abc import Sequence
from pathlib import Path

from berth.cluster.resources import Object
from berth.cluster.storage.database import Database, DatabaseError, Record
from berth.cluster.storage.journal import Journal
from berth.cluster.storage.store import Store


class Kept:
    """A store with its journal, on the file in *folder*."""

    def __init__(self, folder: Path, *, kept_changes: int = 10_000) -> None:
        self.database = SlowDatabase(folder, kept_changes=kept_changes)
        self.journal = Journal(self.database)
        self.store = Store(journal=self.journal)

    async def __aenter__(self) -> "Kept":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.database.go_on()
        await self.journal.close()


class SlowDatabase(Database):
    """A database whose disk can be stopped, filled up, and broken."""

    def __init__(self, folder: Path, *, kept_changes: int) -> None:
        super().__init__(folder, kept_changes=kept_changes)
        self._moves = threading.Event()
        self._moves.set()
        self._fails = False
        self.groups: list[int] = []
        """How many records were appended each time."""

    def stop(self) -> None:
        """Let nothing be written."""
        self._moves.clear()

    def go_on(self) -> None:
        self._moves.set()

    def fill_up(self) -> None:
        """Leave no room on the disk, as far as SQLite knows."""
        self._connection.execute("PRAGMA max_page_count = 1")

    def fail(self) -> None:
        """Let every write fail from now on."""
        self._fails = True

    def append(self, records: Sequence[Record]) -> None:
        self._moves.wait()
        if self._fails:
            raise DatabaseError(f"{self.path}: disk I/O error")
        self.groups.append(len(records))
        super().append(records)


def obj(name: str, namespace: str = "default", **spec: object) -> Object:
    return {"metadata": {"namespace": namespace, "name": name, "uid": f"u-{name}"}, "spec": spec}
