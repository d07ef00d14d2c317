"""Pod, as far as scheduling reads it."""

from collections.abc import Iterator

import msgspec

from berth.kube.objects.meta import Condition, KubeStruct, LabelSelector, ObjectMeta
from berth.kube.objects.quantity import Quantities, Quantity, check_quantities


class ResourceClaimRef(KubeStruct, frozen=True, gc=False):
    name: str
    request: str = ""


class ResourceRequirements(KubeStruct, frozen=True, gc=False):
    """Requests and limits as written. Nonsense quantities fail the decode, naming the field."""

    requests: Quantities = msgspec.field(default_factory=dict)
    limits: Quantities = msgspec.field(default_factory=dict)
    claims: tuple[ResourceClaimRef, ...] = ()

    def __post_init__(self) -> None:
        check_quantities("requests", self.requests)
        check_quantities("limits", self.limits)


class ContainerPort(KubeStruct, frozen=True, gc=False):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class RestartRule(KubeStruct, frozen=True, gc=False):
    action: str = ""


class VolumeMount(KubeStruct, frozen=True, gc=False):
    bind_mount_options: tuple[str, ...] = ()


class Container(KubeStruct, frozen=True, gc=False):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()


class EphemeralContainer(KubeStruct, frozen=True, gc=False):
    """A container that was added to a pod. It has no requests."""

    volume_mounts: tuple[VolumeMount, ...] = ()


class Toleration(KubeStruct, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorRequirement(KubeStruct, frozen=True, gc=False):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(KubeStruct, frozen=True, gc=False):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(KubeStruct, frozen=True, gc=False):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(KubeStruct, frozen=True, gc=False):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(KubeStruct, frozen=True, gc=False):
    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(KubeStruct, frozen=True, gc=False):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(KubeStruct, frozen=True, gc=False):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(KubeStruct, frozen=True, gc=False):
    """Pod affinity or pod anti-affinity; the two have the same shape."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(KubeStruct, frozen=True, gc=False):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(KubeStruct, frozen=True, gc=False):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(KubeStruct, frozen=True, gc=False):
    name: str = ""


class PersistentVolumeClaimSource(KubeStruct, frozen=True, gc=False):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(KubeStruct, frozen=True, gc=False):
    """A generic ephemeral volume; its claim is named ``<pod>-<volume>``."""


class GCEPersistentDisk(KubeStruct, frozen=True, gc=False):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(KubeStruct, frozen=True, gc=False):
    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class ISCSIVolume(KubeStruct, frozen=True, gc=False):
    iqn: str = ""
    read_only: bool = False


class RBDVolume(KubeStruct, frozen=True, gc=False):
    monitors: tuple[str, ...] = ()
    pool: str = ""
    image: str = ""
    read_only: bool = False


class AzureDisk(KubeStruct, frozen=True, gc=False):
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class CinderVolume(KubeStruct, frozen=True, gc=False):
    volume_id: str = msgspec.field(default="", name="volumeID")


class CSIVolume(KubeStruct, frozen=True, gc=False):
    driver: str = ""


class ImageVolume(KubeStruct, frozen=True, gc=False):
    reference: str = ""


class Volume(KubeStruct, frozen=True, gc=False):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolume | None = None
    csi: CSIVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None


class PodResourceClaim(KubeStruct, frozen=True, gc=False):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(KubeStruct, frozen=True, gc=False):
    pod_group_name: str = ""


class PodSpec(KubeStruct, frozen=True, gc=False):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    preemption_policy: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    overhead: Quantities = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    host_network: bool = False
    host_users: bool | None = None

    @property
    def volume_mounts(self) -> Iterator[VolumeMount]:
        """The mounts of all containers, also of those that were added to the pod."""
        for container in (*self.containers, *self.init_containers):
            yield from container.volume_mounts
        for added in self.ephemeral_containers:
            yield from added.volume_mounts

    def __post_init__(self) -> None:
        if self.overhead:
            check_quantities("overhead", self.overhead)


class ContainerStatus(KubeStruct, frozen=True, gc=False):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        check_quantities("allocatedResources", self.allocated_resources)


class PodResourceClaimStatus(KubeStruct, frozen=True, gc=False):
    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceClaimStatus(KubeStruct, frozen=True, gc=False):
    resource_claim_name: str = ""


class NodeAllocatableMappedResources(KubeStruct, frozen=True, gc=False):
    """How much of one resource of the node devices are."""

    name: str = ""
    quantity: Quantity = 0

    def __post_init__(self) -> None:
        check_quantities("mapping", {self.name: self.quantity})


class NodeAllocatableOverheadResources(KubeStruct, frozen=True, gc=False):
    """How much of one resource of the node the use of devices takes."""

    name: str = ""
    per_pod: Quantity | None = None
    per_container: Quantity | None = None

    def __post_init__(self) -> None:
        both = {"perPod": self.per_pod, "perContainer": self.per_container}
        check_quantities("overhead", {key: each for key, each in both.items() if each is not None})


class NodeAllocatableResourceClaimStatus(KubeStruct, frozen=True, gc=False):
    """What the devices of a claim take of the node, beside the requests of the containers."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    """Names of those that use the claim."""
    resources: Quantities = msgspec.field(default_factory=dict)
    """As in 1.36; from 1.37 on it is in the two others."""
    mapping: tuple[NodeAllocatableMappedResources, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResources, ...] = ()

    def __post_init__(self) -> None:
        check_quantities("resources", self.resources)


class PodStatus(KubeStruct, frozen=True, gc=False):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] = ()
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities = msgspec.field(default_factory=dict)
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()

    def __post_init__(self) -> None:
        if self.allocated_resources:
            check_quantities("allocatedResources", self.allocated_resources)


class Pod(KubeStruct, frozen=True, gc=False):
    """A v1.Pod, as far as something here reads it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self.metadata.key

    @property
    def priority(self) -> int:
        """``spec.priority``, 0 when unset."""
        return self.spec.priority or 0

    def assigned_to(self, node_name: str) -> "Pod":
        """Return this pod as it will be once it is bound."""
        return msgspec.structs.replace(
            self, spec=msgspec.structs.replace(self.spec, node_name=node_name)
        )

    @property
    def is_terminated(self) -> bool:
        """Whether the pod has finished; the scheduler does not see such pods (spec §11.1)."""
        return self.status.phase in ("Succeeded", "Failed")
