"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.taints import UNSCHEDULABLE_TAINT, tolerates
from berth.scheduler.framework.change import Detail, uncordon
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.explanation import Explains
from berth.scheduler.framework.interface import EMPTY_FRAGMENT, EnqueueExtensions, FilterPlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import PASS, Verdict

UNSCHEDULABLE: Final = Status.unresolvable("node(s) were unschedulable")


class NodeUnschedulable(FilterPlugin, EnqueueExtensions, Explains):
    """Rejects nodes with ``spec.unschedulable``, unless the pod tolerates that (spec §5.4)."""

    NAME = "NodeUnschedulable"
    DECIDES_BY_SIGNATURE = True

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return EMPTY_FRAGMENT

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        verdict = nodes.kept("cordoned", lambda: _cordoned(nodes))
        return PASS if verdict is PASS or _tolerates_unschedulable(pod.pod) else verdict

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        yield Detail("is cordoned: spec.unschedulable is true", uncordon())

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        toleration = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return [
            ClusterEventWithHint(node, after_node_change),
            ClusterEventWithHint(toleration, after_toleration_change),
        ]


def _cordoned(nodes: NodeTable) -> Verdict:
    cordoned = nodes.unschedulable
    return Verdict.reject(UNSCHEDULABLE, where=cordoned.copy()) if cordoned.any() else PASS


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    """Queue if a node came that is schedulable, or one became so."""
    was = old is None or old.spec.unschedulable
    return QueueingHint.QUEUE if was and not new.spec.unschedulable else QueueingHint.SKIP


def after_toleration_change(pod: Pod, old: Pod | None, new: Pod) -> QueueingHint:
    """Queue if it is this pod, and it tolerates cordoned nodes now."""
    is_this = new.metadata.uid == pod.metadata.uid
    return QueueingHint.QUEUE if is_this and _tolerates_unschedulable(new) else QueueingHint.SKIP


def _tolerates_unschedulable(pod: Pod) -> bool:
    return any(tolerates(toleration, UNSCHEDULABLE_TAINT) for toleration in pod.spec.tolerations)
