"""The binder of VolumeBinding, step by step as ``binder.go`` (spec §5.15)."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from berth.kube.objects.storage import (
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
)
from berth.scheduler.framework.assume_cache import AssumeCache
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import EMPTY_FRAGMENT
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Mask, Rejection, Verdict
from berth.scheduler.framework.writes import PluginWrites
from berth_plugins.shared.csi_translation import InTreeKind, is_migrated_on, kind_of, translated
from berth_plugins.volume_binding.capacity_scoring import StorageResource, class_resources
from berth_plugins.volume_binding.check_bindings import BindingCheck, BindingFailedError
from berth_plugins.volume_binding.matching_volumes import ClaimMatch, VolumeMatching
from berth_plugins.volume_binding.node_affinity import (
    EVERYWHERE,
    CompiledNodeAffinity,
    node_affinity_of,
)
from berth_plugins.volume_binding.pod_volumes import (
    BindingInfo,
    PodVolumeClaims,
    PodVolumes,
    bound_to,
    provisioned_for,
)
from berth_plugins.volume_binding.volume_provisions import VolumeProvisions

NODE_CONFLICT: Final = Status.unresolvable("node(s) didn't match PersistentVolume's node affinity")
BIND_CONFLICT: Final = Status.unresolvable(
    "node(s) didn't find available persistent volumes to bind"
)
NOT_ENOUGH_SPACE: Final = Status.unresolvable("node(s) did not have enough free storage")
PV_NOT_EXIST: Final = Status.unresolvable(
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
)
UNBOUND_IMMEDIATE: Final = Status.unresolvable("pod has unbound immediate PersistentVolumeClaims")

POLL_SECONDS: Final = 1.0
"""How often :meth:`VolumeBinder.bind_pod_volumes` looks whether the volumes are there."""


class FoundVolumes(msgspec.Struct, frozen=True):
    """On which nodes the claims can have volumes, and which."""

    verdict: Verdict
    matches: Sequence[ClaimMatch]
    """Existing volumes, by claim."""
    selected: Sequence[PersistentVolumeClaim]
    """Claims for which a node was selected before; they get new volumes there."""

    def static_bindings(self, row: int) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
        """Return the claims that get an existing volume on *row*, which must have passed."""
        bindings = ((match.claim, match.volume(row)) for match in self.matches)
        return [(claim, volume) for claim, volume in bindings if volume is not None]

    def dynamic_provisions(self, row: int) -> list[PersistentVolumeClaim]:
        """Return the claims that get a new volume on *row*, which must have passed."""
        unmatched = (match.claim for match in self.matches if match.volume(row) is None)
        return [*self.selected, *unmatched]


class VolumeBinder:
    """Finds volumes for claims, assumes them, and has them bound.

    What is assumed for one pod is not there for the next.
    """

    def __init__(self, handle: Handle, *, bind_timeout: float) -> None:
        """*bind_timeout* is in seconds."""
        listers = handle.listers
        self._bind_timeout = bind_timeout
        self._handle = handle
        self._storage_classes = listers.storage_classes
        self._csi_nodes = listers.csi_nodes
        self._volumes = AssumeCache(listers.persistent_volumes)
        self._claims = AssumeCache(listers.persistent_volume_claims)
        self._matching = VolumeMatching(listers.persistent_volumes, self._volumes)
        self._provisions = VolumeProvisions(listers)
        self._check = BindingCheck(handle)

    # PreFilter.

    def get_pod_volume_claims(
        self, pod: PodInfo, claim_names: Iterable[str]
    ) -> PodVolumeClaims | Status:
        """Sort the claims, which exist, into bound ones and those that are bound with the node.

        A rejection if there are others.
        """
        bound, delayed, has_immediate = [], [], False
        for name in claim_names:
            claim = self._claims.get(pod.namespace, name)
            assert claim is not None, name
            if claim.is_fully_bound:
                bound.append(claim)
                continue
            storage_class = self._storage_classes.get("", claim.storage_class)
            mode = storage_class.volume_binding_mode if storage_class else ""
            if mode is None:
                return Status.error(
                    f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"'
                )
            if mode == WAIT_FOR_FIRST_CONSUMER and not claim.spec.volume_name:
                delayed.append(claim)
            else:
                has_immediate = True
        return UNBOUND_IMMEDIATE if has_immediate else PodVolumeClaims(tuple(bound), tuple(delayed))

    # Filter.

    def find_pod_volumes(
        self, claims: PodVolumeClaims, nodes: NodeTable, rows: Mask
    ) -> FoundVolumes:
        """Say on which of *rows* all *claims* have volumes or can have them."""
        findings = _Findings(nodes, rows)
        self._check_bound_claims(claims.bound, nodes, findings)
        delayed = claims.unbound_delay_binding
        selected = [c for c in delayed if SELECTED_NODE in c.metadata.annotations]
        for claim in selected:
            named = nodes.rows_named([claim.metadata.annotations[SELECTED_NODE]])
            findings.reject(BIND_CONFLICT, ~named)
        unselected = [c for c in delayed if SELECTED_NODE not in c.metadata.annotations]
        matches: list[ClaimMatch] = []
        try:
            matches = self._matching.find_matching_volumes(unselected, nodes, findings.open)
        except ValueError as exc:
            findings.fail(str(exc), nodes.exists)
        to_provision = [(claim, nodes.exists) for claim in selected]
        to_provision += [(match.claim, ~match.found) for match in matches]
        for claim, where in to_provision:
            self._check_volume_provisions(claim, where, nodes, findings)
        return FoundVolumes(findings.verdict(), matches, selected)

    def _check_bound_claims(
        self, claims: Sequence[PersistentVolumeClaim], nodes: NodeTable, findings: "_Findings"
    ) -> None:
        """Check claims that have volumes; on each row the first that does not fit ends it.

        What is found does not keep the other claims from being checked.
        """
        matching = findings.open
        for claim in claims:
            volume = self._volumes.get("", claim.spec.volume_name)
            if volume is None:
                findings.note(PV_NOT_EXIST, matching)
                break
            matched = self._rows_matching(volume, nodes, matching, findings)
            findings.note(NODE_CONFLICT, matching & ~matched)
            matching = matching & matched

    def reach(self, claims: Iterable[PersistentVolumeClaim]) -> Hashable | None:
        """Return what decides from where the volumes of *claims*, which have some, can be used.

        EMPTY_FRAGMENT if that is from everywhere; None if a volume is missing or cannot be told of.
        """
        reached: dict[Hashable, None] = {}
        for claim in claims:
            volume = self._volumes.get("", claim.spec.volume_name)
            if volume is None:
                return None
            affinity, kind = node_affinity_of(volume), kind_of(volume.spec)
            try:
                by_driver = affinity if kind is None else node_affinity_of(translated(volume))
            except ValueError:
                return None
            if kind is not None and by_driver is not affinity:
                reached[affinity, by_driver, kind.plugin, self._csi_nodes.version] = None
            elif affinity is not EVERYWHERE:
                reached[affinity] = None
        return tuple(reached) or EMPTY_FRAGMENT

    def _rows_matching(
        self, volume: PersistentVolume, nodes: NodeTable, rows: Mask, findings: "_Findings"
    ) -> Mask:
        """Return where *volume* can be used from; some nodes know it as a driver's volume."""
        matched = _mask_of(node_affinity_of(volume), nodes)
        kind = kind_of(volume.spec)
        if kind is None:
            return matched
        migrated = self._rows_migrated(kind, nodes)
        try:
            by_driver = _mask_of(node_affinity_of(translated(volume)), nodes)
        except ValueError as exc:
            findings.fail(f"could not translate pv: {exc}", rows & migrated)
            return matched
        mask: Mask = np.where(migrated, by_driver, matched)
        return mask

    def _rows_migrated(self, kind: InTreeKind, nodes: NodeTable) -> Mask:
        """Return the rows where the driver has taken over volumes of *kind*."""

        def build() -> Mask:
            mask = nodes.no_rows()
            for name, row in nodes.row_of.items():
                mask[row] = is_migrated_on(self._csi_nodes.get("", name), kind.plugin)
            return mask

        return nodes.kept((self, kind.plugin, self._csi_nodes.version), build)

    def _check_volume_provisions(
        self,
        claim: PersistentVolumeClaim,
        where: Mask,
        nodes: NodeTable,
        findings: "_Findings",
    ) -> None:
        """Check whether *claim* can have a new volume on the rows *where* that are still open."""
        where = where & findings.open
        if not where.any():
            return
        provisions = self._provisions.check(claim, nodes)
        if provisions.error:
            findings.fail(provisions.error, where)
        if provisions.impossible is not None:
            findings.reject(BIND_CONFLICT, where & provisions.impossible)
            where = where & ~provisions.impossible
        if provisions.too_small is not None:
            findings.reject(NOT_ENOUGH_SPACE, where & provisions.too_small)

    # Score.

    def class_resources(
        self, volumes: FoundVolumes, nodes: NodeTable
    ) -> Mapping[str, StorageResource]:
        """Return what the claims take of the storage of each row, by storage class."""
        return class_resources(volumes.matches, volumes.selected, self._provisions, nodes)

    # Reserve.

    def assume_pod_volumes(
        self, volumes: PodVolumes, found: FoundVolumes, nodes: NodeTable, row: int
    ) -> None:
        """Note in *volumes* what was found on *row*, and assume it.

        Raises OutOfSyncError when a volume or a claim has changed since; what *volumes* has come
        to by then is still assumed.
        """
        for claim, volume in found.static_bindings(row):
            bound = bound_to(volume, claim)
            if bound is not volume:
                self._volumes.assume(bound)
                volumes.assumed_volumes.append(bound)
            volumes.static_bindings.append(BindingInfo(claim, bound))
        for claim in found.dynamic_provisions(row):
            selected = provisioned_for(claim, nodes.name(row))
            if selected is not claim:
                self._claims.assume(selected)
                volumes.assumed_claims.append(selected)
            volumes.dynamic_provisions.append(selected)

    def revert_assumed_pod_volumes(self, volumes: PodVolumes) -> None:
        """Give back what was assumed; what was written to the API stays."""
        for volume in volumes.assumed_volumes:
            self._volumes.restore("", volume.metadata.name)
        for claim in volumes.assumed_claims:
            self._claims.restore(claim.metadata.namespace, claim.metadata.name)

    # PreBind.

    async def bind_pod_volumes(self, volumes: PodVolumes, pod: PodInfo, node_name: str) -> None:
        """Write what was decided, and return when all claims are bound.

        Raises errors of the client, and BindingFailedError when the claims will not be bound, or
        not in time.
        """
        await _bind_api_update(volumes, self._handle.writes)
        clock = self._handle.clock
        deadline = clock.monotonic() + self._bind_timeout
        while True:
            await clock.sleep(min(POLL_SECONDS, deadline - clock.monotonic()))
            if clock.monotonic() >= deadline:
                raise BindingFailedError("context deadline exceeded")
            if self._check.check_bindings(volumes, pod, node_name):
                return


async def _bind_api_update(volumes: PodVolumes, writes: PluginWrites) -> None:
    """Write volumes, then claims; what the API answers is what they are compared with later."""
    for binding in volumes.static_bindings:
        binding.volume = await writes.update_persistent_volume(binding.volume)
    for i, claim in enumerate(volumes.dynamic_provisions):
        volumes.dynamic_provisions[i] = await writes.update_persistent_volume_claim(claim)


def _mask_of(affinity: CompiledNodeAffinity, nodes: NodeTable) -> Mask:
    mask = nodes.no_rows()
    mask[affinity.rows(nodes)] = True
    return mask


class _Findings:
    """What was found against rows so far."""

    def __init__(self, nodes: NodeTable, rows: Mask) -> None:
        self._nodes = nodes
        self.open: Mask = rows
        """The rows where delayed claims are still to be looked at. Replaced, not changed."""
        self._errors: list[tuple[str, Mask]] = []
        self._masks = {
            status: nodes.no_rows()
            for status in (NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, PV_NOT_EXIST)
        }

    def note(self, status: Status, where: Mask) -> None:
        """Give the rows *where* a reason; the delayed claims are looked at all the same."""
        self._masks[status] |= where

    def reject(self, status: Status, where: Mask) -> None:
        """Give the open rows *where* a reason, and be done with them."""
        self._masks[status] |= where & self.open
        self.open = self.open & ~where

    def fail(self, error: str, where: Mask) -> None:
        """Give the open rows *where* an error in place of all reasons, and be done with them."""
        self._errors.append((error, where & self.open))
        self.open = self.open & ~where

    def verdict(self) -> Verdict:
        failed = self._nodes.no_rows()
        for _, where in self._errors:
            failed |= where
        rejections = [
            Rejection(status.reasons[0], status.code, where & ~failed)
            for status, where in self._masks.items()
            if where.any()
        ]
        rejections += [Rejection(error, Code.ERROR, where) for error, where in self._errors]
        return Verdict(tuple(rejections))
