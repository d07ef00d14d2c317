"""VolumeBinding: a pod goes where its volumes are, or can be, and its claims get them."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import (
    MIGRATED_PLUGINS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from berth.scheduler.framework.assume_cache import OutOfSyncError
from berth.scheduler.framework.change import Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    QueueingHintFn,
)
from berth.scheduler.framework.explanation import Explains, SummingUp, SumsUp
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    EnqueueExtensions,
    FilterPlugin,
    Input,
    PluginArgs,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Scores,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Code, Status
from berth.scheduler.framework.verdict import Mask, Verdict
from berth.scheduler.framework.words import counted, listed
from berth_plugins.shared.resource_allocation import UtilizationShapePoint, check_shape
from berth_plugins.shared.volume_claims import (
    CLAIM_INDEX,
    ClaimVolume,
    claim_volumes,
    ownership_error,
    references,
)
from berth_plugins.volume_binding.binder import VolumeBinder
from berth_plugins.volume_binding.capacity_scoring import (
    DEFAULT_SHAPE,
    STORAGE_CAPACITY_SCORING,
    Scorer,
    volume_capacity_scorer,
)
from berth_plugins.volume_binding.check_bindings import BindingFailedError
from berth_plugins.volume_binding.pod_volumes import PodVolumeClaims, PodVolumes

POD_VOLUMES: Final = "VolumeBinding.PodVolumes"
"""Where Reserve leaves what was decided, in the cycle state."""


class VolumeBindingArgs(PluginArgs):
    """How patient the plugin is, and how it ranks nodes."""

    bind_timeout_seconds: int = Field(default=600, ge=0)
    """Maximum time to wait for volumes to be bound."""
    shape: tuple[UtilizationShapePoint, ...] | None = Field(default=None, validate_default=True)
    """Points of the curve that scores a node by how full its storage would be, by increasing
    utilization; only with the feature gate StorageCapacityScoring."""

    @field_validator("shape")
    @classmethod
    def _check_shape(
        cls, shape: tuple[UtilizationShapePoint, ...] | None, info: ValidationInfo
    ) -> tuple[UtilizationShapePoint, ...] | None:
        if STORAGE_CAPACITY_SCORING in (info.context or ()):
            check_shape(shape or DEFAULT_SHAPE)
            return shape or DEFAULT_SHAPE
        if shape is not None:
            raise ValueError(
                "unexpected field `shape`, remove it or turn on the feature gate"
                f" {STORAGE_CAPACITY_SCORING}"
            )
        return None


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
    WITHOUT_PRE_FILTER = "not found"
    DECIDES_BY_SIGNATURE = True
    INPUTS = Input.VOLUMES
    ALLOW_PARALLEL = True
    ARGS = VolumeBindingArgs

    def __init__(self, args: VolumeBindingArgs | None = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("VolumeBinding: needs a handle to look up and bind volumes")
        self._handle = handle
        self._listers = handle.listers
        self._outcomes = handle.outcomes
        args = args or VolumeBindingArgs()
        self._binder = VolumeBinder(handle, bind_timeout=float(args.bind_timeout_seconds))
        self._failed_in: CycleState | None = None
        """The last attempt in which Filter failed."""
        self._scorer: Scorer | None = None
        if STORAGE_CAPACITY_SCORING in handle.features:
            self._scorer = volume_capacity_scorer(args.shape or DEFAULT_SHAPE)

    # Filtering.

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        """Return from where the volumes of *pod* can be used, if all its claims have theirs."""
        claims = self._claims_of(pod)
        if isinstance(claims, Status):
            return EMPTY_FRAGMENT if claims is SKIP else None
        return None if claims.unbound_delay_binding else self._binder.reach(claims.bound)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        claims = self._claims_of(pod)
        if isinstance(claims, Status):
            return claims
        state.write(self.NAME, claims)
        return None

    def _claims_of(self, pod: PodInfo) -> PodVolumeClaims | Status:
        """Return the claims of *pod*, why it cannot run with one of them, or SKIP."""
        volumes = tuple(claim_volumes(pod.pod))
        if not volumes:
            return SKIP
        for volume in volumes:
            error = self._claim_error(pod, volume)
            if error:
                return Status.unresolvable(error)
        names = (volume.claim_name for volume in volumes)
        return self._binder.get_pod_volume_claims(pod, names)

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

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        claims: PodVolumeClaims = state.read(self.NAME)
        verdict = self._binder.find_pod_volumes(claims, nodes, state.feasible).verdict
        if any(r.code is Code.ERROR and r.where.any() for r in verdict.rejections):
            if state is not self._failed_in:  # once, though all may be asked again
                self._outcomes.volume_stage_failed("predicate")
            self._failed_in = state
        return verdict

    # Explaining.

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        claims: PodVolumeClaims = state.read(self.NAME)
        rows = nodes.no_rows()
        rows[row] = True
        for claim in (*claims.bound, *claims.unbound_delay_binding):
            is_bound = claim in claims.bound
            alone = PodVolumeClaims((claim,), ()) if is_bound else PodVolumeClaims((), (claim,))
            refusal = self._binder.find_pod_volumes(alone, nodes, rows).verdict.status_of(row)
            if refusal is not None:
                yield Detail(f"{_named(claim)}: {refusal.message}")

    def sum_up(self, state: CycleState, pod: PodInfo, nodes: NodeTable, where: Mask) -> SummingUp:
        """Tell from which nodes volumes can be used, and which claims can have one nowhere."""
        claims: PodVolumeClaims = state.read(self.NAME)
        clauses = []
        for claim in claims.bound:
            alone = PodVolumeClaims((claim,), ())
            held_back = self._binder.find_pod_volumes(alone, nodes, nodes.exists).verdict.rejected()
            rows = np.flatnonzero(nodes.exists & ~held_back) if held_back is not None else ()
            if held_back is not None:
                names = sorted(nodes.names(rows))
                which = f": {listed(names)}" if names else ""
                number = f"{len(names) or 'none'} of {counted(len(nodes), 'node')}{which}"
                clauses.append(f"{_named(claim)} can be used from {number}")
            yield
        return "; ".join(clauses)

    # Scoring.

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        """Skip pods that do not wait for volumes: kube-scheduler gives these 0 on every node."""
        claims: PodVolumeClaims | None = state.get(self.NAME)
        if self._scorer is None or claims is None or not claims.unbound_delay_binding:
            return SKIP
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        assert self._scorer is not None, "PreScore skips otherwise"
        claims: PodVolumeClaims = state.read(self.NAME)
        volumes = self._binder.find_pod_volumes(claims, nodes, state.feasible)
        return self._scorer(self._binder.class_resources(volumes, nodes), nodes.size)

    # Reserve.

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        claims: PodVolumeClaims | None = state.get(self.NAME)
        if claims is None or not claims.unbound_delay_binding:
            return None
        nodes = self._handle.nodes
        row = nodes.row_of.get(node_name)
        if row is None:
            return Status.error(f'node "{node_name}" not found')
        candidates = self._binder.find_pod_volumes(claims, nodes, nodes.rows_named([node_name]))
        refusal = candidates.verdict.status_of(row)
        if refusal is not None:
            return refusal
        volumes = PodVolumes()
        state.write(POD_VOLUMES, volumes)
        try:
            self._binder.assume_pod_volumes(volumes, candidates, nodes, row)
        except OutOfSyncError as exc:
            self._outcomes.volume_stage_failed("assume")
            return Status.error(str(exc))
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        volumes: PodVolumes | None = state.get(POD_VOLUMES)
        if volumes is not None:
            self._binder.revert_assumed_pod_volumes(volumes)

    # PreBind.

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return SKIP if state.get(POD_VOLUMES) is None else None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        volumes: PodVolumes | None = state.get(POD_VOLUMES)
        if volumes is None:
            return None
        try:
            await self._binder.bind_pod_volumes(volumes, pod, node_name)
        except BindingFailedError as exc:
            refusal = Status.error(f"binding volumes: {exc}")
        except Exception as exc:  # noqa: BLE001 - however the client fails, the attempt has failed
            refusal = Status.error(str(exc))
        else:
            return None
        self._outcomes.volume_stage_failed("bind")
        return refusal

    # Queueing.

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        changed = ActionType.ADD | ActionType.UPDATE
        labelled = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        registered: list[tuple[EventResource, ActionType, QueueingHintFn | None]] = [
            (EventResource.STORAGE_CLASS, changed, after_class_change),
            (EventResource.PERSISTENT_VOLUME_CLAIM, changed, after_claim_change),
            (EventResource.PERSISTENT_VOLUME, changed, None),
            (EventResource.NODE, labelled, None),
            (EventResource.CSI_NODE, changed, after_csi_node_change),
            (EventResource.CSI_DRIVER, ActionType.UPDATE, after_driver_update),
            (EventResource.CSI_STORAGE_CAPACITY, changed, after_capacity_change),
        ]
        return [
            ClusterEventWithHint(
                ClusterEvent(resource, action),
                hint,
                (CLAIM_INDEX,) if hint is after_claim_change else (),
            )
            for resource, action, hint in registered
        ]


def _named(claim: PersistentVolumeClaim) -> str:
    """Name a claim by its volume, or by the class that it wants one of."""
    volume, name = claim.spec.volume_name, claim.metadata.name
    return f"volume {volume} (claim {name})" if volume else f"claim {name} ({claim.storage_class})"


def after_class_change(pod: Pod, old: StorageClass | None, new: StorageClass) -> QueueingHint:
    """Queue if the class is new or allows other nodes than before."""
    changed = old is None or old.allowed_topologies != new.allowed_topologies
    return QueueingHint.QUEUE if changed else QueueingHint.SKIP


def after_claim_change(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    """Queue if the claim is one of the pod's."""
    return QueueingHint.QUEUE if references(pod, new) else QueueingHint.SKIP


def after_csi_node_change(pod: Pod, old: CSINode | None, new: CSINode) -> QueueingHint:
    """Queue if the node is new or its drivers have taken over other volumes than before."""

    def migrated(csi_node: CSINode) -> str | None:
        return csi_node.metadata.annotations.get(MIGRATED_PLUGINS)

    return (
        QueueingHint.QUEUE if old is None or migrated(old) != migrated(new) else QueueingHint.SKIP
    )


def after_driver_update(pod: Pod, old: CSIDriver, new: CSIDriver) -> QueueingHint:
    """Queue if a driver of the pod's inline volumes reports no capacity any more."""
    relaxed = old.spec.storage_capacity and not new.spec.storage_capacity
    used = any(
        volume.csi is not None and volume.csi.driver == new.metadata.name
        for volume in pod.spec.volumes
    )
    return QueueingHint.QUEUE if relaxed and used else QueueingHint.SKIP


def after_capacity_change(
    pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity
) -> QueueingHint:
    """Queue if there is room for larger volumes than before."""
    if old is None:
        return QueueingHint.QUEUE
    before, now = old.largest_volume, new.largest_volume
    grew = now is not None and (before is None or now > before)
    return QueueingHint.QUEUE if grew else QueueingHint.SKIP
