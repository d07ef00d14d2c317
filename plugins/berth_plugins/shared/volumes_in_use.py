"""Volumes in use by the pods of each row."""

from collections.abc import Iterable, Sequence
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from berth.kube.objects.pod import Volume
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.verdict import Ints
from berth_plugins.shared.volume_claims import claim_volumes, own_claims

Disk = tuple[str, ...]


def disk_of(volume: Volume) -> Disk | None:
    """Return what tells the disk apart that *volume* itself names; None if it names none."""
    if volume.gce_persistent_disk is not None:
        return "gcePersistentDisk", volume.gce_persistent_disk.pd_name
    if volume.aws_elastic_block_store is not None:
        return "awsElasticBlockStore", volume.aws_elastic_block_store.volume_id
    if volume.iscsi is not None:
        return "iscsi", volume.iscsi.iqn
    if volume.rbd is not None:
        return "rbd", volume.rbd.pool, volume.rbd.image
    if volume.azure_disk is not None:
        return "azureDisk", volume.azure_disk.disk_uri
    if volume.cinder is not None:
        return "cinder", volume.cinder.volume_id
    return None


def disks_of(template: PodTemplate) -> tuple[Disk, ...]:
    """Return the disks that pods of *template* name themselves."""
    return template.memo(
        "disks",
        lambda: tuple(
            disk for volume in template.pod.spec.volumes if (disk := disk_of(volume)) is not None
        ),
    )


def _uses_volumes(template: PodTemplate) -> bool:
    return template.memo(
        "uses volumes",
        lambda: bool(disks_of(template)) or any(claim_volumes(template.pod)),
    )


class VolumesInUse:
    """The pods with claims or disks, by row.

    Nothing has to tell it of pods that come and go: when asked, it looks again at the rows whose
    generation has moved since. Get it from :func:`volumes_in_use`.
    """

    __slots__ = ("_claims", "_counts", "_disks", "_pods", "_seen")

    def __init__(self) -> None:
        self._seen: Ints = np.zeros(0, np.int64)
        self._counts: Ints = np.zeros(0, np.int64)
        self._pods: dict[int, tuple[PodInfo, ...]] = {}
        self._claims: dict[str, int] = {}
        self._disks: dict[Disk, set[int]] = {}

    @property
    def counts(self) -> Ints:
        """Per row, how many distinct claims and disks its pods use. Not to be changed."""
        return self._counts

    def pods(self, row: int) -> Sequence[PodInfo]:
        """Return the pods on *row* that use claims or disks."""
        return self._pods.get(row, ())

    def is_claim_used(self, key: str) -> bool:
        """Whether a pod on some row names the claim ``namespace/name``; ephemeral ones aside."""
        return key in self._claims

    def rows_with(self, disk: Disk) -> Iterable[int]:
        """Return the rows with a pod that names *disk*."""
        return self._disks.get(disk, ())

    def refresh(self, nodes: NodeTable) -> None:
        """Catch up with *nodes*, which must be the same table every time."""
        missing = nodes.size - len(self._seen)
        if missing > 0:
            self._seen = np.concatenate([self._seen, np.zeros(missing, np.int64)])
            self._counts = np.concatenate([self._counts, np.zeros(missing, np.int64)])
        generation = nodes.generation
        for row in np.flatnonzero(self._seen != generation).tolist():
            self._forget(row)
            self._read(row, nodes.pods[row].values())
        self._seen[:] = generation

    def _forget(self, row: int) -> None:
        for pod in self._pods.pop(row, ()):
            for name in own_claims(pod.pod):
                key = f"{pod.namespace}/{name}"
                self._claims[key] -= 1
                if not self._claims[key]:
                    del self._claims[key]
            for disk in disks_of(pod.template):
                rows = self._disks.get(disk, set())
                rows.discard(row)
                if not rows:
                    self._disks.pop(disk, None)

    def _read(self, row: int, pods: Iterable[PodInfo]) -> None:
        using = tuple(pod for pod in pods if _uses_volumes(pod.template))
        used: set[str | Disk] = set()
        for pod in using:
            for name in own_claims(pod.pod):
                key = f"{pod.namespace}/{name}"
                self._claims[key] = self._claims.get(key, 0) + 1
            for disk in disks_of(pod.template):
                self._disks.setdefault(disk, set()).add(row)
                used.add(disk)
            used |= {f"{pod.namespace}/{volume.claim_name}" for volume in claim_volumes(pod.pod)}
        if using:
            self._pods[row] = using
        self._counts[row] = len(used)


_of_table: Final[WeakKeyDictionary[NodeTable, VolumesInUse]] = WeakKeyDictionary()


def volumes_in_use(nodes: NodeTable) -> VolumesInUse:
    """Return which volumes are in use on *nodes* now; valid within the attempt."""
    in_use = _of_table.get(nodes)
    if in_use is None:
        in_use = _of_table[nodes] = VolumesInUse()
    in_use.refresh(nodes)
    return in_use
