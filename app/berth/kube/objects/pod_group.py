"""PodGroups: pods that are scheduled as one unit (spec G2.2).

They are the same whichever of :data:`VERSIONS` the API server serves. A CompositePodGroup is a
group of groups, which may be such groups themselves (1.37 spec N11).
"""

from enum import StrEnum
from typing import Any, ClassVar, Final

import msgspec

from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.kube.objects.pod import Pod

API_GROUP: Final = "scheduling.k8s.io"
VERSIONS: Final = ("v1beta1", "v1alpha2")
"""Those in which Kubernetes' own PodGroups can be read, those of 1.37 and of 1.36."""
API_VERSION: Final = f"{API_GROUP}/v1alpha2"
"""That of a group of Kubernetes that does not say its own."""
API: Final = f"/apis/{API_VERSION}"
"""Where the API server of 1.36 has them."""
COMPOSITE_VERSIONS: Final = ("v1alpha3",)
COMPOSITE_API: Final = f"/apis/{API_GROUP}/{COMPOSITE_VERSIONS[0]}"
"""Where CompositePodGroups are."""

GROUP: Final = "scheduling.k8s.io"
RESOURCE: Final = "podgroups"
"""How the ``reservedFor`` of claims names PodGroups."""


class GangSchedulingPolicy(KubeStruct, frozen=True, gc=False):
    min_count: int
    """How many pods must have nodes before any of them is bound."""


class PodGroupSchedulingPolicy(KubeStruct, frozen=True, gc=False):
    """``basic``: pod by pod; ``gang``: so many together, or none."""

    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(KubeStruct, frozen=True, gc=False):
    key: str
    """A label of nodes: all pods of the group go to nodes with one value."""


class PodGroupSchedulingConstraints(KubeStruct, frozen=True, gc=False):
    topology: tuple[TopologyConstraint, ...] = ()


class DisruptionMode(StrEnum):
    """What may be evicted of a group at a time."""

    POD = "Pod"
    POD_GROUP = "PodGroup"


class DisruptionModeUnion(KubeStruct, frozen=True, gc=False):
    """A :class:`DisruptionMode` as ``v1beta1`` writes it: one field, an empty object."""

    single: dict[str, Any] | None = None
    all: dict[str, Any] | None = None


class PodGroupResourceClaim(KubeStruct, frozen=True, gc=False):
    """A claim that the pods of the group share, if one of theirs has the same fields."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupSpec(KubeStruct, frozen=True, gc=False):
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | DisruptionModeUnion = DisruptionMode.POD
    """Once it is read, always a text."""
    priority: int | None = None
    preemption_policy: str | None = None
    """``Never`` or ``PreemptLowerPriority``; of 1.37, behind the gate PodGroupPreemptionPolicy."""
    parent_composite_pod_group_name: str = ""
    """The CompositePodGroup that it is a part of; empty: of none."""
    min_member: int | None = None
    """``minCount`` in the PodGroups of the coscheduling plugin and of Volcano."""

    def __post_init__(self) -> None:
        mode = self.disruption_mode
        if isinstance(mode, DisruptionModeUnion):
            known = DisruptionMode.POD if mode.all is None else DisruptionMode.POD_GROUP
            msgspec.structs.force_setattr(self, "disruption_mode", known)


POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"
"""The condition that says whether enough pods have nodes; once true, it stays so. Of 1.36."""
POD_GROUP_INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
"""The same since 1.37."""
SCHEDULED_CONDITIONS: Final = (POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED)


class PodGroupCondition(KubeStruct, frozen=True, gc=False):
    """A ``metav1.Condition``; times are kept as written."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class PodGroupStatus(KubeStruct, frozen=True, gc=False):
    conditions: tuple[PodGroupCondition, ...] = ()


class GroupKey(msgspec.Struct, frozen=True, gc=False):
    """Which group a pod belongs to."""

    ENTITY_TYPE: ClassVar[str] = "podgroup"
    """What the group is called as an entity of the queue, and in the words of the API server."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def not_found(self) -> str:
        """What is said of a group that is gone."""
        return f'{self.ENTITY_TYPE}.scheduling.k8s.io "{self.name}" not found'


class CompositeKey(GroupKey, frozen=True, gc=False):
    """Which CompositePodGroup; never equal to the key of a PodGroup, which may have its name."""

    ENTITY_TYPE: ClassVar[str] = "compositepodgroup"


class PodGroup(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
    api_version: str = ""
    """Empty for items of Kubernetes' own lists."""

    @property
    def key(self) -> GroupKey:
        return GroupKey(self.metadata.namespace, self.metadata.name)

    @property
    def parent_key(self) -> CompositeKey | None:
        """The group that it names as its parent."""
        parent = self.spec.parent_composite_pod_group_name
        return CompositeKey(self.metadata.namespace, parent) if parent else None

    @property
    def min_count(self) -> int | None:
        """How many pods must have nodes together; None: the policy is not ``gang``.

        Of a CompositePodGroup, how many of its groups must have enough.
        """
        gang = self.spec.scheduling_policy.gang
        return (self.spec.min_member or None) if gang is None else gang.min_count

    @property
    def scheduled_condition(self) -> PodGroupCondition | None:
        """The condition that says whether enough pods have nodes; None: no cycle has ended yet.

        Of two, as after an upgrade, the newer release's.
        """
        by_type = {condition.type: condition for condition in self.status.conditions}
        return next((by_type[name] for name in SCHEDULED_CONDITIONS if name in by_type), None)

    @property
    def has_been_scheduled(self) -> bool:
        """Whether enough of its pods have had nodes at one time."""
        return any(
            condition.type in SCHEDULED_CONDITIONS and condition.status == "True"
            for condition in self.status.conditions
        )

    def priority_beside(self, pod: Pod) -> int:
        """Return the priority of the group, of which *pod* is one.

        Another scheduler's PodGroup has none that is read: its pods' counts.
        """
        return (self.spec.priority or 0) if self.is_of_kubernetes else (pod.spec.priority or 0)

    @property
    def is_evicted_as_a_whole(self) -> bool:
        """Whether its pods are evicted together or not at all."""
        return self.spec.disruption_mode == DisruptionMode.POD_GROUP

    @property
    def is_of_kubernetes(self) -> bool:
        """Whether it is a PodGroup of Kubernetes, and not one of another scheduler."""
        return not self.api_version or self.api_version.startswith(f"{API_GROUP}/")


class CompositeGangSchedulingPolicy(GangSchedulingPolicy, frozen=True, gc=False):
    min_count: int = msgspec.field(name="minGroupCount")
    """How many groups must have enough pods with nodes before any pod is bound."""


class CompositePodGroupSchedulingPolicy(PodGroupSchedulingPolicy, frozen=True, gc=False):
    gang: CompositeGangSchedulingPolicy | None = None


class CompositePodGroupSpec(PodGroupSpec, frozen=True, gc=False):
    scheduling_policy: CompositePodGroupSchedulingPolicy = CompositePodGroupSchedulingPolicy()


class CompositePodGroup(PodGroup, frozen=True, gc=False):
    """A group whose members are groups: those that name it as their parent."""

    spec: CompositePodGroupSpec = CompositePodGroupSpec()

    @property
    def key(self) -> CompositeKey:
        return CompositeKey(self.metadata.namespace, self.metadata.name)


def group_of(pod: Pod) -> GroupKey | None:
    """Return the group that *pod* belongs to; None if it is scheduled alone."""
    group = pod.spec.scheduling_group
    return None if group is None else GroupKey(pod.metadata.namespace, group.pod_group_name)


def group_to_wait_with(pod: Pod) -> GroupKey | None:
    """Return the group that *pod* of the scheduling queue is tried with; None: it is tried alone.

    A pod of a group that runs, and waits for room to be resized, is alone (1.37 spec N12.2).
    """
    return None if pod.spec.node_name else group_of(pod)
