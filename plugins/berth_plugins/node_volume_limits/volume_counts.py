"""Counts of the volumes of each driver on the nodes of a table."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from berth.kube.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import Ints, Mask
from berth_plugins.node_volume_limits.attachments import Attachments
from berth_plugins.node_volume_limits.volume_names import CSIVolume, VolumeNames
from berth_plugins.shared.volumes_in_use import volumes_in_use

_MOST_COLUMNS: Final = 64
"""Drivers that have a column at once; at 5,000 nodes one is 40 kB."""

_NEVER: Final = -1
"""No row has this generation."""

K = TypeVar("K", bound=Hashable)


class RowsByKey(Generic[K]):
    """Rows, each with some keys; most keys are those of one row."""

    __slots__ = ("_keys", "_rows")

    def __init__(self) -> None:
        self._keys: dict[int, tuple[K, ...]] = {}
        self._rows: dict[K, tuple[int, ...]] = {}

    def rows(self, key: K) -> Sequence[int]:
        """Return the rows with *key*."""
        return self._rows.get(key, ())

    def put(self, row: int, keys: set[K]) -> None:
        """Give *row* these keys in place of those that it had."""
        had = self._keys.get(row, ())
        for key in had:
            if key not in keys:
                rows = tuple(other for other in self._rows[key] if other != row)
                if rows:
                    self._rows[key] = rows
                else:
                    del self._rows[key]
        this = (row,)
        for key in keys.difference(had):
            self._rows[key] = self._rows.get(key, ()) + this
        self._keys[row] = tuple(keys)


class VolumeCounts:
    """The volumes that pods use and those that are attached, by row of one table.

    Only rows that are asked for are looked at, and again only if their generation has moved or
    something that they go by has changed.
    """

    __slots__ = ("_attachments", "_columns", "_counts", "_go_by", "_names", "_seen", "_users")

    def __init__(self, names: VolumeNames, attachments: Attachments) -> None:
        self._names = names
        self._attachments = attachments
        self._seen: Ints = np.zeros(0, np.int64)
        self._counts: dict[int, Mapping[str, int]] = {}
        """By row, how many are in use or attached of each driver."""
        self._columns: dict[str, Ints] = {}
        """The same by driver, of those that were asked for."""
        self._users: RowsByKey[CSIVolume] = RowsByKey()
        self._go_by: RowsByKey[str] = RowsByKey()
        """By the names of claims (with namespace), volumes and the node that rows go by.

        One name may stand for several kinds: then rows are looked at once too often.
        """

    def there(self, driver: str) -> Ints:
        """Return per row how many distinct volumes are in use or attached. Not to be changed."""
        column = self._columns.get(driver)
        if column is None:
            if len(self._columns) >= _MOST_COLUMNS:
                self._columns.clear()
            column = self._columns[driver] = np.zeros(len(self._seen), np.int64)
            for row, counts in self._counts.items():
                column[row] = counts.get(driver, 0)
        return column

    def rows_using(self, volume: CSIVolume) -> Sequence[int]:
        """Return the rows with a pod that uses *volume*."""
        return self._users.rows(volume)

    def refresh(self, nodes: NodeTable, rows: Mask) -> None:
        """Catch up with *rows* of *nodes*, which must be the same table every time.

        What is said of other rows may be out of date.
        """
        missing = nodes.size - len(self._seen)
        if missing > 0:
            self._seen = np.concatenate([self._seen, np.full(missing, _NEVER)])
            self._columns.clear()
        stale = np.flatnonzero(rows & (self._seen != nodes.generation))
        if not len(stale):
            return
        in_use = volumes_in_use(nodes)
        for row in stale.tolist():
            self._read(row, nodes.name(row), in_use.pods(row))
        self._seen[stale] = nodes.generation[stale]

    def _read(self, row: int, node_name: str, pods: Iterable[PodInfo]) -> None:
        used, looked_up = self._names.used_by(pods)
        self._users.put(row, used)
        attached = self._attachments.volume_names(node_name)
        self._go_by.put(row, looked_up.union(attached, (node_name,)))
        there = used | self._attachments.to(node_name)
        counts = self._counts[row] = Counter(volume.driver for volume in there)
        for driver, column in self._columns.items():
            column[row] = counts[driver]

    def look_again(self, name: str) -> None:
        """Do not trust rows any more that go by *name*."""
        self._seen[list(self._go_by.rows(name))] = _NEVER

    def look_again_everywhere(self) -> None:
        """Do not trust any row any more."""
        self._seen[:] = _NEVER


class VolumeCountsByTable:
    """The counts of all tables; claims, volumes, classes and attachments are followed for them."""

    def __init__(self, listers: Listers, names: VolumeNames) -> None:
        self.attachments = Attachments(listers)
        self._names = names
        self._of_table: WeakKeyDictionary[NodeTable, VolumeCounts] = WeakKeyDictionary()
        listers.persistent_volume_claims.follow(self._claim_changed)
        listers.persistent_volumes.follow(self._volume_changed)
        listers.storage_classes.follow(self._class_changed)
        listers.volume_attachments.follow(self._attachment_changed)

    def of(self, nodes: NodeTable) -> VolumeCounts:
        """Return the counts of a table, to be refreshed before they are used."""
        counts = self._of_table.get(nodes)
        if counts is None:
            counts = self._of_table[nodes] = VolumeCounts(self._names, self.attachments)
        return counts

    def _look_again(self, name: str) -> None:
        for counts in self._of_table.values():
            counts.look_again(name)

    def _claim_changed(
        self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
    ) -> None:
        if (changed := new or old) is not None:
            self._look_again(f"{changed.metadata.namespace}/{changed.metadata.name}")

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if (changed := new or old) is not None:
            self._look_again(changed.metadata.name)

    def _class_changed(self, old: StorageClass | None, new: StorageClass | None) -> None:
        for counts in self._of_table.values():
            counts.look_again_everywhere()

    def _attachment_changed(
        self, old: VolumeAttachment | None, new: VolumeAttachment | None
    ) -> None:
        for changed in (old, new):
            if changed is not None:
                self._look_again(changed.spec.node_name)
