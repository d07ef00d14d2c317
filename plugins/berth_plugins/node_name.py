"""NodeName: a pod that names its node runs only there."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.change import Change, ChangeKind, Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.deferred_resize import RESIZES_PREEMPT
from berth.scheduler.framework.events import NODE_ADD, ClusterEventWithHint, QueueingHint
from berth.scheduler.framework.explanation import Explains
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import PASS, Verdict

WRONG_NODE: Final = Status.unresolvable("node(s) didn't match the requested node name")


class NodeName(FilterPlugin, EnqueueExtensions, Explains):
    """Rejects every node but ``spec.nodeName``, when it is set (spec §5.3)."""

    NAME = "NodeName"
    DECIDES_BY_SIGNATURE = True

    def for_deferred_resizes(self) -> "OnlyItsNode":
        return OnlyItsNode()

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return None if pod.pod.spec.node_name else EMPTY_FRAGMENT

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        name = pod.pod.spec.node_name
        if not name:
            return PASS
        others = np.ones(nodes.size, bool)
        row = nodes.row_of.get(name)
        if row is not None:
            others[row] = False
        return Verdict.reject(WRONG_NODE, where=others)

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        change = Change(
            kind=ChangeKind.EDIT_POD,
            what="spec.nodeName",
            words=f"name {nodes.name(row)} in the pod's spec.nodeName",
        )
        yield Detail(f"spec.nodeName names {pod.pod.spec.node_name}", change)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        resizes_preempt = self.handle is not None and RESIZES_PREEMPT in self.handle.features
        return [ClusterEventWithHint(NODE_ADD, after_node_add if resizes_preempt else None)]


def after_node_add(pod: Pod, old: None, new: Node) -> QueueingHint:
    """Queue if it is the node that the pod names."""
    is_it = pod.spec.node_name in ("", new.metadata.name)
    return QueueingHint.QUEUE if is_it else QueueingHint.SKIP


class OnlyItsNode(PreFilterPlugin):
    """Leaves no other node in question than the one where the pod runs (1.37 spec N12.2)."""

    NAME = NodeName.NAME

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult(frozenset({pod.pod.spec.node_name}))
