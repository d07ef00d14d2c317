"""Answers questions about the pod groups of a scheduler."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from prometheus_client import CollectorRegistry

from berth.insight.explain.evaluation import WITHOUT_EXTENDERS
from berth.insight.explain.explanation import Evaluation, Whereabouts
from berth.insight.explain.groups.explanation import (
    Blocked,
    GroupAbove,
    GroupBelow,
    PodGroupExplanation,
    PodGroupStatus,
)
from berth.insight.explain.groups.placements import choice_of, verdicts
from berth.insight.explain.groups.shortage import shortage_of
from berth.insight.explain.groups.summary import summarize_group
from berth.insight.explain.groups.trial import GroupTrial, GroupTrials, Tried
from berth.insight.explain.pod_state import leaving_pods, rejectors_of, whereabouts
from berth.insight.explain.unplaced import unplaced
from berth.insight.explain.wakers import woken_by
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import CompositePodGroup, GroupKey, PodGroup, group_of
from berth.runtime.clock import rfc3339
from berth.runtime.tasks import Steps
from berth.scheduler.config.feature_gates import GANG_SCHEDULING
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.outcome import Placed
from berth.scheduler.pod_group.tree_trial import status_below
from berth.scheduler.pod_group.trial import GroupStatus, Member, Result, importance
from berth.scheduler.pod_group.validation import problem_of
from berth.scheduler.queue.sub_queues import SubQueue

NODES_LOOKED_AT: Final = 20
"""At least so many of the nearest nodes are asked what they lack."""
AS_IF_NONE_HAD_A_NODE: Final = (
    "evaluated on the cluster as it is now, as if no pod of the group had a node yet"
)
LEFT_OUT: Final = "{} not tried: scheduling gates of their own hold them back"
NO_LABEL: Final = "no node has the label {}"
NO_GROUP: Final = "there is none and no pod names it, or the feature gate GenericWorkload is off"
DIFFERENT_SCHEDULERS: Final = "its pods name different schedulers: {}"


class PodGroupExplainer:
    """Looks at a scheduler between two attempts; to be used on its event loop only.

    What it says about a group is found in a trial that is undone at once. It takes as long as the
    scheduling cycle of the group.
    """

    def __init__(self, view: SchedulerView) -> None:
        self._view = view

    @cached_property
    def _trials(self) -> GroupTrials:
        return GroupTrials(self._view, SchedulerMetrics(CollectorRegistry()))

    def explaining(self, key: GroupKey, *, limit: int | None) -> Steps[PodGroupExplanation | None]:
        """Explain a group, with the *limit* nearest nodes for its obstacle; None: all.

        None if there is neither the object nor a pod that names it, or groups are not scheduled
        together here.
        """
        parts = self._view.groups
        if parts is None:
            return None
        looked = _Looked(self._view, key)
        if looked.group is None and not looked.num_pods:
            return None
        trial, notes = self._try(looked, limit)
        evaluation = None
        if trial is not None and trial.evaluating is not None:
            evaluation = yield from trial.evaluating
        explanation = _explanation(looked, trial, evaluation, limit, notes)
        if looked.root is not looked.group and looked.root is not None:
            above = yield from self.explaining(looked.root.key, limit=0)
            assert above is not None
            of_it = explanation.kind, explanation.pod_group
            own = next(each for each in above.groups if (each.kind, each.name) == of_it)
            explanation = explanation.model_copy(
                update={
                    "part_of": GroupAbove(name=above.pod_group, summary=above.summary),
                    "can_start": bool(own.can_start),
                }
            )
        return explanation.model_copy(
            update={"summary": summarize_group(explanation, now=self._view.clock.now())}
        )

    def _try(self, looked: "_Looked", limit: int | None) -> tuple[GroupTrial | None, list[str]]:
        """Try the members that have no node; of a placed group with a choice, all of them."""
        group = looked.group
        notes: list[str] = []
        if group is None:
            return None, notes
        members = looked.to_be_tried
        if looked.num_held_back:
            notes.append(LEFT_OUT.format(looked.num_held_back))
        taken_off: Sequence[PodInfo] = ()
        if not members:
            is_tree = looked.root is not group or isinstance(group, CompositePodGroup)
            if looked.num_unscheduled or not looked.scheduled or not _topology_key(group):
                return None, notes
            if is_tree:  # where it would go depends on the other groups
                return None, notes
            notes.append(AS_IF_NONE_HAD_A_NODE)
            taken_off = looked.scheduled
            members = [_as_if_queued(pod) for pod in taken_off]
        if any(self._view.asks_extenders(member.pod_info) for member in members):
            notes.append(WITHOUT_EXTENDERS)
        names = sorted({member.pod.spec.scheduler_name for member in members})
        profile = self._view.profiles.get(names[0])
        if len(names) > 1 or profile is None:
            return None, [*notes, DIFFERENT_SCHEDULERS.format(", ".join(names))]
        if problem := looked.problem:
            notes.append(problem)
            return None, notes
        if isinstance(group, CompositePodGroup):
            return self._trials.run_tree(group, members, profile=profile), notes
        trial = self._trials.run(
            group,
            members,
            is_part=looked.root is not group,
            profile=profile,
            scheduled=() if taken_off else looked.scheduled,
            taken_off=taken_off,
            limit=None if limit is None else max(limit, NODES_LOOKED_AT),
        )
        return trial, notes


class _Looked:
    """What is known about a group without trying it."""

    def __init__(self, view: SchedulerView, key: GroupKey) -> None:
        assert view.groups is not None
        self.view = view
        self.key = key
        self.pod_groups = groups = view.groups.pod_groups
        self.group = groups.hierarchy.get(key)
        self.root = None if self.group is None else groups.hierarchy.root_above(self.group)
        """The group with which it is tried, perhaps itself."""
        leaves = [key] if self.group is None else [*groups.hierarchy.leaves(self.group)]
        states = [state for state in map(groups.get, leaves) if state is not None]
        self.scheduled = tuple(pod for state in states for pod in state.scheduled.values())
        waiting = [pod for state in states for pod in state.unscheduled()]
        self.num_unscheduled = len(waiting)
        self.num_pods = sum(state.all_pods_count for state in states)
        queue = view.queue.sub_queues
        queued = (queue.get(pod.key) for pod in waiting)
        self.queued = [member for member in queued if member is not None]
        self.members = Counter(whereabouts(pod, view) for pod in self._pods(waiting))

    def _pods(self, waiting: Sequence[Pod]) -> Iterator[Pod]:
        yield from waiting
        yield from (info.pod for info in self.scheduled)

    @property
    def to_be_tried(self) -> Sequence[QueuedPodInfo]:
        """Those that wait, in the order of the cycle (spec G4.3)."""
        free = [member for member in self.queued if not member.pod.spec.scheduling_gates]
        return sorted(free, key=importance)

    @property
    def problem(self) -> str:
        """What keeps the group from being tried, where groups are entities of the queue."""
        if self.root is not None and self.root is not self.group:
            return _Looked(self.view, self.root.key).problem
        parts, queued = self.view.groups, self.to_be_tried
        if parts is None or not parts.are_entities or self.group is None or not queued:
            return ""
        return problem_of(
            self.group,
            (member.pod for member in queued),
            (pod.pod for pod in self.scheduled),
            profiles=self.view.profiles,
            has_preemption_policy=parts.have_preemption_policy,
        )

    @property
    def num_held_back(self) -> int:
        return sum(1 for member in self.queued if member.pod.spec.scheduling_gates)

    @property
    def num_uncreated(self) -> int:
        """How many more pods the group is gated for."""
        is_gated = self.group is not None and self.members[Whereabouts.GATED] > 0
        if isinstance(self.group, CompositePodGroup):
            return 0
        return max(_quorum(self.group) - self.num_pods, 0) if is_gated else 0

    @property
    def next_try(self) -> float | None:
        """When the first member may be tried again: it brings all others."""
        queue = self.view.queue.sub_queues
        if self.members[Whereabouts.ACTIVE]:
            return None
        times = [queue.next_try(member) for member in self.queued]
        return min((time for time in times if time is not None), default=None)

    @property
    def woken_by(self) -> dict[str, tuple[str, ...]]:
        """What wakes the members that wait for changes; those in backoff wait for the clock."""
        plugins: dict[str, set[str]] = {}
        queue = self.view.queue.sub_queues
        for member in self.queued:
            gate, place = {member.gating_plugin} - {""}, queue.place_of(member.key)
            if place is SubQueue.INCOMPLETE:
                gate.add(GANG_SCHEDULING)  # which would gate it if it were asked
            if gate or place is SubQueue.UNSCHEDULABLE:
                name, entity = member.pod.spec.scheduler_name, queue.entity_of(member)
                plugins.setdefault(name, set()).update(gate, rejectors_of(entity))
        wakers: dict[str, tuple[str, ...]] = {}
        for name, waited_for in plugins.items():
            profile = self.view.profiles.get(name)
            wakers |= woken_by(profile, waited_for) if profile is not None else {}
        return wakers


def _explanation(
    looked: _Looked,
    trial: GroupTrial | None,
    evaluation: Evaluation | None,
    limit: int | None,
    notes: Sequence[str],
) -> PodGroupExplanation:
    group, nodes = looked.group, looked.view.cache.table
    best = trial.best if trial else None
    key, until = _topology_key(group), looked.next_try
    lacking = [member for member in best.members if not member.host] if best else []
    shortage = None
    if best is not None and lacking and evaluation is not None and not best.can_start:
        missing = _quorum(group) - len(looked.scheduled) - len(best.fitting)
        where = f"{key}={best.placement.name}" if best.placement.rows is not None else ""
        pods = [member.queued.pod_info for member in lacking][: max(missing, 1)]
        shortage = shortage_of(pods, evaluation, nodes, where=where)
    if evaluation is not None:
        evaluation = evaluation.model_copy(update={"nodes": evaluation.nodes[:limit]})
    is_error = best is not None and best.status.result is Result.ERROR
    return PodGroupExplanation(
        kind=looked.key.ENTITY_TYPE,
        groups=tuple(_groups_below(looked, best)),
        pod_group=str(looked.key),
        exists=group is not None,
        policy=policy_of(group),
        min_count=None if group is None else group.min_count,
        topology_key=key,
        status=status_of(group),
        num_pods=looked.num_pods,
        members=dict(looked.members),
        num_uncreated=looked.num_uncreated,
        num_tried=len(best.members) if best else 0,
        num_fit=len(best.fitting) if best else 0,
        can_start=best.can_start if best else False,
        error=best.status.message if best is not None and is_error else "",
        blocked=tuple(_blocked(lacking)),
        obstacle=trial.obstacle.queued.key if trial and trial.obstacle else "",
        evaluation=evaluation,
        placements=verdicts(trial) if trial is not None and key else (),
        choice=choice_of(trial, key) if trial is not None and key else "",
        shortage=shortage,
        attempts=max((member.attempts for member in looked.queued), default=0),
        next_try=None if until is None else rfc3339(until),
        woken_by=looked.woken_by,
        leaving=leaving_pods(looked.queued, looked.view),
        notes=(*notes, *_why_nowhere(trial, key, nodes)),
    )


def _groups_below(looked: _Looked, tried: Tried | None) -> Iterator[GroupBelow]:
    """Yield a CompositePodGroup and the groups below it, with what they came to in a trial."""
    if not isinstance(looked.group, CompositePodGroup):
        return
    pods, hierarchy = looked.pod_groups, looked.pod_groups.hierarchy
    came_to: dict[GroupKey | None, GroupStatus] = {}
    if tried is not None:
        for member in tried.members:
            own = status_below(tried.status, member.of_child)
            came_to[group_of(member.queued.pod)] = own
    depths: dict[GroupKey | None, int] = {}
    for group in hierarchy.tree(looked.group):
        depths[group.key] = depth = depths.get(group.parent_key, -1) + 1
        leaves = [*hierarchy.leaves(group)]
        # A group that does not come to enough leaves nothing to those below it.
        starting = [came_to[leaf].result is Result.SCHEDULED for leaf in leaves if leaf in came_to]
        status = came_to.get(group.key)
        if group is looked.group and tried is not None:
            status = tried.status
        yield GroupBelow(
            kind=group.key.ENTITY_TYPE,
            name=str(group.key),
            depth=depth,
            policy=policy_of(group),
            min_count=group.min_count,
            topology_key=_topology_key(group),
            num_pods=sum(map(pods.all_pods_count, leaves)),
            num_scheduled=sum(map(pods.scheduled_pods_count, leaves)),
            is_ready=hierarchy.has_enough(group, pods.all_pods_count),
            can_start=any(starting) if starting else None,
            message="" if status is None else status.message,
        )


def _why_nowhere(trial: GroupTrial | None, key: str, nodes: NodeTable) -> Iterator[str]:
    if trial is None or not trial.message:
        return
    is_there = any(node is not None and key in node.labels for node in nodes.nodes)
    yield trial.message if is_there or not key else f"{trial.message}: {NO_LABEL.format(key)}"


def _blocked(members: Sequence[Member]) -> Iterator[Blocked]:
    alike: dict[str, list[Member]] = {}
    for member in members:
        if member.outcome is not None and not isinstance(member.outcome, Placed):
            alike.setdefault(member.outcome.message, []).append(member)
    for message, those in alike.items():
        diagnosis = those[0].outcome.found.diagnosis if those[0].outcome else None
        assert diagnosis is not None
        yield Blocked(
            pods=tuple(member.queued.key for member in those),
            message=message,
            plugins=tuple(sorted(diagnosis.unschedulable_plugins | diagnosis.pending_plugins)),
        )


def status_of(group: PodGroup | None) -> PodGroupStatus | None:
    """Return the condition of *group* that says whether it is scheduled."""
    condition = None if group is None else group.scheduled_condition
    if condition is None:
        return None
    return PodGroupStatus(
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=condition.last_transition_time,
    )


def policy_of(group: PodGroup | None) -> str:
    """Return ``gang`` or ``basic``; empty without the object."""
    if group is None:
        return ""
    return "basic" if group.min_count is None else "gang"


def _quorum(group: PodGroup | None) -> int:
    """Return how many pods must have nodes; of a basic group the first may go alone."""
    return 1 if group is None or group.min_count is None else group.min_count


def _topology_key(group: PodGroup | None) -> str:
    constraints = group.spec.scheduling_constraints if group is not None else None
    return constraints.topology[0].key if constraints and constraints.topology else ""


def _as_if_queued(pod: PodInfo) -> QueuedPodInfo:
    return QueuedPodInfo(PodInfo(unplaced(pod.pod)), timestamp=0.0)
