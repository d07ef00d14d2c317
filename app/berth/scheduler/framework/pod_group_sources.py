"""PodGroups of other schedulers, and how their pods name them.

::

    scheduler      a pod names its group in                  the group is a
    Kubernetes     spec.schedulingGroup.podGroupName         scheduling.k8s.io PodGroup
    coscheduling   label scheduling.x-k8s.io/pod-group       scheduling.x-k8s.io PodGroup
    Volcano        annotation scheduling.k8s.io/group-name   scheduling.volcano.sh PodGroup

This is the one place that reads what others write. A pod that is read gets the
``schedulingGroup`` that its label means, and all else goes by that.
"""

from collections.abc import Callable, Container, Sequence
from typing import Any, Final

import msgspec

from berth.kube.objects.pod import Pod, SchedulingGroup
from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.config.feature_gates import COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS
from berth.scheduler.framework.events import ActionType, EventResource
from berth.scheduler.framework.kind import Kind

COSCHEDULING_LABEL: Final = "scheduling.x-k8s.io/pod-group"
VOLCANO_ANNOTATIONS: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")


class PodGroupSource(msgspec.Struct, frozen=True):
    """Where another scheduler's groups come from."""

    kind: Kind[PodGroup]
    """Has its feature gate."""
    name_of: Callable[[Pod], str]
    """Returns the name of a pod's group; empty if it has none."""


def _coscheduling(pod: Pod) -> str:
    return pod.metadata.labels.get(COSCHEDULING_LABEL, "")


def _volcano(pod: Pod) -> str:
    annotations = pod.metadata.annotations
    return next((name for key in VOLCANO_ANNOTATIONS if (name := annotations.get(key))), "")


def _pod_groups(path: str, *, feature: str) -> Kind[PodGroup]:
    return Kind(
        path,
        PodGroup,
        event=EventResource.POD_GROUP,
        wakes=ActionType.ADD | ActionType.UPDATE | ActionType.DELETE,
        feature=feature,
    )


SOURCES: Final[Sequence[PodGroupSource]] = (
    PodGroupSource(
        _pod_groups(
            "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", feature=COSCHEDULING_POD_GROUPS
        ),
        _coscheduling,
    ),
    PodGroupSource(
        _pod_groups("/apis/scheduling.volcano.sh/v1beta1/podgroups", feature=VOLCANO_POD_GROUPS),
        _volcano,
    ),
)
"""Those after Kubernetes' own, which a pod is asked for first."""


def kinds_of_pod_groups(features: Container[object]) -> Sequence[Kind[Any]]:
    """Return the kinds of other schedulers' PodGroups that *features* turn on."""
    return [source.kind for source in SOURCES if source.kind.feature in features]


def group_reader(features: Container[object]) -> Callable[[Pod], Pod] | None:
    """Return what gives a pod the group that its labels or annotations name.

    None if no feature gate for other schedulers' groups is on.
    """
    readers = [source.name_of for source in SOURCES if source.kind.feature in features]
    if not readers:
        return None

    def read(pod: Pod) -> Pod:
        if pod.spec.scheduling_group is None:
            for name_of in readers:
                if name := name_of(pod):
                    spec = msgspec.structs.replace(
                        pod.spec, scheduling_group=SchedulingGroup(pod_group_name=name)
                    )
                    return msgspec.structs.replace(pod, spec=spec)
        return pod

    return read
