"""VolumeBinding: a pod goes where its volumes are, or can be, and its claims get them."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from pydantic import Field

from berth.framework.assume_cache import AssumeCache, OutOfSyncError
from berth.framework.cycle_state import CycleState
from berth.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    Hint,
    QueueingHint,
)
from berth.framework.explanation import Detail, Explains, SummingUp, SumsUp, counted, listed
from berth.framework.handle import Handle
from berth.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    PluginArgs,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Scores,
)
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.status import SKIP, Code, Status
from berth.framework.verdict import Mask, Verdict
from berth.framework.writes import PluginWrites
from berth.objects.pod import Pod
from berth.objects.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from berth_plugins.shared.csi_translation import MIGRATED_PLUGINS
from berth_plugins.shared.volume_claims import (
    ClaimVolume,
    claim_volumes,
    ownership_error,
    references,
)
from berth_plugins.volume_binding.binder import PodClaims, VolumePlacement
from berth_plugins.volume_binding.pod_volumes import (
    Binding,
    BindingFailedError,
    Commitment,
    Progress,
    bound_to,
    provisioned_for,
)

UNBOUND_IMMEDIATE: Final = Status.unresolvable("pod has unbound immediate PersistentVolumeClaims")

POLL_SECONDS: Final = 1.0
"""How often PreBind looks whether the volumes are there."""


class VolumeBindingArgs(PluginArgs):
    """How patient the plugin is; ``shape`` needs the gate StorageCapacityScoring."""

    bind_timeout_seconds: int = Field(default=600, ge=0)


class VolumeBinding(
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
    Explains,
    SumsUp,
):
    """Rejects nodes that cannot use the pod's volumes, and where none can be had (spec §5.15).

    What was decided for a pod is assumed until the API knows it, so that no two pods get the same
    volume. PreBind writes it, and waits until volumes and claims are bound.
    """

    NAME = "VolumeBinding"
    DECIDES_BY_SIGNATURE = True
    ALLOW_PARALLEL = True
    ARGS = VolumeBindingArgs

    def __init__(self, args: VolumeBindingArgs | None = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("VolumeBinding: needs a handle to look up and bind volumes")
        self._handle = handle
        self._timeout = float((args or VolumeBindingArgs()).bind_timeout_seconds)
        self._listers = handle.listers
        self._outcomes = handle.outcomes
        self._volumes = AssumeCache(handle.listers.persistent_volumes)
        self._claims = AssumeCache(handle.listers.persistent_volume_claims)
        self._placement = VolumePlacement(handle.listers, self._volumes)
        self._progress = Progress(handle)

    # Filtering.

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        volumes = tuple(claim_volumes(pod.pod))
        if not volumes:
            return SKIP
        for volume in volumes:
            error = self._claim_error(pod, volume)
            if error:
                return Status.unresolvable(error)
        claims = self._sorted_claims(pod, volumes)
        if isinstance(claims, Status):
            return claims
        state.write(self.NAME, claims)
        return None

    def _claim_error(self, pod: PodInfo, volume: ClaimVolume) -> str:
        """Say why *pod* cannot run with a claim as it is; "" if it can."""
        name = volume.claim_name
        claim = self._listers.persistent_volume_claims.get(pod.namespace, name)
        if claim is None:
            missing = f'persistentvolumeclaim "{name}"'
            if volume.is_ephemeral:
                return f"waiting for ephemeral volume controller to create the {missing}"
            return f"{missing} not found"
        if claim.status.phase == "Lost":
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume'
                f' "{claim.spec.volume_name}"'
            )
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        return ownership_error(pod.pod, claim) if volume.is_ephemeral else ""

    def _sorted_claims(self, pod: PodInfo, volumes: Sequence[ClaimVolume]) -> PodClaims | Status:
        """Tell claims apart: those with a volume, and those that get theirs with the node.

        A refusal if there are others.
        """
        bound, delayed, has_immediate = [], [], False
        for volume in volumes:
            claim = self._claims.get(pod.namespace, volume.claim_name)
            assert claim is not None, volume.claim_name
            if claim.is_fully_bound:
                bound.append(claim)
                continue
            storage_class = self._listers.storage_classes.get("", claim.storage_class)
            mode = storage_class.volume_binding_mode if storage_class else ""
            if mode is None:
                return Status.error(
                    f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"'
                )
            if mode == WAIT_FOR_FIRST_CONSUMER and not claim.spec.volume_name:
                delayed.append(claim)
            else:
                has_immediate = True
        return UNBOUND_IMMEDIATE if has_immediate else PodClaims(tuple(bound), tuple(delayed))

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        claims: PodClaims = state.read(self.NAME)
        verdict = self._placement.judge(claims, nodes, state.feasible).verdict
        if any(r.code is Code.ERROR and r.where.any() for r in verdict.rejections):
            self._outcomes.volume_stage_failed("predicate")
        return verdict

    # Explaining.

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        claims: PodClaims = state.read(self.NAME)
        rows = nodes.no_rows()
        rows[row] = True
        for claim in (*claims.bound, *claims.delayed):
            is_bound = claim in claims.bound
            alone = PodClaims((claim,), ()) if is_bound else PodClaims((), (claim,))
            refusal = self._placement.judge(alone, nodes, rows).verdict.status_of(row)
            if refusal is not None:
                yield Detail(f"{_named(claim)}: {refusal.message}")

    def sum_up(self, state: CycleState, pod: PodInfo, nodes: NodeTable, where: Mask) -> SummingUp:
        """Tell from which nodes volumes can be used, and which claims can have one nowhere."""
        claims: PodClaims = state.read(self.NAME)
        clauses = []
        for claim in claims.bound:
            alone = PodClaims((claim,), ())
            held_back = self._placement.judge(alone, nodes, nodes.exists).verdict.rejected()
            rows = np.flatnonzero(nodes.exists & ~held_back) if held_back is not None else ()
            if held_back is not None:
                names = sorted(nodes.names(rows))
                which = f": {listed(names)}" if names else ""
                number = f"{len(names) or 'none'} of {counted(len(nodes), 'node')}{which}"
                clauses.append(f"{_named(claim)} can be used from {number}")
            yield
        return "; ".join(clauses)

    # Scoring: only with the gate StorageCapacityScoring, which is off.

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        return SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        return np.zeros(nodes.size, np.int64)

    # Claiming.

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        claims: PodClaims | None = state.get(self.NAME)
        if claims is None or not claims.delayed:
            return None
        nodes = self._handle.nodes
        row = nodes.row_of.get(node_name)
        if row is None:
            return Status.error(f'node "{node_name}" not found')
        placement = self._placement.judge(claims, nodes, nodes.rows_named([node_name]))
        refusal = placement.verdict.status_of(row)
        if refusal is not None:
            return refusal
        commitment = Commitment()
        state.write(self._key, commitment)
        try:
            for claim, volume in placement.bindings(row):
                commitment.bindings.append(Binding(claim, self._bind(commitment, volume, claim)))
            for claim in placement.provisions(row):
                commitment.provisions.append(self._select(commitment, claim, node_name))
        except OutOfSyncError as exc:
            self._outcomes.volume_stage_failed("assume")
            return Status.error(str(exc))
        return None

    def _bind(
        self, commitment: Commitment, volume: PersistentVolume, claim: PersistentVolumeClaim
    ) -> PersistentVolume:
        bound = bound_to(volume, claim)
        if bound is not volume:
            self._volumes.assume(bound)
            commitment.assumed.append(bound)
        return bound

    def _select(
        self, commitment: Commitment, claim: PersistentVolumeClaim, node_name: str
    ) -> PersistentVolumeClaim:
        selected = provisioned_for(claim, node_name)
        if selected is not claim:
            self._claims.assume(selected)
            commitment.assumed.append(selected)
        return selected

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        commitment: Commitment | None = state.get(self._key)
        for assumed in commitment.assumed if commitment else ():
            if isinstance(assumed, PersistentVolume):
                self._volumes.restore("", assumed.metadata.name)
            else:
                self._claims.restore(assumed.metadata.namespace, assumed.metadata.name)

    @property
    def _key(self) -> str:
        return f"{self.NAME}.commitment"

    # Binding.

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return SKIP if state.get(self._key) is None else None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        refusal = await self._see_through(state.read(self._key), pod, node_name)
        if refusal is not None:
            self._outcomes.volume_stage_failed("bind")
        return refusal

    async def _see_through(
        self, commitment: Commitment, pod: PodInfo, node_name: str
    ) -> Status | None:
        try:
            await _write(commitment, self._handle.writes)
        except Exception as exc:  # noqa: BLE001 - however the client fails, the attempt has failed
            return Status.error(str(exc))
        try:
            await self._wait(commitment, pod, node_name)
        except BindingFailedError as exc:
            return Status.error(f"binding volumes: {exc}")
        return None

    async def _wait(self, commitment: Commitment, pod: PodInfo, node_name: str) -> None:
        """Return when all is bound; BindingFailedError when it will not be, or not in time."""
        clock = self._handle.clock
        deadline = clock.monotonic() + self._timeout
        while True:
            await clock.sleep(min(POLL_SECONDS, deadline - clock.monotonic()))
            if clock.monotonic() >= deadline:
                raise BindingFailedError("context deadline exceeded")
            if self._progress.is_done(commitment, pod, node_name):
                return

    # Queueing.

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        changed = ActionType.ADD | ActionType.UPDATE
        labelled = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        registered: list[tuple[EventResource, ActionType, QueueingHint | None]] = [
            (EventResource.STORAGE_CLASS, changed, after_class_change),
            (EventResource.PERSISTENT_VOLUME_CLAIM, changed, after_claim_change),
            (EventResource.PERSISTENT_VOLUME, changed, None),
            (EventResource.NODE, labelled, None),
            (EventResource.CSI_NODE, changed, after_csi_node_change),
            (EventResource.CSI_DRIVER, ActionType.UPDATE, after_driver_update),
            (EventResource.CSI_STORAGE_CAPACITY, changed, after_capacity_change),
        ]
        return [
            ClusterEventWithHint(ClusterEvent(resource, action), hint)
            for resource, action, hint in registered
        ]


async def _write(commitment: Commitment, writes: PluginWrites) -> None:
    """Tell the API; what it answers is what progress is measured by."""
    for binding in commitment.bindings:
        binding.volume = await writes.update_persistent_volume(binding.volume)
    for i, claim in enumerate(commitment.provisions):
        commitment.provisions[i] = await writes.update_persistent_volume_claim(claim)


def _named(claim: PersistentVolumeClaim) -> str:
    """Name a claim by its volume, or by the class that it wants one of."""
    volume, name = claim.spec.volume_name, claim.metadata.name
    return f"volume {volume} (claim {name})" if volume else f"claim {name} ({claim.storage_class})"


def after_class_change(pod: Pod, old: StorageClass | None, new: StorageClass) -> Hint:
    """Queue if the class is new or allows other nodes than before."""
    changed = old is None or old.allowed_topologies != new.allowed_topologies
    return Hint.QUEUE if changed else Hint.SKIP


def after_claim_change(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> Hint:
    """Queue if the claim is one of the pod's."""
    return Hint.QUEUE if references(pod, new) else Hint.SKIP


def after_csi_node_change(pod: Pod, old: CSINode | None, new: CSINode) -> Hint:
    """Queue if the node is new or its drivers have taken over other volumes than before."""

    def migrated(csi_node: CSINode) -> str | None:
        return csi_node.metadata.annotations.get(MIGRATED_PLUGINS)

    return Hint.QUEUE if old is None or migrated(old) != migrated(new) else Hint.SKIP


def after_driver_update(pod: Pod, old: CSIDriver, new: CSIDriver) -> Hint:
    """Queue if a driver of the pod's inline volumes reports no capacity any more."""
    relaxed = old.spec.storage_capacity and not new.spec.storage_capacity
    used = any(
        volume.csi is not None and volume.csi.driver == new.metadata.name
        for volume in pod.spec.volumes
    )
    return Hint.QUEUE if relaxed and used else Hint.SKIP


def after_capacity_change(
    pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity
) -> Hint:
    """Queue if there is room for larger volumes than before."""
    if old is None:
        return Hint.QUEUE
    before, now = old.largest_volume, new.largest_volume
    grew = now is not None and (before is None or now > before)
    return Hint.QUEUE if grew else Hint.SKIP
