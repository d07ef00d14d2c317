"""On which nodes a pod can have the volumes that its claims stand for (spec §5.15, Filter)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from berth.framework.assume_cache import AssumeCache
from berth.framework.listers import Listers
from berth.framework.node_table import NodeTable
from berth.framework.status import Code, Status
from berth.framework.verdict import Mask, Rejection, Verdict
from berth.objects.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim
from berth_plugins.shared.csi_translation import InTreeKind, is_migrated_on, kind_of, translated
from berth_plugins.volume_binding.matching_volumes import ClaimMatch, VolumeMatching
from berth_plugins.volume_binding.reach import Reach, reach_of
from berth_plugins.volume_binding.volume_provisions import VolumeProvisioning

OUT_OF_REACH: Final = Status.unresolvable("node(s) didn't match PersistentVolume's node affinity")
NO_VOLUME: Final = Status.unresolvable("node(s) didn't find available persistent volumes to bind")
NO_ROOM: Final = Status.unresolvable("node(s) did not have enough free storage")
VOLUME_GONE: Final = Status.unresolvable(
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
)


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of a pod that waits for nothing but a node."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    """Those that have their volumes."""
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    """Those whose volumes are chosen with the node."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the claims can have volumes, and which."""

    verdict: Verdict
    matches: Sequence[ClaimMatch]
    """Existing volumes, by claim."""
    selected: Sequence[PersistentVolumeClaim]
    """Claims for which a node was selected before; they get new volumes there."""

    def bindings(self, row: int) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
        """Return the claims that get an existing volume on *row*, which must have passed."""
        found = ((match.claim, match.volume(row)) for match in self.matches)
        return [(claim, volume) for claim, volume in found if volume is not None]

    def provisions(self, row: int) -> list[PersistentVolumeClaim]:
        """Return the claims that get a new volume on *row*, which must have passed."""
        unmatched = (match.claim for match in self.matches if match.volume(row) is None)
        return [*self.selected, *unmatched]


class VolumePlacement:
    """Judges claims by volumes, classes and capacities, and by what was decided for others."""

    def __init__(self, listers: Listers, volumes: AssumeCache[PersistentVolume]) -> None:
        self._volumes = volumes
        self._csi_nodes = listers.csi_nodes
        self._matching = VolumeMatching(listers.persistent_volumes, volumes)
        self._provisioning = VolumeProvisioning(listers)

    def judge(self, claims: PodClaims, nodes: NodeTable, rows: Mask) -> Placement:
        """Say on which of *rows* all *claims* have volumes or can have them."""
        findings = _Findings(nodes, rows)
        self._judge_bound(claims.bound, nodes, findings)
        selected = [c for c in claims.delayed if SELECTED_NODE in c.metadata.annotations]
        for claim in selected:
            named = nodes.rows_named([claim.metadata.annotations[SELECTED_NODE]])
            findings.reject(NO_VOLUME, ~named)
        unselected = [c for c in claims.delayed if SELECTED_NODE not in c.metadata.annotations]
        matches: list[ClaimMatch] = []
        try:
            matches = self._matching.match(unselected, nodes, findings.open)
        except ValueError as exc:
            findings.fail(str(exc), nodes.exists)
        to_provision = [(claim, nodes.exists) for claim in selected]
        to_provision += [(match.claim, ~match.found) for match in matches]
        for claim, where in to_provision:
            self._judge_provision(claim, where, nodes, findings)
        return Placement(findings.verdict(), matches, selected)

    def _judge_bound(
        self, claims: Sequence[PersistentVolumeClaim], nodes: NodeTable, findings: "_Findings"
    ) -> None:
        """Judge claims that have volumes; on each row the first that does not fit ends it.

        What they say does not keep the other claims from being judged.
        """
        in_reach = findings.open
        for claim in claims:
            volume = self._volumes.get("", claim.spec.volume_name)
            if volume is None:
                findings.note(VOLUME_GONE, in_reach)
                break
            reached = self._rows_reaching(volume, nodes, in_reach, findings)
            findings.note(OUT_OF_REACH, in_reach & ~reached)
            in_reach = in_reach & reached

    def _rows_reaching(
        self, volume: PersistentVolume, nodes: NodeTable, rows: Mask, findings: "_Findings"
    ) -> Mask:
        """Return where *volume* can be used from; some nodes know it as a driver's volume."""
        reached = _mask_of(reach_of(volume), nodes)
        kind = kind_of(volume.spec)
        if kind is None:
            return reached
        migrated = self._rows_migrated(kind, nodes)
        try:
            by_driver = _mask_of(reach_of(translated(volume)), nodes)
        except ValueError as exc:
            findings.fail(f"could not translate pv: {exc}", rows & migrated)
            return reached
        mask: Mask = np.where(migrated, by_driver, reached)
        return mask

    def _rows_migrated(self, kind: InTreeKind, nodes: NodeTable) -> Mask:
        """Return the rows where the driver has taken over volumes of *kind*."""

        def build() -> Mask:
            mask = nodes.no_rows()
            for name, row in nodes.row_of.items():
                mask[row] = is_migrated_on(self._csi_nodes.get("", name), kind.plugin)
            return mask

        return nodes.kept((self, kind.plugin, self._csi_nodes.version), build)

    def _judge_provision(
        self,
        claim: PersistentVolumeClaim,
        where: Mask,
        nodes: NodeTable,
        findings: "_Findings",
    ) -> None:
        """Judge a new volume for *claim* on the rows *where* that are still open."""
        where = where & findings.open
        if not where.any():
            return
        found = self._provisioning.judge(claim, nodes)
        if found.error:
            findings.fail(found.error, where)
        if found.impossible is not None:
            findings.reject(NO_VOLUME, where & found.impossible)
            where = where & ~found.impossible
        if found.too_small is not None:
            findings.reject(NO_ROOM, where & found.too_small)


def _mask_of(reach: Reach, nodes: NodeTable) -> Mask:
    mask = nodes.no_rows()
    mask[reach.rows(nodes)] = True
    return mask


class _Findings:
    """What was found against rows so far."""

    def __init__(self, nodes: NodeTable, rows: Mask) -> None:
        self._nodes = nodes
        self.open: Mask = rows
        """The rows where delayed claims are still to be judged. Replaced, not changed."""
        self._errors: list[tuple[str, Mask]] = []
        self._masks = {
            status: nodes.no_rows() for status in (OUT_OF_REACH, NO_VOLUME, NO_ROOM, VOLUME_GONE)
        }

    def note(self, status: Status, where: Mask) -> None:
        """Give the rows *where* a reason; they are judged further."""
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
