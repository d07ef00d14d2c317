"""VolumeZone: a pod goes to the zones where its volumes are."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from berth.scheduler.framework.change import Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.explanation import Explains, SummingUp, SumsUp
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
from berth.scheduler.framework.verdict import Mask, Verdict
from berth.scheduler.framework.words import counted
from berth_plugins.shared.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE
from berth_plugins.shared.volume_claims import CLAIM_INDEX, own_claims

NO_ZONE: Final = Status.unresolvable("node(s) had no available volume zone")

TOPOLOGY_KEYS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_STABLE_KEY: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}
"""What a node may have in place of a beta label."""
_SEPARATOR: Final = "__"


class Topology(NamedTuple):
    """A volume can be reached from nodes with one of *values* for label *key*."""

    key: str
    values: frozenset[str]


class VolumeZone(PreFilterPlugin, FilterPlugin, EnqueueExtensions, Explains, SumsUp):
    """Rejects nodes outside the zones and regions in the labels of the pod's volumes (spec §5.14).

    Nodes without any such label pass. Generic ephemeral volumes are not looked at.
    """

    NAME = "VolumeZone"
    DECIDES_BY_SIGNATURE = True
    INPUTS = Input.VOLUMES

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("VolumeZone: needs a handle to look up volumes")
        self._listers = handle.listers

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        zones = self._topologies_of(pod)
        return None if isinstance(zones, Status) else tuple(zones) or EMPTY_FRAGMENT

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        zones = self._topologies_of(pod)
        if isinstance(zones, Status):
            return zones
        if not zones:
            return SKIP
        state.write(self.NAME, zones)
        return None

    def _topologies_of(self, pod: PodInfo) -> list[Topology] | Status:
        """Return where the volumes of *pod* are that exist, or what is wrong with a claim."""
        zones: list[Topology] = []
        for name in own_claims(pod.pod):
            volume = self._volume_of(pod.namespace, name)
            if isinstance(volume, Status):
                return volume
            if volume is not None:
                zones.extend(topologies(volume))
        return zones

    def _volume_of(self, namespace: str, claim_name: str) -> PersistentVolume | Status | None:
        """Return the volume of a claim, why it has none, or None if it gets it with the node."""
        if not claim_name:
            return Status.unresolvable("PersistentVolumeClaim had no name")
        claim = self._listers.persistent_volume_claims.get(namespace, claim_name)
        if claim is None:
            return Status.unresolvable(f'persistentvolumeclaim "{claim_name}" not found')
        if not claim.spec.volume_name:
            return self._refusal_of_unbound(claim)
        volume = self._listers.persistent_volumes.get("", claim.spec.volume_name)
        if volume is None:
            return Status.unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found')
        return volume

    def _refusal_of_unbound(self, claim: PersistentVolumeClaim) -> Status | None:
        name = claim.storage_class
        if not name:
            return Status.unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self._listers.storage_classes.get("", name)
        if storage_class is None:
            return Status.unresolvable(f'storageclass.storage.k8s.io "{name}" not found')
        if storage_class.volume_binding_mode is None:
            return Status.unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return None
        return Status.unresolvable("PersistentVolume had no name")

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        wanted: list[Topology] | Status | None = state.get(self.NAME)
        if wanted is None:  # the plugin is disabled at preFilter
            wanted = self._topologies_of(pod)
        if isinstance(wanted, Status):
            return Verdict.reject(wanted, where=nodes.exists)
        outside = nodes.no_rows()
        for topology in wanted:
            outside |= ~_rows_within(topology, nodes)
        labelled = nodes.no_rows()
        for key in TOPOLOGY_KEYS:
            labelled |= nodes.labels.has(key)
        return Verdict.reject(NO_ZONE, where=outside & labelled)

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        for words, topology in self._told(pod):
            if not _rows_within(topology, nodes)[row]:
                key = topology.key
                value = nodes.labels.values(key)[nodes.labels.ids(key)[row]]
                yield Detail(f"{words}, the node in {value}" if value else f"{words}, the node not")

    def sum_up(self, state: CycleState, pod: PodInfo, nodes: NodeTable, where: Mask) -> SummingUp:
        """Tell where the volumes are, and how many nodes are there."""
        clauses = []
        for words, topology in self._told(pod):
            there = int((nodes.exists & _rows_within(topology, nodes)).sum())
            count = f"{there or 'none'} of {counted(len(nodes), 'node')}"
            clauses.append(f"{words}, where {count} {'is' if there < 2 else 'are'}")
            yield
        return "; ".join(clauses)

    def _told(self, pod: PodInfo) -> Iterator[tuple[str, Topology]]:
        """Yield where each volume of *pod* is, in words: "volume v (claim c) is in zone-a"."""
        for name in own_claims(pod.pod):
            volume = self._volume_of(pod.namespace, name)
            if isinstance(volume, PersistentVolume):
                for topology in topologies(volume):
                    there = " or ".join(sorted(topology.values))
                    yield f"volume {volume.metadata.name} (claim {name}) is in {there}", topology

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        added, changed = ActionType.ADD, ActionType.ADD | ActionType.UPDATE
        claim = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, changed)
        return [
            ClusterEventWithHint(ClusterEvent(EventResource.STORAGE_CLASS, added), after_new_class),
            ClusterEventWithHint(
                ClusterEvent(EventResource.NODE, added | ActionType.UPDATE_NODE_LABEL)
            ),
            ClusterEventWithHint(claim, after_claim_change, (CLAIM_INDEX,)),
            ClusterEventWithHint(
                ClusterEvent(EventResource.PERSISTENT_VOLUME, changed), after_volume_change
            ),
        ]


def _rows_within(topology: Topology, nodes: NodeTable) -> Mask:
    key, values = topology
    within = nodes.labels.is_any_of(key, tuple(values))
    stable = _STABLE_KEY.get(key)
    if stable is not None:
        within |= ~nodes.labels.has(key) & nodes.labels.is_any_of(stable, tuple(values))
    return within


def topologies(volume: PersistentVolume) -> list[Topology]:
    """Return where *volume* is, by its labels; one that names an empty zone says nothing."""
    zones = []
    for key in TOPOLOGY_KEYS:
        written = volume.metadata.labels.get(key)
        if written is not None:
            values = frozenset(value.strip() for value in written.split(_SEPARATOR))
            if "" not in values:
                zones.append(Topology(key, values))
    return zones


# Queueing hints.


def after_new_class(pod: Pod, old: StorageClass | None, new: StorageClass) -> QueueingHint:
    """Queue if volumes of the class are chosen with the node; else the pod waits for a volume."""
    waits = new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return QueueingHint.QUEUE if waits else QueueingHint.SKIP


def after_claim_change(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    """Queue if the claim is one of the pod's."""
    same = pod.metadata.namespace == new.metadata.namespace
    named = any(
        volume.persistent_volume_claim is not None
        and volume.persistent_volume_claim.claim_name == new.metadata.name
        for volume in pod.spec.volumes
    )
    return QueueingHint.QUEUE if same and named else QueueingHint.SKIP


def after_volume_change(
    pod: Pod, old: PersistentVolume | None, new: PersistentVolume
) -> QueueingHint:
    """Queue if the volume is new, or somewhere else than before."""

    def place(volume: PersistentVolume) -> list[str | None]:
        return [volume.metadata.labels.get(key) for key in TOPOLOGY_KEYS]

    return QueueingHint.QUEUE if old is None or place(old) != place(new) else QueueingHint.SKIP
