"""The fields of objects that controllers read; templates are carried along as they are."""

from collections.abc import Callable, Iterator
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, Self

import msgspec

from berth.kube.objects.node import Taint
from berth.kube.objects.pod import Affinity, Toleration
from berth.kube.objects.quantity import Quantity
from berth.kube.objects.sharing import sharing


class View(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Part of an API object. Null is taken for missing."""


class OwnerReference(View, frozen=True):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Meta(View, frozen=True):
    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    @property
    def key(self) -> str:
        """``namespace/name``, or the name of what has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def owners(self) -> list[OwnerReference]:
        return self.owner_references or []

    @property
    def controller(self) -> OwnerReference | None:
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None


class ObjectView(View, frozen=True):
    """What the garbage collector knows of any object."""

    metadata: Meta

    @classmethod
    def decoder(cls) -> Callable[[bytes], Self]:
        """Return what reads an object's JSON. A view of which little is kept has its own."""
        return msgspec.json.Decoder(cls).decode


def metadata_of(old: ObjectView | None, new: ObjectView | None) -> Meta:
    """Return the metadata of what changed, in its latest state. One of the two is there."""
    obj = new if new is not None else old
    if obj is None:
        raise ValueError("a change of nothing")
    return obj.metadata


def controllers_of(kind: str, *states: ObjectView | None) -> Iterator[str]:
    """Yield the keys of what controls an object, of this kind, before and after a change."""
    for state in states:
        controller = state.metadata.controller if state is not None else None
        if state is not None and controller is not None and controller.kind == kind:
            yield f"{state.metadata.namespace}/{controller.name}"


class Condition(View, frozen=True):
    type: str
    status: str = ""
    last_transition_time: str | None = None
    reason: str | None = None


class PodResourceClaim(View, frozen=True):
    """A claim that a pod names itself, or the template of one to be made for it."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class EphemeralVolumeView(View, frozen=True):
    volume_claim_template: dict[str, Any] = {}


class ClaimSource(View, frozen=True):
    claim_name: str = ""


class VolumeView(View, frozen=True):
    name: str
    ephemeral: EphemeralVolumeView | None = None
    persistent_volume_claim: ClaimSource | None = None

    @property
    def claims(self) -> bool:
        """Whether it is that of a claim. Controllers do not need to know of others."""
        return self.ephemeral is not None or self.persistent_volume_claim is not None


class ContainerPortView(View, frozen=True):
    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"


class ContainerView(View, frozen=True):
    ports: list[ContainerPortView] | None = None


class SchedulingGroupView(View, frozen=True):
    pod_group_name: str = ""


class PodSpecView(View, frozen=True):
    node_name: str | None = None
    volumes: list[VolumeView] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    hostname: str | None = None
    subdomain: str | None = None
    containers: list[ContainerView] | None = None
    scheduling_group: SchedulingGroupView | None = None
    active_deadline_seconds: int | None = None


class PodResourceClaimStatus(View, frozen=True):
    name: str
    resource_claim_name: str | None = None


class PodStatusView(View, frozen=True):
    phase: str | None = None
    conditions: list[Condition] | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    reason: str | None = None


SHARED: Final = {
    "metadata": ("namespace", "labels", "creation_timestamp", "owner_references"),
    "spec": ("node_name", "containers"),
    "status": ("conditions",),
}
"""What many pods have in common."""


class PodView(ObjectView, frozen=True):
    """A pod, of which more is read when the kind of its controller needs to know more."""

    spec: PodSpecView = PodSpecView()
    status: PodStatusView = PodStatusView()

    @classmethod
    def decoder(cls) -> Callable[[bytes], "PodView"]:
        decode = sharing(msgspec.json.Decoder(PodView).decode, SHARED)
        decode_of: dict[str, Callable[[bytes], PodView]] = {
            "DaemonSet": msgspec.json.Decoder(DaemonPodView).decode,
            "Job": msgspec.json.Decoder(JobPodView).decode,
        }

        def with_more_of_some(data: bytes) -> PodView:
            pod = decode(data)
            if pod.spec.volumes:
                claiming = [volume for volume in pod.spec.volumes if volume.claims]
                msgspec.structs.force_setattr(pod.spec, "volumes", claiming or None)
            controller = pod.metadata.controller
            if controller is None or controller.kind not in decode_of:
                return pod
            return decode_of[controller.kind](data)

        return with_more_of_some

    @property
    def node_name(self) -> str:
        """The node that it is bound to; empty: none."""
        return self.spec.node_name or ""

    @property
    def is_active(self) -> bool:
        """Whether it counts as a replica: neither finished nor on its way out."""
        return not self.is_finished and self.metadata.deletion_timestamp is None

    @property
    def is_finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    def as_owner(self) -> dict[str, Any]:
        """Return the reference for what is made for this pod, and must go with it."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": self.metadata.name,
            "uid": self.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    @property
    def ready_since(self) -> str | None:
        """When it became ready; None when it is not."""
        for condition in self.status.conditions or []:
            if condition.type == "Ready":
                return (
                    (condition.last_transition_time or "") if condition.status == "True" else None
                )
        return None


class Resources(View, frozen=True):
    requests: dict[str, Quantity] | None = None


class ScaledContainer(View, frozen=True):
    name: str
    resources: Resources = Resources()
    restart_policy: str = ""


class ScaledPodSpec(View, frozen=True):
    containers: tuple[ScaledContainer, ...] = ()
    init_containers: tuple[ScaledContainer, ...] | None = None
    resources: Resources | None = None


class ScaledPodStatus(View, frozen=True):
    phase: str = ""
    start_time: str | None = None
    conditions: list[Condition] | None = None


class ScaledPod(View, frozen=True):
    """A pod of the target, as far as its autoscaler reads it."""

    metadata: Meta
    spec: ScaledPodSpec = ScaledPodSpec()
    status: ScaledPodStatus = ScaledPodStatus()

    @property
    def name(self) -> str:
        return self.metadata.name


class ScaledPods(View, frozen=True):
    """A list of pods."""

    items: tuple[ScaledPod, ...] = ()


class TimedToleration(Toleration, frozen=True, gc=False):
    toleration_seconds: int | None = None


class ToleratingSpec(View, frozen=True):
    tolerations: tuple[TimedToleration, ...] | None = None


class ToleratingPod(View, frozen=True):
    """A pod, read for its tolerations."""

    metadata: Meta
    spec: ToleratingSpec = ToleratingSpec()


decode_tolerating = msgspec.json.Decoder(ToleratingPod).decode


NODE_NAME: Final = attrgetter("node_name")
"""By what pods are indexed: one object, so that all share one index."""


class ResourceView(ObjectView, frozen=True):
    """An object of any kind that has a spec; one without has an empty one."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


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


class TerminatedView(View, frozen=True):
    exit_code: int = 0
    finished_at: str | None = None


class ContainerStateView(View, frozen=True):
    terminated: TerminatedView | None = None


class ContainerStatusView(View, frozen=True):
    name: str = ""
    restart_count: int = 0
    state: ContainerStateView = ContainerStateView()


class InitContainerView(View, frozen=True):
    name: str = ""
    restart_policy: str | None = None


class JobPodMeta(Meta, frozen=True):
    deletion_grace_period_seconds: int | None = None


class JobPodSpecView(PodSpecView, frozen=True):
    init_containers: list[InitContainerView] | None = None


class JobPodStatusView(PodStatusView, frozen=True):
    container_statuses: list[ContainerStatusView] | None = None
    init_container_statuses: list[ContainerStatusView] | None = None


class JobPodView(PodView, frozen=True):
    """A pod of a Job, whose end is of interest."""

    metadata: JobPodMeta
    spec: JobPodSpecView = JobPodSpecView()
    status: JobPodStatusView = JobPodStatusView()


class DaemonPodSpecView(PodSpecView, frozen=True):
    affinity: Affinity | None = None


class DaemonPodView(PodView, frozen=True):
    """A pod of a DaemonSet, which says itself for which node it is."""

    spec: DaemonPodSpecView = DaemonPodSpecView()


class RevisionView(ObjectView, frozen=True):
    """A ControllerRevision: what pods were made from at some time."""

    data: dict[str, Any] = {}
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
