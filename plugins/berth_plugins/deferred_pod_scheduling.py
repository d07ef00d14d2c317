"""DeferredPodScheduling: pods that wait to be resized may preempt others on their node."""

from collections.abc import Hashable, Sequence
from typing import Final, Self

import numpy as np

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.deferred_resize import waits_to_be_resized
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    EnqueueExtensions,
    FilterPlugin,
    PermitPlugin,
    PreFilterPlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.framework.verdict import PASS, Verdict

OTHER_NODE: Final = Status.unresolvable("pod assigned to different node")
DISABLED: Final = Status.unresolvable("node had resize preemption disabled")
FITS: Final = Status.unresolvable("pod resize fits, waiting for Kubelet actuation")


class DeferredPodScheduling(PreFilterPlugin, FilterPlugin, PermitPlugin, EnqueueExtensions):
    """Keeps such a pod on its node, and on nodes that allow it from preempting (1.37 spec N12.2).

    When there is room, it is up to the kubelet: the pod waits on, and is never bound again.
    """

    NAME = "DeferredPodScheduling"
    DECIDES_BY_SIGNATURE = True  # such pods have none; for others it decides nothing

    def for_deferred_resizes(self) -> Self:
        return self

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return None if waits_to_be_resized(pod.pod) else EMPTY_FRAGMENT

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        return None if waits_to_be_resized(pod.pod) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        if not waits_to_be_resized(pod.pod):
            return PASS
        row = nodes.row_of.get(pod.pod.spec.node_name)
        others = np.ones(nodes.size, bool)
        if row is None:
            return Verdict.reject(OTHER_NODE, where=others)
        others[row] = False
        verdict = Verdict.reject(OTHER_NODE, where=others)
        node = nodes.nodes[row]
        if node is not None and _disables_resize_preemption(node):
            refused = Verdict.reject(DISABLED, where=~others)
            verdict = Verdict((*verdict.rejections, *refused.rejections))
        return verdict

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        return FITS if waits_to_be_resized(pod.pod) else None, 0.0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return what allows it on the node, or takes the room that there was.

        That the latter are events for it is a guess (1.37 spec N12.2): while the kubelet has not
        resized the pod, another one may take the room, and then victims must be found again.
        """
        node = ClusterEvent(
            EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_PREEMPTION_POLICY
        )
        taken = ClusterEvent(
            EventResource.ASSIGNED_POD, ActionType.ADD | ActionType.UPDATE_POD_SCALE_UP
        )
        return [
            ClusterEventWithHint(node, after_node_change),
            ClusterEventWithHint(taken, after_room_is_taken),
        ]


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    """Queue if the node of *pod* allows it to preempt, and did not before."""
    if new.metadata.name != pod.spec.node_name or _disables_resize_preemption(new):
        return QueueingHint.SKIP
    is_allowed_now = old is None or _disables_resize_preemption(old)
    return QueueingHint.QUEUE if is_allowed_now else QueueingHint.SKIP


def after_room_is_taken(pod: Pod, old: Pod | None, new: Pod) -> QueueingHint:
    """Queue if it is on the node of *pod* that a pod came or grew."""
    is_here = new.spec.node_name == pod.spec.node_name
    return QueueingHint.QUEUE if is_here else QueueingHint.SKIP


def _disables_resize_preemption(node: Node) -> bool:
    policy = node.spec.pod_preemption_policy
    return policy is not None and bool(policy.disable_resize_preemption)
