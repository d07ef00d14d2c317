"""Node, as far as scheduling reads it."""

import msgspec

from berth.kube.objects.meta import Condition, KubeStruct, ObjectMeta
from berth.kube.objects.quantity import Quantities, check_quantities


class Taint(KubeStruct, frozen=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodePodPreemptionPolicy(KubeStruct, frozen=True, gc=False):
    disable_resize_preemption: tuple[str, ...] = ()
    """For whose sake not: names, as of label keys. Any keeps the pods of the node from it."""


class NodeSpec(KubeStruct, frozen=True, gc=False):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_preemption_policy: NodePodPreemptionPolicy | None = None


class ContainerImage(KubeStruct, frozen=True, gc=False):
    nullable_names: tuple[str, ...] | None = msgspec.field(default=(), name="names")
    """As written: an image that lost its last tag has ``"names": null``."""
    size_bytes: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return self.nullable_names or ()


class NodeStatus(KubeStruct, frozen=True, gc=False):
    allocatable: Quantities = msgspec.field(default_factory=dict)
    capacity: Quantities = msgspec.field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_quantities("allocatable", self.allocatable)
        check_quantities("capacity", self.capacity)


class Node(KubeStruct, frozen=True, gc=False):
    """A v1.Node, as far as something here reads it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        """``metadata.labels``."""
        return self.metadata.labels
