"""Answers questions about the pods of a running scheduler."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from berth.insight.explain.choice import choose, node_score
from berth.insight.explain.evaluation import WITHOUT_EXTENDERS, evaluate_in_steps
from berth.insight.explain.explanation import (
    Evaluation,
    Explanation,
    PastDecision,
    PodGroupStanding,
    Whereabouts,
    WorkloadExplanation,
)
from berth.insight.explain.groups.explainer import PodGroupExplainer
from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.explain.obstacles import Obstacles
from berth.insight.explain.pod_state import age_of, pod_state, rejectors_of
from berth.insight.explain.preemption import past_preemption
from berth.insight.explain.summary import Subject, summarize
from berth.insight.explain.unplaced import AS_IF_UNPLACED, as_if_unplaced
from berth.insight.explain.workload import Workload
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import GroupKey, group_of
from berth.runtime.tasks import Steps, at_once, in_turns, step_by_step
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.cycle import Cycle
from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.find_nodes_that_fit import evaluate_all_nodes
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_signature import signature_of
from berth.scheduler.framework.verdict import Ints
from berth.scheduler.profile.profile import Profile

# By which filters a pod is rejected on each node, for all nodes at once.


@dataclass(frozen=True, slots=True)
class Rejections:
    """What all filters said of all nodes."""

    message: str
    """The FitError (spec §2.8), or the error that ended the attempt; empty if a node fits."""
    num_feasible: int
    plugin_sets: list[tuple[str, ...]]
    """The sets of plugins that reject the pod together."""
    plugin_set: Ints
    """By row, the index in ``plugin_sets``; rows without a node count as those that fit."""


def rejections_of(cycle: Cycle) -> Rejections:
    """Ask all filters about the pod of *cycle* on every node, changing nothing.

    Costs what an attempt costs that fails, and each filter a second time. Takes what PreFilter
    leaves out to be rejected by the plugins that left it out.
    """
    feasible_nodes = evaluate_all_nodes(cycle)
    by_plugin = {
        plugin: where
        for plugin, where in Obstacles(cycle, feasible_nodes).rejected_by_plugin().items()
        if where.any()
    }
    sets = np.zeros(cycle.nodes.size, np.int64)
    for bit, where in enumerate(by_plugin.values()):
        sets |= where.astype(np.int64) << bit
    distinct, plugin_set = np.unique(sets, return_inverse=True)
    num_feasible = int((feasible_nodes.feasible & cycle.nodes.exists).sum())
    if feasible_nodes.error is not None:
        message = feasible_nodes.error.message
    else:
        message = "" if num_feasible else feasible_nodes.diagnosis.message()
    return Rejections(
        message=message,
        num_feasible=num_feasible,
        plugin_sets=[
            tuple(name for bit, name in enumerate(by_plugin) if bits >> bit & 1)
            for bits in distinct.tolist()
        ],
        plugin_set=plugin_set,
    )


HISTORY_SHOWN: Final = 10
"""Attempts of one pod; there may be more among all decisions."""
GROUPS_EXPLAINED: Final = 5
"""Of a workload; replicas mostly have one signature, those with volumes of their own have none."""
NODES_PER_TURN: Final = 20
"""A node takes a tenth of a millisecond or two."""
AS_IF_UNGATED = "evaluated as if it were not gated"
OF_GROUP = "evaluated alone; it gets a node only together with others of its group"


class Explainer:
    """Looks at a scheduler between two attempts; to be used on its event loop only.

    Every answer is true of one moment, and linear in the number of nodes.
    """

    def __init__(self, view: SchedulerView) -> None:
        self._view = view
        self._groups = PodGroupExplainer(view)

    def explain(self, key: str, *, limit: int | None) -> Explanation | None:
        """Explain the pod ``namespace/name``, with the *limit* nearest nodes.

        None if there is no such pod, or it has finished.
        """
        return at_once(self._explaining(key, limit))

    async def explain_in_turns(
        self, key: str, *, limit: int | None, evaluates: bool = True
    ) -> Explanation | None:
        """Do the same, and let others have a turn between nodes; it is true of its beginning.

        Unless it *evaluates*, it says where the pod is and how its attempts ended, and no node is
        looked at.
        """
        explaining = self._explaining(key, limit, evaluates=evaluates)
        return await step_by_step(explaining, per_turn=NODES_PER_TURN)

    async def explain_workload_in_turns(
        self, namespace: str, workload: Workload, *, limit: int | None
    ) -> WorkloadExplanation | None:
        """Explain the pending pods of *workload*, one for each signature.

        None if no pod of it is known. Each explanation is true of its own beginning.
        """
        pods: list[Pod] = []
        async for some in in_turns(list(self._view.pods.values())):
            pods += (pod for pod in some if workload.has(pod, namespace))
        if not pods:
            return None
        pending = [pod for pod in pods if not pod.spec.node_name]
        groups: dict[Hashable, list[Pod]] = {}
        async for some in in_turns(pending, piece=NODES_PER_TURN):
            for pod in some:
                groups.setdefault(self._kind_of(pod), []).append(pod)
        largest = sorted(groups.values(), key=len, reverse=True)[:GROUPS_EXPLAINED]
        explained = []
        for group in largest:
            explaining = self._explaining(group[0].key, limit, len(group) - 1, str(workload))
            explanation = await step_by_step(explaining, per_turn=NODES_PER_TURN)
            if explanation is not None:  # it has not been deleted meanwhile
                explained.append(explanation)
        return WorkloadExplanation(
            workload=str(workload),
            namespace=namespace,
            num_pods=len(pods),
            num_pending=len(pending),
            pods=tuple(explained),
            num_left_out=len(pending) - sum(map(len, largest)),
        )

    def explain_pod_group(self, key: GroupKey, *, limit: int | None) -> PodGroupExplanation | None:
        """Explain a pod group, with the *limit* nearest nodes for its first obstacle.

        None if there is no such group, not even a pod that names it, or groups are not scheduled
        together here.
        """
        return at_once(self._groups.explaining(key, limit=limit))

    async def explain_pod_group_in_turns(
        self, key: GroupKey, *, limit: int | None
    ) -> PodGroupExplanation | None:
        """Do the same, and let others have a turn between nodes."""
        explaining = self._groups.explaining(key, limit=limit)
        return await step_by_step(explaining, per_turn=NODES_PER_TURN)

    def rejections(self, key: str) -> Rejections | str:
        """Return which filters reject the pending pod ``namespace/name`` on each row of the table.

        Or why there is no answer. Takes about as long as two attempts, without interruption.
        """
        pod, view = self._view.pods.get(key), self._view
        if pod is None:
            return "not found, or it has finished"
        placed = view.cache.pod(pod.metadata.uid)
        if placed is not None:
            return f"it is not pending, it has the node {placed.node_name}"
        profile = view.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            return f"it is for the scheduler {pod.spec.scheduler_name}"
        return rejections_of(view.begin_cycle(profile, PodInfo(pod)))

    def _kind_of(self, pod: Pod) -> Hashable:
        """Return what is the same for pods of which one can stand for the others.

        Asked of every pod of a workload, so it looks nothing up that takes longer with many.
        """
        queue = self._view.queue
        queued, where = queue.sub_queues.get(pod.key), queue.sub_queues.place_of(pod.key)
        rejectors = rejectors_of(queued) if queued else ()
        return where, rejectors, signature_of(PodInfo(pod)) or pod.key

    def _explaining(
        self,
        key: str,
        limit: int | None,
        num_others: int = 0,
        workload: str = "",
        *,
        evaluates: bool = True,
    ) -> Steps[Explanation | None]:
        pod = self._view.pods.get(key)
        if pod is None:
            return None
        state = pod_state(pod, self._view)
        history = self.decisions(key, limit=HISTORY_SHOWN)
        profile = self._view.profiles.get(pod.spec.scheduler_name)
        will_be_tried = pod.metadata.deletion_timestamp is None or bool(state.node)
        evaluation = standing = None
        if profile and will_be_tried and evaluates:
            evaluation = yield from self._evaluate(profile, pod, state.where, limit)
            evaluation = _with_preemption(evaluation, pod, history)
        if evaluates:
            standing = yield from self._standing(pod)
        subject = Subject(key, age_of(pod, self._view.clock.now()), num_others, workload)
        return Explanation(
            pod=key,
            uid=pod.metadata.uid,
            profile=pod.spec.scheduler_name,
            summary=summarize(subject, state, evaluation, history, pod_group=standing),
            workload=workload,
            stands_for=num_others + 1,
            pod_group=standing,
            state=state,
            evaluation=evaluation,
            history=tuple(history),
        )

    def _standing(self, pod: Pod) -> Steps[PodGroupStanding | None]:
        """Say how the group of *pod* stands; None without one."""
        key = group_of(pod) if self._view.groups is not None else None
        if key is None:
            return None
        group = yield from self._groups.explaining(key, limit=0)
        if group is None:
            return None
        return PodGroupStanding(
            name=group.pod_group, summary=group.summary, is_obstacle=group.obstacle == pod.key
        )

    def decisions(self, pod: str | None = None, *, limit: int | None = None) -> list[PastDecision]:
        """Return recorded attempts, of *pod* or of all, the newest first."""
        kept = self._view.decisions
        records = kept.newest_first() if pod is None else reversed(kept.of(pod))
        return [self.past_decision(record) for record in islice(records, limit)]

    def _evaluate(
        self, profile: Profile, pod: Pod, where: Whereabouts, limit: int | None
    ) -> Steps[Evaluation]:
        cache, nominator = self._view.cache, self._view.queue.nominator
        nodes, notes = cache.table.detached(), []
        asked = PodInfo(pod)
        placed = cache.pod(asked.uid)
        if placed is not None:
            notes.append(AS_IF_UNPLACED)
            asked = as_if_unplaced(pod, placed, nodes)
        elif where is Whereabouts.GATED:
            notes.append(AS_IF_UNGATED)
        if self._view.groups is not None and group_of(pod) is not None:
            notes.append(OF_GROUP)
        if self._view.asks_extenders(asked):
            notes.append(WITHOUT_EXTENDERS)
        return evaluate_in_steps(
            profile,
            asked,
            nodes,
            nominated=nominator.nominated_pods(),
            limit=limit,
            notes=notes,
        )

    def past_decision(self, record: DecisionRecord) -> PastDecision:
        """Put a record into words."""
        best = tuple(node_score(ranked, weights=record.weights) for ranked in record.top)
        return PastDecision(
            pod=record.pod,
            uid=record.uid,
            number=record.number,
            result=record.result,
            at=self._view.at(record.at),
            profile=record.profile,
            attempt=record.attempt,
            seconds_ago=self._view.age(record.at),
            took_seconds=record.took,
            node=record.node,
            message=record.message,
            reasons=record.reasons,
            plugins=record.plugins,
            nominated_node=record.nominated_node,
            preemption=None if record.preemption is None else past_preemption(record.preemption),
            gang=record.gang,
            answered_by=record.answered_by,
            num_nodes=record.num_nodes,
            num_feasible=record.num_feasible,
            choice=choose(record.node, best, equals=record.equals) if record.node else None,
            best=best,
        )


def _with_preemption(
    evaluation: Evaluation, pod: Pod, history: Sequence[PastDecision]
) -> Evaluation:
    """Add what preemption said in the last attempt, if that found what is found now."""
    last = history[0] if history else None
    base = evaluation.message
    if last is None or last.uid != pod.metadata.uid or not base or evaluation.error:
        return evaluation
    is_same = last.message.startswith(f"{base} ") and not last.gang
    return evaluation.model_copy(update={"message": last.message}) if is_same else evaluation
