"""TaintToleration: a pod stays off nodes whose taints it does not tolerate."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from app.framework.cycle_state import CycleState
from app.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    Hint,
)
from app.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from app.framework.node_table import NodeTable, TaintSet
from app.framework.pod_info import PodInfo
from app.framework.scoring import default_normalize
from app.framework.status import Status
from app.framework.verdict import PASS, Ints, Verdict
from app.objects.node import Node
from app.objects.pod import Pod, Toleration
from app.objects.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    tolerates,
    untolerated,
)

UNTOLERATED: Final = Status.unresolvable("node(s) had untolerated taint(s)")

_REPELLING: Final = (NO_SCHEDULE, NO_EXECUTE)


class TaintToleration(FilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions):
    """Rejects nodes with untolerated NoSchedule or NoExecute taints (spec §5.5).

    Prefers nodes with few untolerated PreferNoSchedule taints: the score is their number, reversed
    when normalised, so that nodes without any get 100.
    """

    NAME = "TaintToleration"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        answers = pod.template.memo(
            "TaintToleration.filter", lambda: _answers(pod, _has_untolerated)
        ).over(nodes)
        if not answers.any():
            return PASS
        return Verdict.reject(UNTOLERATED, where=answers.take(nodes.taint_set) != 0)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        """Never skips, as in kube-scheduler: without any taints every node gets 100."""
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        answers = pod.template.memo(
            "TaintToleration.score", lambda: _answers(pod, count_intolerable)
        ).over(nodes)
        scores: Scores = answers.take(nodes.taint_set)
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return default_normalize(scores, reverse=True)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        toleration = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return [
            ClusterEventWithHint(node, after_node_change),
            ClusterEventWithHint(toleration, after_toleration_change),
        ]


class _Answers:
    """What a pod template makes of each distinct taint set of a table, asked once per set."""

    __slots__ = ("_answers", "_ask", "_taint_sets")

    def __init__(self, ask: Callable[[TaintSet], int]) -> None:
        self._ask = ask
        self._taint_sets: Sequence[TaintSet] = ()
        self._answers: Ints = np.empty(0, np.int64)

    def over(self, nodes: NodeTable) -> Ints:
        """Return the answers by index into ``nodes.taint_sets``."""
        taint_sets = nodes.taint_sets
        if self._taint_sets is not taint_sets:  # another cluster, such as a simulated one
            self._taint_sets, self._answers = taint_sets, np.empty(0, np.int64)
        known = len(self._answers)
        if known < len(taint_sets):
            more = [self._ask(taints) for taints in taint_sets[known:]]
            self._answers = np.concatenate([self._answers, np.array(more, np.int64)])
        return self._answers


def _answers(pod: PodInfo, ask: Callable[[TaintSet, Sequence[Toleration]], int]) -> _Answers:
    tolerations = pod.pod.spec.tolerations
    return _Answers(lambda taints: ask(taints, tolerations))


def _has_untolerated(taints: TaintSet, tolerations: Sequence[Toleration]) -> bool:
    return untolerated(taints, tolerations, effects=_REPELLING) is not None


def count_intolerable(taints: TaintSet, tolerations: Sequence[Toleration]) -> int:
    """Count the PreferNoSchedule taints that none of *tolerations* puts up with."""
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not any(tolerates(t, taint) for t in tolerations)
        for taint in taints
    )


def after_node_change(pod: Pod, old: Node | None, new: Node) -> Hint:
    """Queue if the node repelled the pod, or was not there, and does not repel it now."""
    tolerations = pod.spec.tolerations
    if _has_untolerated(new.spec.taints, tolerations):
        return Hint.SKIP
    repelled = old is None or _has_untolerated(old.spec.taints, tolerations)
    return Hint.QUEUE if repelled else Hint.SKIP


def after_toleration_change(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    """Queue if it is this pod: tolerations can only be added."""
    return Hint.QUEUE if new.metadata.uid == pod.metadata.uid else Hint.SKIP
