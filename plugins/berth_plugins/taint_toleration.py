"""TaintToleration: a pod stays off nodes whose taints it does not tolerate."""

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Final

from berth.kube.objects.node import Node, Taint
from berth.kube.objects.pod import Pod, Toleration
from berth.kube.objects.taints import (
    COMPARISONS,
    PREFER_NO_SCHEDULE,
    UNSCHEDULABLE_TAINT,
    tolerates,
    written,
)
from berth.scheduler.framework.change import Change, ChangeKind, Detail, uncordon
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.explanation import Explains
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    EnqueueExtensions,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from berth.scheduler.framework.node_table import NodeTable, TaintSet
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scoring import default_normalize
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import PASS, Verdict
from berth_plugins.shared.node_rows import has_untolerated, rows_repelling, taint_answers

UNTOLERATED: Final = Status.unresolvable("node(s) had untolerated taint(s)")


class TaintToleration(FilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions, Explains):
    """Rejects nodes with untolerated NoSchedule or NoExecute taints (spec §5.5).

    Prefers nodes with few untolerated PreferNoSchedule taints: the score is their number, reversed
    when normalised, so that nodes without any get 100.
    """

    NAME = "TaintToleration"
    WITHOUT_PRE_SCORE = 'failed to read "PreScoreTaintToleration" from cycleState: not found'
    DECIDES_BY_SIGNATURE = True

    def __init__(self, args: None = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        self._comparisons = handle is not None and COMPARISONS in handle.features

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return EMPTY_FRAGMENT

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        repelling = rows_repelling(nodes, pod.template, comparisons=self._comparisons)
        return PASS if repelling is None else Verdict.reject(UNTOLERATED, where=repelling)

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        for taint in nodes.taint_sets[nodes.taint_set[row]]:
            if self._is_repelled((taint,), pod.pod.spec.tolerations):
                yield Detail(f"taint {written(taint)} is not tolerated", _change(taint))

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        """Never skips, as in kube-scheduler: without any taints every node gets 100."""
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        tolerations = pod.pod.spec.tolerations
        count = partial(count_intolerable, comparisons=self._comparisons)
        return nodes.kept(
            ("intolerable", tolerations), lambda: taint_answers(nodes, count, tolerations)
        )

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return default_normalize(scores, reverse=True)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        toleration = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return [
            ClusterEventWithHint(node, self._after_node_change),
            ClusterEventWithHint(toleration, after_toleration_change),
        ]

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> QueueingHint:
        """Queue if the node repelled the pod, or was not there, and does not repel it now."""
        tolerations = pod.spec.tolerations
        if self._is_repelled(new.spec.taints, tolerations):
            return QueueingHint.SKIP
        repelled = old is None or self._is_repelled(old.spec.taints, tolerations)
        return QueueingHint.QUEUE if repelled else QueueingHint.SKIP

    def _is_repelled(self, taints: TaintSet, tolerations: Sequence[Toleration]) -> bool:
        return has_untolerated(taints, tolerations, comparisons=self._comparisons)


_NOT_FOR_PODS: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
)
"""Taints of nodes that are broken, not ready yet, or not meant for workloads; none to take away."""


def _change(taint: Taint) -> Change | None:
    if taint == UNSCHEDULABLE_TAINT:
        return uncordon()
    if taint.key.startswith(_NOT_FOR_PODS):
        return None
    name = written(taint)
    words = f"remove taint {name}, or tolerate it"
    return Change(kind=ChangeKind.REMOVE_TAINT, what=name, words=words)


def count_intolerable(
    taints: TaintSet, tolerations: Sequence[Toleration], *, comparisons: bool = False
) -> int:
    """Count the PreferNoSchedule taints that none of *tolerations* puts up with."""
    return sum(
        taint.effect == PREFER_NO_SCHEDULE
        and not any(tolerates(t, taint, comparisons=comparisons) for t in tolerations)
        for taint in taints
    )


def after_toleration_change(pod: Pod, old: Pod | None, new: Pod) -> QueueingHint:
    """Queue if it is this pod: tolerations can only be added."""
    return QueueingHint.QUEUE if new.metadata.uid == pod.metadata.uid else QueueingHint.SKIP
