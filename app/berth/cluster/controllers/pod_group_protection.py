"""A group that is deleted stays as long as pods name it that are not finished (spec G2.4).

The controller takes the finalizer that admission put on
(:mod:`berth.cluster.writes.admission.pod_groups`).
"""

from collections.abc import Callable
from typing import Final

from berth.cluster.actions import Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.kinds.gates import SCHEDULING
from berth.cluster.object_views import metadata_of
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import ResourceType

FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
PLURAL: Final = "podgroups"


class PodGroupProtectionController:
    """Lets a group go that no pod needs. The key is that of the group."""

    name = "podgroup-protection"

    def __init__(
        self, resource: ResourceType, groups: Table[ResourceView], pods: Table[PodView]
    ) -> None:
        self._resource = resource
        self._groups = groups
        self._pods = pods

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def group_changed(_old: ResourceView | None, new: ResourceView | None) -> None:
            if new is not None and new.metadata.deletion_timestamp is not None:
                enqueue(new.metadata.key)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            group = old.spec.scheduling_group if old is not None else None
            if group is not None and (new is None or new.is_finished):
                enqueue(f"{metadata_of(old, new).namespace}/{group.pod_group_name}")

        self._groups.listen(group_changed)
        self._pods.listen(pod_changed)

    def plan(self, key: str) -> Plan:
        group = self._groups.get(key)
        if group is None or group.metadata.deletion_timestamp is None:
            return NOTHING
        meta = group.metadata
        if FINALIZER not in (meta.finalizers or ()):
            return NOTHING
        for pod in self._pods.in_namespace(meta.namespace):
            named = pod.spec.scheduling_group
            if named is not None and named.pod_group_name == meta.name and not pod.is_finished:
                return NOTHING
        left = [finalizer for finalizer in meta.finalizers or () if finalizer != FINALIZER]
        path = self._resource.path_of(meta.namespace, meta.name)
        metadata = {"resourceVersion": meta.resource_version, "uid": meta.uid, "finalizers": left}
        return Plan([Patch(path, {"metadata": metadata})])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: what was let go shows in the table."""


def new_controller(context: ControllerContext) -> PodGroupProtectionController | None:
    """Return the controller; None where groups are not served."""
    resource = context.registry.stored(SCHEDULING, PLURAL)
    if resource is None:
        return None
    return PodGroupProtectionController(
        resource,
        context.table(resource.storage_key, ResourceView),
        context.table("pods", PodView),
    )
