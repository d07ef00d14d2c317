"""Volumes and claims that are deleted stay as long as somebody uses them.

The controllers pvc-protection and pv-protection: each takes the finalizer that admission put on
(:mod:`berth.cluster.writes.admission.storage_object_in_use_protection`) when the time has come.
"""

from collections.abc import Callable, Iterator
from typing import Final

from berth.cluster.actions import Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.object_views import Meta, metadata_of
from berth.cluster.pods.controllers import PodView

CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"
BOUND: Final = "Bound"


class ClaimProtectionController:
    """Lets a claim go that no pod on a node uses. The key is that of the claim."""

    name = "pvc-protection"

    def __init__(self, claims: Table[ResourceView], pods: Table[PodView]) -> None:
        self._claims = claims
        self._pods = pods

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def claim_changed(_old: ResourceView | None, new: ResourceView | None) -> None:
            if new is not None and _waits(new.metadata, CLAIM_FINALIZER):
                enqueue(new.metadata.key)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            if old is None or new is not None:
                return
            namespace = metadata_of(old, new).namespace
            for claim in claims_of(old):
                enqueue(f"{namespace}/{claim}")

        self._claims.listen(claim_changed)
        self._pods.listen(pod_changed)

    def plan(self, key: str) -> Plan:
        claim = self._claims.get(key)
        if claim is None or not _waits(claim.metadata, CLAIM_FINALIZER):
            return NOTHING
        name, namespace = claim.metadata.name, claim.metadata.namespace
        for pod in self._pods.in_namespace(namespace):
            # Of pods that wait for a node, the claim is not in use: none will start with it now.
            if pod.spec.node_name and name in claims_of(pod):
                return NOTHING
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
        return Plan([_without(claim.metadata, path, CLAIM_FINALIZER)])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: what was let go shows in the table."""


class VolumeProtectionController:
    """Lets a volume go that is bound to no claim. The key is its name."""

    name = "pv-protection"

    def __init__(self, volumes: Table[ResourceView]) -> None:
        self._volumes = volumes

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(_old: ResourceView | None, new: ResourceView | None) -> None:
            if new is not None and _waits(new.metadata, VOLUME_FINALIZER):
                enqueue(new.metadata.key)

        self._volumes.listen(changed)

    def plan(self, key: str) -> Plan:
        volume = self._volumes.get(key)
        if volume is None or not _waits(volume.metadata, VOLUME_FINALIZER):
            return NOTHING
        if volume.status.get("phase") == BOUND:
            return NOTHING
        path = f"/api/v1/persistentvolumes/{volume.metadata.name}"
        return Plan([_without(volume.metadata, path, VOLUME_FINALIZER)])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: what was let go shows in the table."""


def claims_of(pod: PodView) -> Iterator[str]:
    """Yield the names of the claims that a pod uses, those made for it too."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"


def _waits(meta: Meta, finalizer: str) -> bool:
    return meta.deletion_timestamp is not None and finalizer in (meta.finalizers or ())


def _without(meta: Meta, path: str, finalizer: str) -> Patch:
    left = [each for each in meta.finalizers or () if each != finalizer]
    metadata = {"resourceVersion": meta.resource_version, "uid": meta.uid, "finalizers": left}
    return Patch(path, {"metadata": metadata})


def new_claim_controller(context: ControllerContext) -> ClaimProtectionController:
    return ClaimProtectionController(
        context.table("persistentvolumeclaims", ResourceView), context.table("pods", PodView)
    )


def new_volume_controller(context: ControllerContext) -> VolumeProtectionController:
    return VolumeProtectionController(context.table("persistentvolumes", ResourceView))
