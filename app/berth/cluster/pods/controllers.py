"""A pod as far as controllers read it; some read more of it than others."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

import msgspec

from berth.cluster.object_views import Condition, Meta, ObjectView, View
from berth.kube.objects.pod import Affinity, Toleration
from berth.kube.objects.quantity import Quantity
from berth.kube.objects.sharing import sharing


class PodResourceClaim(View, frozen=True):
    """A claim that a pod names itself, or the template of one to be made for it."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class EphemeralVolumeView(View, frozen=True):
    volume_claim_template: dict[str, Any] = msgspec.field(default_factory=dict)


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
