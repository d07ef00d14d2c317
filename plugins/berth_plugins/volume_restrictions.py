"""VolumeRestrictions: a disk or claim that only one pod may use is used by one pod."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from berth.kube.objects.pod import Pod, Volume
from berth.kube.objects.storage import PersistentVolumeClaim
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    NODE_ADD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintIndex,
    QueueingHint,
)
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    EnqueueExtensions,
    FilterPlugin,
    Input,
    PreFilterExtensions,
    PreFilterPlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.framework.verdict import Ints, Mask, Rejection, Rows, Verdict
from berth_plugins.shared.volume_claims import CLAIM_INDEX, own_claims
from berth_plugins.shared.volumes_in_use import disk_of, volumes_in_use

DISK_CONFLICT: Final = Status.unschedulable("node(s) had no available disk")
WITHOUT_PRE_FILTER: Final = Status.error(
    'cannot read "PreFilterVolumeRestrictions" from cycleState'
)
"""What Filter says where the plugin is disabled at preFilter."""
CLAIM_IN_USE: Final = Status.unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already"
    " in-use by another pod"
)

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"


class Conflicts(msgspec.Struct):
    """What PreFilter found: claims for one pod only, and how often others use them."""

    claims: frozenset[str]
    count: int
    changes: Ints | None = None
    """By row of an overlay, how much more often they are used; None: it is none yet."""

    def clone(self) -> "Conflicts":
        return replace(self, changes=None if self.changes is None else self.changes.copy())

    def take_rows(self, rows: Rows) -> "Conflicts":
        return replace(self, changes=None if self.changes is None else self.changes[rows])

    def rows_in_use(self, nodes: NodeTable) -> Mask:
        """Return the rows in whose eyes another pod somewhere uses one of the claims."""
        if self.changes is None:
            return np.full(nodes.size, self.count > 0)
        return self.count + self.changes > 0


class VolumeRestrictions(PreFilterPlugin, PreFilterExtensions, FilterPlugin, EnqueueExtensions):
    """Rejects nodes by disks in use there, and all nodes by ReadWriteOncePod (spec §5.13).

    Disks are those that a pod names itself: GCE and AWS disks, iSCSI and RBD volumes.
    """

    NAME = "VolumeRestrictions"
    DECIDES_BY_SIGNATURE = True
    INPUTS = Input.VOLUMES

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("VolumeRestrictions: needs a handle to look up claims")
        self._claims = handle.listers.persistent_volume_claims

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        exclusive = self._exclusive_claims(pod)
        if isinstance(exclusive, Status) or restricted_volumes(pod.template):
            return None
        return None if _count_uses(exclusive, pod, nodes) else EMPTY_FRAGMENT

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        if not pod.pod.spec.volumes:
            return SKIP
        exclusive = self._exclusive_claims(pod)
        if isinstance(exclusive, Status):
            return exclusive
        count = _count_uses(exclusive, pod, nodes)
        if not count and not restricted_volumes(pod.template):
            return SKIP
        state.write(self.NAME, Conflicts(exclusive, count))
        return None

    def _exclusive_claims(self, pod: PodInfo) -> frozenset[str] | Status:
        """Return the names of the claims of *pod* that only one pod may use."""
        exclusive = []
        for name in own_claims(pod.pod):
            claim = self._claims.get(pod.namespace, name)
            if claim is None:
                return Status.unresolvable(f'persistentvolumeclaim "{name}" not found')
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.append(name)
        return frozenset(exclusive)

    def add_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> None:
        _change(state.read(self.NAME), rows, pods, nodes, by=1)

    def remove_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> None:
        _change(state.read(self.NAME), rows, pods, nodes, by=-1)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        conflicts: Conflicts | None = state.get(self.NAME)
        taken = nodes.no_rows()
        taken[list(_rows_taken(restricted_volumes(pod.template), nodes))] = True
        verdict = Verdict.reject(DISK_CONFLICT, where=taken)
        if conflicts is None:
            without = Verdict.reject(WITHOUT_PRE_FILTER, where=nodes.exists & ~taken)
            return Verdict((*verdict.rejections, *without.rejections))
        in_use = conflicts.rows_in_use(nodes)
        if in_use.any():
            (reason,) = CLAIM_IN_USE.reasons
            rejection = Rejection(reason, CLAIM_IN_USE.code, in_use & ~taken)
            verdict = Verdict((*verdict.rejections, rejection))
        return verdict

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pod_gone = ClusterEvent(EventResource.POD, ActionType.DELETE)
        new_claim = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
        return [
            ClusterEventWithHint(pod_gone, after_pod_deletion, (SHARED_INDEX,)),
            ClusterEventWithHint(NODE_ADD),
            ClusterEventWithHint(new_claim, after_new_claim, (CLAIM_INDEX,)),
        ]


def _count_uses(claims: Iterable[str], pod: PodInfo, nodes: NodeTable) -> int:
    """Return how many of *claims*, in the namespace of *pod*, other pods use."""
    if not claims:
        return 0
    in_use = volumes_in_use(nodes)
    return sum(in_use.is_claim_used(f"{pod.namespace}/{name}") for name in claims)


def _change(conflicts: Conflicts, rows: Rows, pods: PodBatch, nodes: NodeTable, *, by: int) -> None:
    """Count how often *pods* use the claims; kube-scheduler does not compare namespaces here."""
    if not conflicts.claims:
        return
    uses = pods.per_template(lambda template: bool(own_claims(template.pod)))
    for i in np.flatnonzero(uses).tolist():
        uses[i] = sum(name in conflicts.claims for name in own_claims(pods[i].pod))
    if conflicts.changes is None:
        conflicts.changes = np.zeros(nodes.size, np.int64)
    np.add.at(conflicts.changes, rows, by * uses)


# Disks.


def restricted_volumes(template: PodTemplate) -> tuple[Volume, ...]:
    """Return the volumes of *template* that name disks which pods may not share at will."""
    return template.memo("restricted volumes", lambda: tuple(_restricted(template.pod)))


def _restricted(pod: Pod) -> Iterable[Volume]:
    for volume in pod.spec.volumes:
        if (
            volume.gce_persistent_disk is not None
            or volume.aws_elastic_block_store is not None
            or volume.iscsi is not None
            or volume.rbd is not None
        ):
            yield volume


def _rows_taken(volumes: Sequence[Volume], nodes: NodeTable) -> Iterable[int]:
    """Yield the rows where a pod uses a disk of *volumes* so that no other pod may."""
    if not volumes:
        return
    in_use = volumes_in_use(nodes)
    for volume in volumes:
        disk = disk_of(volume)
        assert disk is not None, volume.name
        for row in in_use.rows_with(disk):
            others = (other for on_row in in_use.pods(row) for other in on_row.pod.spec.volumes)
            if any(conflict(volume, other) for other in others):
                yield row


def conflict(volume: Volume, other: Volume) -> bool:
    """Whether the two are one disk that two pods cannot have; reading alone can be shared.

    AWS disks are not shared even for reading; RBD images are one if they share a monitor.
    """
    if disk_of(volume) is None or disk_of(volume) != disk_of(other):
        return False
    if volume.gce_persistent_disk and other.gce_persistent_disk:
        return not (volume.gce_persistent_disk.read_only and other.gce_persistent_disk.read_only)
    if volume.iscsi and other.iscsi:
        return not (volume.iscsi.read_only and other.iscsi.read_only)
    if volume.rbd and other.rbd:
        return not (volume.rbd.read_only and other.rbd.read_only) and not (
            set(volume.rbd.monitors).isdisjoint(other.rbd.monitors)
        )
    return volume.aws_elastic_block_store is not None


# Queueing hints.


def after_pod_deletion(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    """Queue if the deleted pod had a disk or claim of this one's, whatever its access modes."""
    if old.metadata.namespace != pod.metadata.namespace:
        return QueueingHint.SKIP
    freed_disk = any(
        conflict(volume, other) for volume in pod.spec.volumes for other in old.spec.volumes
    )
    freed_claims = _claim_names(pod) & _claim_names(old)
    return QueueingHint.QUEUE if freed_disk or freed_claims else QueueingHint.SKIP


def after_new_claim(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    """Queue if the claim is one of the pod's."""
    same = pod.metadata.namespace == new.metadata.namespace
    return (
        QueueingHint.QUEUE if same and new.metadata.name in _claim_names(pod) else QueueingHint.SKIP
    )


def _claim_names(pod: Pod) -> set[str]:
    return {
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }


def _shared_keys(pod: Pod) -> tuple[Hashable, ...]:
    """Return the disks and claims of *pod*, of which it may wait for one and free one."""
    namespace = pod.metadata.namespace
    disks = (disk_of(volume) for volume in pod.spec.volumes)
    return (
        *((namespace, name) for name in _claim_names(pod)),
        *((namespace, *disk) for disk in disks if disk is not None),
    )


SHARED_INDEX: Final = HintIndex(
    lambda pod: [_shared_keys(pod.pod)], lambda old, _new: _shared_keys(old)
)
