"""The fields of objects that controllers read; templates are carried along as they are.

Those of pods are in :mod:`berth.cluster.pods.controllers`.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from berth.cluster.object_views import Condition, ObjectView, View
from berth.kube.objects.node import Taint


class ResourceView(ObjectView, frozen=True):
    """An object of any kind that has a spec; one without has an empty one."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class TopologyLabelView(View, frozen=True):
    key: str = ""
    values: list[str] | None = None


class TopologySelectorTermView(View, frozen=True):
    match_label_expressions: list[TopologyLabelView] | None = None


class StorageClassView(ObjectView, frozen=True):
    provisioner: str = ""
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTermView] | None = None


class CSIDriverView(View, frozen=True):
    name: str = ""
    topology_keys: list[str] | None = None


class CSINodeSpecView(View, frozen=True):
    drivers: list[CSIDriverView] | None = None


class CSINodeView(ObjectView, frozen=True):
    """The CSI drivers of the node of this name."""

    spec: CSINodeSpecView = CSINodeSpecView()


class WorkloadView(ResourceView, frozen=True):
    """A Deployment, a ReplicaSet or another owner of pods."""

    @property
    def replicas(self) -> int:
        """What is wanted."""
        wanted = self.spec.get("replicas")
        return 1 if wanted is None else int(wanted)

    def count(self, field: str) -> int:
        """Return a number of the status; 0 when unset."""
        return int(self.status.get(field) or 0)


class ReplicationControllerView(WorkloadView, frozen=True):
    """A ReplicationController read as a ReplicaSet: its selector is a map of labels."""

    @classmethod
    def decoder(cls) -> Callable[[bytes], "ReplicationControllerView"]:
        decode = msgspec.json.Decoder(cls).decode

        def with_label_selector(data: bytes) -> "ReplicationControllerView":
            view = decode(data)
            spec = {**view.spec, "selector": {"matchLabels": view.spec.get("selector") or {}}}
            return msgspec.structs.replace(view, spec=spec)

        return with_label_selector


class NamespaceView(ResourceView, frozen=True):
    """A namespace: its finalizers and conditions."""


class RevisionView(ObjectView, frozen=True):
    """A ControllerRevision: what pods were made from at some time."""

    data: dict[str, Any] = msgspec.field(default_factory=dict)
    revision: int = 0


class NodeTaint(Taint, frozen=True, gc=False):
    """A taint with the time at which it was put on its node."""

    time_added: str = ""


class NodeCondition(Condition, frozen=True):
    last_heartbeat_time: str | None = None


class NodeSpecView(View, frozen=True):
    taints: tuple[NodeTaint, ...] = ()
    unschedulable: bool = False


class NodeStatusView(View, frozen=True):
    conditions: list[NodeCondition] | None = None


class NodeView(ObjectView, frozen=True):
    """A node, as far as pods for it depend on it."""

    spec: NodeSpecView = NodeSpecView()
    status: NodeStatusView = NodeStatusView()

    def condition(self, type_: str) -> NodeCondition | None:
        """Return the condition of that type, such as ``Ready``."""
        for condition in self.status.conditions or ():
            if condition.type == type_:
                return condition
        return None


class LeaseView(ObjectView, frozen=True):
    """A lease. Hundreds are renewed each second, so its spec is read when somebody asks."""

    spec: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def renew_time(self) -> datetime | None:
        """When it was renewed last; None: never. Raises msgspec.ValidationError."""
        return _decode_lease_spec(self.spec).renew_time


class LeaseSpecView(View, frozen=True):
    renew_time: datetime | None = None


_decode_lease_spec = msgspec.json.Decoder(LeaseSpecView).decode


class EndpointsView(ObjectView, frozen=True):
    subsets: list[dict[str, Any]] | None = None


class EndpointSliceView(ObjectView, frozen=True):
    address_type: str = ""
    endpoints: list[dict[str, Any]] | None = None
    ports: list[dict[str, Any]] | None = None
