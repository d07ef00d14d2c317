"""NodeVolumeLimits: a node takes only as many volumes of a driver as the driver allows."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from berth.kube.objects.pod import Pod, Volume
from berth.kube.objects.storage import (
    CSINode,
    PersistentVolumeClaim,
    VolumeAttachment,
)
from berth.scheduler.framework.change import Change, ChangeKind, Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.explanation import Explains
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    EnqueueExtensions,
    FilterPlugin,
    Input,
    PreFilterPlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.framework.verdict import PASS, Ints, Mask, Rejection, Verdict
from berth_plugins.node_volume_limits.volume_counts import VolumeCountsByTable
from berth_plugins.node_volume_limits.volume_names import (
    CSIVolume,
    VolumeNames,
    may_attach,
    may_pod_attach,
)
from berth_plugins.shared.csi_translation import kind_of
from berth_plugins.shared.volume_claims import CLAIM_INDEX, references
from berth_plugins.shared.volumes_in_use import volumes_in_use

VOLUME_LIMIT_SCALING: Final = "VolumeLimitScaling"
"""The feature gate."""

TOO_MANY: Final = Status.unschedulable("node(s) exceed max volume count")

_UNLIMITED: Final = np.iinfo(np.int64).max


def not_installed(driver: str) -> Status:
    """Reject nodes that need *driver* for a volume and do not have it."""
    return Status.unschedulable(f"{driver} CSI driver is not installed on the node")


class _Full(NamedTuple):
    """A driver that takes *limit* volumes on a node, too few for those that are to be *added*."""

    driver: str
    attached: int
    added: int
    limit: int


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin, EnqueueExtensions, Explains):
    """Rejects nodes whose CSINode leaves no room for the pod's volumes (spec §5.16).

    ``attached + new > limit`` for some driver; *attached* are the distinct volumes of the pods on
    the node and of VolumeAttachments to it, *new* those of the pod that no pod there uses.

    Most nodes have few volumes. Only where all that pods use there, all that is attached and the
    new ones together could exceed a limit is it worked out which driver each belongs to.

    With the feature gate VolumeLimitScaling, nodes without the driver of a new volume are rejected
    as well, if its CSIDriver says ``preventPodSchedulingIfMissing`` (G16.2).
    """

    NAME = "NodeVolumeLimits"
    DECIDES_BY_SIGNATURE = True
    INPUTS = Input.VOLUMES

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("NodeVolumeLimits: needs a handle to look up volumes")
        self._listers = handle.listers
        self._volumes = VolumeNames(handle.listers, handle.rng)
        self._counts = VolumeCountsByTable(handle.listers, self._volumes)
        self._attachments = self._counts.attachments
        self._limited: Counter[str] = Counter()
        """How many nodes limit the volumes of each driver."""
        handle.listers.csi_nodes.follow(self._count_limits)
        self._looks_for_drivers = VOLUME_LIMIT_SCALING in handle.features

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        """Return nothing else if no node could reject *pod*; else it depends on the pods there."""
        if not may_attach(pod.template):
            return EMPTY_FRAGMENT
        new = self._volumes.wanted_by(pod.pod)
        if isinstance(new, Status):
            return None
        return None if any(self._may_reject(volume.driver) for volume in new) else EMPTY_FRAGMENT

    def _may_reject(self, driver: str) -> bool:
        must_be_installed = self._looks_for_drivers and self._must_be_installed(driver)
        return must_be_installed or driver in self._limited

    def _count_limits(self, old: CSINode | None, new: CSINode | None) -> None:
        for csi_node, sign in ((old, -1), (new, 1)):
            for driver in csi_node.limits if csi_node is not None else ():
                self._limited[driver] += sign
                if not self._limited[driver]:
                    del self._limited[driver]

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        return None if may_attach(pod.template) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        new = self._volumes.wanted_by(pod.pod)
        if isinstance(new, Status):
            return Verdict.reject(new, where=nodes.exists)
        if not new:
            return PASS
        in_use = volumes_in_use(nodes)
        missing: list[Rejection] = []
        feasible = state.feasible
        if self._looks_for_drivers:
            for driver, where in self._missing_drivers(pod.pod, new, nodes, feasible):
                missing += Verdict.reject(not_installed(driver), where).rejections
                feasible = feasible & ~where
        attached = self._attachments.counts(nodes)
        close = nodes.no_rows()
        for driver in {volume.driver for volume in new}:
            close |= in_use.counts + attached + len(new) > self._limits(nodes, driver)
        full = self._full_rows(new, nodes, close & feasible)
        if full.any():
            missing += Verdict.reject(TOO_MANY, where=full).rejections
        return Verdict(tuple(missing)) if missing else PASS

    def _full_rows(self, new: set[CSIVolume], nodes: NodeTable, rows: Mask) -> Mask:
        """Return on which of *rows* some driver leaves too little room for *new*."""
        full = nodes.no_rows()
        if not rows.any():
            return full
        counts = self._counts.of(nodes)
        counts.refresh(nodes, rows)
        for driver in {volume.driver for volume in new}:
            added = np.zeros(nodes.size, np.int64)
            for volume in new:
                if volume.driver == driver:
                    added += 1
                    added[list(counts.rows_using(volume))] -= 1
            # A volume that is attached but not used counts twice, as in kube-scheduler.
            exceeded = counts.there(driver) + added > self._limits(nodes, driver)
            full |= exceeded & (added > 0)
        return full & rows

    def _missing_drivers(
        self, pod: Pod, new: set[CSIVolume], nodes: NodeTable, rows: Mask
    ) -> Iterator[tuple[str, Mask]]:
        """Yield drivers that must be installed, and on which of *rows* they are not.

        Rows where pods use all volumes of the driver already do not count. Nor do volumes that
        the driver has taken over from Kubernetes where there is no CSINode to say so.
        """
        drivers = sorted(filter(self._must_be_installed, {volume.driver for volume in new}))
        if not drivers:
            return
        native = self._volumes.wanted_by(pod, migrated=False)
        assert not isinstance(native, Status), "it would have been refused before"
        in_use = volumes_in_use(nodes)
        known = self._rows_with_csi_node(nodes)
        for driver in drivers:
            where = rows & ~self._rows_installed(nodes, driver)
            for volumes, of_these in ((new, known), (native, ~known)):
                wanted = {volume for volume in volumes if volume.driver == driver}
                if not wanted:
                    where &= ~of_these
                for row in np.flatnonzero(where & of_these & (in_use.counts > 0)).tolist():
                    where[row] = not wanted <= self._volumes.used_by(in_use.pods(row)).volumes
            if where.any():
                yield driver, where

    def _must_be_installed(self, driver: str) -> bool:
        csi_driver = self._listers.csi_drivers.get("", driver)
        return csi_driver is not None and csi_driver.spec.prevent_pod_scheduling_if_missing

    def _rows_with_csi_node(self, nodes: NodeTable) -> Mask:
        csi_nodes = self._listers.csi_nodes

        def build() -> Mask:
            names = [name for name in nodes.row_of if csi_nodes.get("", name) is not None]
            return nodes.rows_named(names)

        return nodes.kept((self, "known", csi_nodes.version), build)

    def _rows_installed(self, nodes: NodeTable, driver: str) -> Mask:
        """Return the rows whose CSINode names *driver*."""
        csi_nodes = self._listers.csi_nodes

        def build() -> Mask:
            having = (
                csi_node.metadata.name for csi_node in csi_nodes if driver in csi_node.drivers
            )
            return nodes.rows_named([name for name in having if name in nodes.row_of])

        return nodes.kept((self, "installed", driver, csi_nodes.version), build)

    def _limits(self, nodes: NodeTable, driver: str) -> Ints:
        """Return per row how many volumes of *driver* it takes."""
        csi_nodes = self._listers.csi_nodes

        def build() -> Ints:
            limits = np.full(nodes.size, _UNLIMITED)
            for name, row in nodes.row_of.items():
                csi_node = csi_nodes.get("", name)
                if csi_node is not None:
                    limits[row] = csi_node.limits.get(driver, _UNLIMITED)
            return limits

        return nodes.kept((self, "limits", driver, csi_nodes.version), build)

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        new = self._volumes.wanted_by(pod.pod)
        if isinstance(new, Status):
            yield Detail(new.message)
            return
        alone = nodes.no_rows()
        alone[row] = True
        if self._looks_for_drivers:
            for driver, _ in self._missing_drivers(pod.pod, new, nodes, alone):
                yield Detail(f"does not have the CSI driver {driver}")
        if self._listers.csi_nodes.get("", nodes.name(row)) is None:
            return
        for full in self._exceeded(new, volumes_in_use(nodes).pods(row), nodes.name(row)):
            over = full.attached + full.added - full.limit
            change = Change(
                kind=ChangeKind.DETACH_VOLUME,
                what=full.driver,
                amount=over,
                shortfall=over / full.added,
                words=f"detach {over} of the {full.attached} volumes of {full.driver}",
            )
            yield Detail(
                f"takes {full.limit} volumes of {full.driver}, has {full.attached},"
                f" with this pod {full.added} more",
                change if over <= full.attached else None,
            )

    def _exceeded(
        self, new: set[CSIVolume], pods: Iterable[PodInfo], node_name: str
    ) -> "Iterator[_Full]":
        """Yield the drivers that leave too little room for *new* beside what *pods* there use."""
        csi_node = self._listers.csi_nodes.get("", node_name)
        assert csi_node is not None, "only nodes with limits come near them"
        used = self._volumes.used_by(pods).volumes
        attached = used | self._attachments.to(node_name)
        added = new - used
        limits = csi_node.limits
        for driver in sorted({volume.driver for volume in added}):
            full = _Full(
                driver,
                attached=sum(volume.driver == driver for volume in attached),
                added=sum(volume.driver == driver for volume in added),
                limit=limits.get(driver, _UNLIMITED),
            )
            if full.attached + full.added > full.limit:
                yield full

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        def on(resource: EventResource, action: ActionType) -> ClusterEvent:
            return ClusterEvent(resource, action)

        return [
            ClusterEventWithHint(on(EventResource.CSI_NODE, ActionType.ADD)),
            ClusterEventWithHint(
                on(EventResource.CSI_NODE, ActionType.UPDATE),
                after_driver_installation if self._looks_for_drivers else after_csi_node_update,
            ),
            ClusterEventWithHint(on(EventResource.POD, ActionType.DELETE), after_pod_deletion),
            ClusterEventWithHint(
                on(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
                after_new_claim,
                (CLAIM_INDEX,),
            ),
            ClusterEventWithHint(
                on(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE), after_detachment
            ),
        ]


# Events that may make room for a pod.


def after_csi_node_update(pod: Pod, old: CSINode, new: CSINode) -> QueueingHint:
    """Queue if the node takes more volumes of some driver than before."""
    before = old.limits
    raised = any(limit > before.get(driver, 0) for driver, limit in new.limits.items())
    return QueueingHint.QUEUE if raised else QueueingHint.SKIP


def after_driver_installation(pod: Pod, old: CSINode, new: CSINode) -> QueueingHint:
    """Queue if the node has a driver more, or takes more volumes of some driver than before.

    kube-scheduler looks at the limits only, so that a driver without one wakes nobody (G16.2).
    """
    if new.drivers - old.drivers:
        return QueueingHint.QUEUE
    return after_csi_node_update(pod, old, new)


def after_pod_deletion(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    """Queue if the deleted pod had a place, and volumes."""
    had_place = old.spec.node_name or old.status.nominated_node_name
    return QueueingHint.QUEUE if had_place and may_pod_attach(old) else QueueingHint.SKIP


def after_new_claim(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    """Queue if the claim is one of the pod's."""
    return QueueingHint.QUEUE if references(pod, new) else QueueingHint.SKIP


def after_detachment(pod: Pod, old: VolumeAttachment, new: VolumeAttachment | None) -> QueueingHint:
    """Queue if the detached volume may have taken the room that this pod needs."""
    may_help = any(_may_wait_for(volume, old.spec.attacher) for volume in pod.spec.volumes)
    return QueueingHint.QUEUE if may_help else QueueingHint.SKIP


def _may_wait_for(volume: Volume, driver: str) -> bool:
    kind = kind_of(volume)
    return volume.persistent_volume_claim is not None or (
        kind is not None and kind.driver == driver
    )
