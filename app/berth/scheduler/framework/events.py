"""Cluster events that may make a waiting pod schedulable (spec §3.6, §3.8)."""

from collections.abc import Callable, Container, Hashable, Iterable
from enum import Enum, IntFlag, StrEnum
from functools import cache
from typing import Any, Final

import msgspec

from berth.kube.objects.pod import Pod
from berth.runtime.release import Behaviour
from berth.scheduler.framework.key_index import Choices
from berth.scheduler.framework.pod_info import PodInfo


class EventResource(StrEnum):
    """What changed. The values are the names in metrics and logs."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    """Another pod that waits."""
    TARGET_POD = "TargetPod"
    """The pod itself that waits."""
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    COMPOSITE_POD_GROUP = "scheduling.k8s.io/CompositePodGroup"
    WILDCARD = "*"


class ActionType(IntFlag):
    """How it changed; the bit values matter, see :meth:`ClusterEvent.matches`.

    They are those of 1.37, which put bits in between and kept the order (1.37 spec N3.15).
    """

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_NODE_PREEMPTION_POLICY = 256
    """What nodes allow to be preempted for has changed, ``spec.podPreemptionPolicy``."""
    UPDATE_POD_LABEL = 512
    UPDATE_POD_SCALE_DOWN = 1024
    UPDATE_POD_SCALE_UP = 2048
    UPDATE_POD_TOLERATION = 4096
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 8192
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 16384
    UPDATE = 32764
    ALL = 32767


@cache
def _label_of(resource: EventResource | str, action: ActionType) -> str:
    return str(resource) + "".join(map(str.capitalize, (action.name or "").split("_")))


class ClusterEvent(msgspec.Struct, frozen=True):
    """One change, or a pattern of changes that a plugin registers for."""

    resource: EventResource | str
    """A string that is none of them is the event of a kind that a plugin declares."""
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The name in metrics: ``NodeAdd``, ``AssignedPodDelete``, ``UnschedulableTimeout``."""
        return self.custom_label or _label_of(self.resource, self.action)

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for all changes of everything."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: "ClusterEvent") -> bool:
        """Say whether this pattern covers *incoming* (spec §3.6).

        The numeric comparison is the rule of kube-scheduler: a generic update matches only
        patterns that have every update bit.
        """
        if self.is_wildcard:
            return True
        same_resource = (
            self.resource == incoming.resource
            or self.resource is EventResource.WILDCARD
            or (
                self.resource is EventResource.POD
                and incoming.resource
                in (
                    EventResource.ASSIGNED_POD,
                    EventResource.UNSCHEDULED_POD,
                    EventResource.TARGET_POD,
                )
            )
        )
        return (
            same_resource and bool(self.action & incoming.action) and incoming.action <= self.action
        )


class QueueingHint(Enum):
    """What a queueing hint answers."""

    SKIP = "QueueSkip"
    QUEUE = "Queue"


QueueingHintFn = Callable[[Pod, Any, Any], QueueingHint]
"""``hint(waiting pod, old object, new object)``: may this event make the pod schedulable?
The object is None where there is none (old on add, new on delete)."""


class HintIndex(msgspec.Struct, frozen=True, eq=False):
    """How to find the waiting pods that a hint may answer Queue about.

    An event finds the pods that are filed under one of its keys. The keys of a pod must follow from
    its labels, spec and resource claims alone, and those of pods that differ in their names only
    must be the same if the plugin decides by signature.
    """

    keys_of_pod: Callable[[PodInfo], Choices]
    """Sets of keys, of which a waiting pod is filed under one set; any of its keys finds the pod.
    No sets: every event finds it."""
    keys_of_event: Callable[[Any, Any], Iterable[Hashable] | None]
    """The keys of an event, given the old object and the new one; None: it finds every pod."""
    is_counted: bool = False
    """Whether it is counted which events find every pod, and which do not.

    It is then what kube-scheduler calls a PreQueueingHintFn (1.37 spec N12.1)."""


class ClusterEventWithHint(msgspec.Struct, frozen=True):
    """A registration: the pattern, and the hint that narrows it (None: always queue).

    If it has indexes, the hint is asked only about the pods that one of them finds. About all other
    pods it must answer Skip, unless the event is about the waiting pod itself.
    """

    event: ClusterEvent
    hint: QueueingHintFn | None = None
    indexes: tuple[HintIndex, ...] = ()


ALL_EVENTS = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")
CONFIG_RELOAD = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ConfigReload")
"""The plugins that rejected a pod may be others now. Of berth alone."""
NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULED_POD_ADD = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD)
UNSCHEDULED_POD_DELETE = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.DELETE)
TARGET_POD_UPDATE = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE)

TELLS_TARGET_POD: Final = Behaviour(
    "1.37",
    "N3.15",
    "The event label of metrics tells updates of the pod that waits (TargetPod) from what other"
    " waiting pods do (UnscheduledPod); both were UnschedulablePod.",
)

LabelOf = Callable[[ClusterEvent], str]
"""The name of an event in metrics."""


def label_of(features: Container[object]) -> LabelOf:
    """Return what names events in metrics as the release of *features* does."""
    return _label if TELLS_TARGET_POD in features else _label_before


def _label(event: ClusterEvent) -> str:
    return event.label


def _label_before(event: ClusterEvent) -> str:
    if event.resource in (EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD):
        return "UnschedulablePod" + event.label.removeprefix(event.resource)
    return event.label
