"""Claims for generic ephemeral volumes: one for each such volume of a pod, and as long-lived."""

from collections.abc import Callable

from berth.cluster.actions import Action, Create
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.object_views import metadata_of
from berth.cluster.pods.controllers import PodView


class EphemeralVolumeController:
    """Decides which claims to make. The garbage collector deletes them with their pod."""

    name = "ephemeral-volume"

    def __init__(self, pods: Table[PodView], claims: Table[ResourceView]) -> None:
        self._pods = pods
        self._claims = claims

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def pod_changed(_old: PodView | None, new: PodView | None) -> None:
            if new is not None and _ephemeral(new):
                enqueue(new.metadata.key)

        def claim_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            owner = metadata_of(old, new).controller
            if new is None and owner is not None and owner.kind == "Pod":
                enqueue(f"{metadata_of(old, new).namespace}/{owner.name}")

        self._pods.listen(pod_changed)
        self._claims.listen(claim_changed)

    def plan(self, key: str) -> Plan:
        """Make the claims that *key*, a pod, lacks; a claim of that name by others is left alone.

        The scheduler and the kubelet refuse such a pod, as in Kubernetes.
        """
        pod = self._pods.get(key)
        if pod is None or not pod.is_active:
            return NOTHING
        actions: list[Action] = [
            _creation(pod, name, template)
            for name, template in _ephemeral(pod).items()
            if self._claims.get(f"{pod.metadata.namespace}/{pod.metadata.name}-{name}") is None
        ]
        return Plan(actions)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to note: what was made shows in the table."""


def new_controller(context: ControllerContext) -> EphemeralVolumeController:
    return EphemeralVolumeController(
        context.table("pods", PodView), context.table("persistentvolumeclaims", ResourceView)
    )


def _ephemeral(pod: PodView) -> dict[str, dict[str, object]]:
    """Return the claim templates of the pod's ephemeral volumes, by name of the volume."""
    return {
        volume.name: volume.ephemeral.volume_claim_template
        for volume in pod.spec.volumes or ()
        if volume.ephemeral is not None
    }


def _creation(pod: PodView, volume: str, template: dict[str, object]) -> Create:
    meta = pod.metadata
    of_template = template.get("metadata")
    metadata = of_template if isinstance(of_template, dict) else {}
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"{meta.name}-{volume}",
            "namespace": meta.namespace,
            "labels": metadata.get("labels") or {},
            "annotations": metadata.get("annotations") or {},
            "ownerReferences": [pod.as_owner()],
        },
        "spec": template.get("spec") or {},
    }
    return Create(f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims", body)
