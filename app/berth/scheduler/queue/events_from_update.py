"""Cluster events of a changed pod or node (spec §3.8, 1.37 spec N3.15)."""

from collections.abc import Mapping
from typing import Final

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import Quantities, milli_value, parse
from berth.kube.objects.resources import pod_requests, resized_containers
from berth.runtime.release import Behaviour
from berth.scheduler.framework.events import ActionType, ClusterEvent, EventResource

TELLS_SCALE_UP: Final = Behaviour(
    "1.37",
    "N3.15",
    "That a pod requests more has an event of its own, UpdatePodScaleUp.",
)


def pod_scheduling_properties_change(
    old: Pod, new: Pod, *, tells_scale_up: bool = True
) -> list[ClusterEvent]:
    """Return what changed between *old* and *new*; a generic update if nothing that has a name.

    Before TELLS_SCALE_UP, that a pod requests more had none.
    """
    resource = EventResource.ASSIGNED_POD if new.spec.node_name else EventResource.TARGET_POD
    actions = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(ActionType.UPDATE_POD_LABEL)
    if _says_what_it_requests(old) != _says_what_it_requests(new):
        before = pod_requests(old, use_status=True, pod_level=True)
        after = pod_requests(new, use_status=True, pod_level=True)
        if _is_less(after, before):
            actions.append(ActionType.UPDATE_POD_SCALE_DOWN)
        if tells_scale_up and _is_less(before, after):
            actions.append(ActionType.UPDATE_POD_SCALE_UP)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # Tolerations can only be added, so their number says it all.
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(ActionType.UPDATE_POD_TOLERATION)
    if (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    ):
        actions.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [ClusterEvent(resource, action) for action in actions or [ActionType.UPDATE]]


def node_scheduling_properties_change(old: Node, new: Node) -> list[ClusterEvent]:
    """Return what changed between *old* and *new*; nothing for a heartbeat.

    A node that lost its taints and became schedulable at the same time yields one event for both:
    they are the same event.
    """
    actions = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if not _same_amounts(old.status.allocatable, new.status.allocatable):
        actions.append(ActionType.UPDATE_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        actions.append(ActionType.UPDATE_NODE_LABEL)
    if old.spec.taints != new.spec.taints and ActionType.UPDATE_NODE_TAINT not in actions:
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if _condition_statuses(old) != _condition_statuses(new):
        actions.append(ActionType.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        actions.append(ActionType.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        actions.append(ActionType.UPDATE_NODE_DECLARED_FEATURE)
    if old.spec.pod_preemption_policy != new.spec.pod_preemption_policy:
        actions.append(ActionType.UPDATE_NODE_PREEMPTION_POLICY)
    return [ClusterEvent(EventResource.NODE, action) for action in actions]


def _is_less(some: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """Whether *some* requests, in nano units, lack a resource of *other*, or have less of one."""
    return some != other and any(
        name not in some or milli_value(amount) > milli_value(some[name])
        for name, amount in other.items()
    )


def _says_what_it_requests(pod: Pod) -> tuple[object, ...]:
    """Return all that :func:`pod_requests` goes by; most updates change none of it."""
    spec, status = pod.spec, pod.status
    return (
        spec.containers,
        spec.init_containers,
        spec.overhead,
        spec.resources,
        resized_containers(pod),
        status.resources,
        status.allocated_resources,
        status.node_allocatable_resource_claim_statuses,
        [
            condition.reason
            for condition in status.conditions
            if condition.type == "PodResizePending"
        ],
    )


def _same_amounts(old: Quantities, new: Quantities) -> bool:
    """Compare as numbers: ``1`` and ``1000m`` are the same."""
    return old == new or (
        old.keys() == new.keys() and all(parse(old[name]) == parse(new[name]) for name in old)
    )


def _condition_statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
