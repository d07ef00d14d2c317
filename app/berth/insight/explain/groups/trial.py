"""A trial of a pod group that leaves nothing behind: what the next scheduling cycle would find.

It is one synchronous step on the live table, as the cycle's own (:mod:`berth.scheduler.
pod_group_trial`), and undone before anything else runs. No pods are evicted for it, nobody who
waits on Permit is let go, and neither random sources nor the rotation over the nodes nor metrics
change.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from berth.insight.explain.evaluation import LOOKS, evaluate_in_steps
from berth.insight.explain.explanation import Evaluation
from berth.kube.objects.pod_group import PodGroup
from berth.kube.objects.resources import CPU, MEMORY
from berth.runtime.tasks import Steps, at_once
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.framework.placement import EVERYWHERE, Assignment, Placement, PodGroupPlacement
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.outcome import Unschedulable
from berth.scheduler.pod_group.trial import GroupStatus, Member, PodGroupTrial, Result, undo
from berth.scheduler.profile.placements import (
    PlacementScores,
    run_placement_generate,
    score_placements,
)
from berth.scheduler.profile.profile import Profile

WITH_THE_OTHERS: Final = "evaluated beside the members that get nodes"


@dataclass(frozen=True, slots=True)
class Tried:
    """What one placement comes to."""

    placement: Placement
    members: Sequence[Member]
    """All of them are off their nodes again."""
    status: GroupStatus
    num_nodes: int
    free: dict[str, int]
    """By resource that members request, what there was for them."""
    allocatable: dict[str, int]

    @property
    def fitting(self) -> Sequence[Member]:
        return [member for member in self.members if member.host]

    @property
    def can_start(self) -> bool:
        return self.status.result is Result.SCHEDULED


@dataclass(frozen=True, slots=True)
class GroupTrial:
    """What all placements come to."""

    tried: Sequence[Tried]
    """In the order of the placements; none if the group may go nowhere."""
    best: Tried | None = None
    """Where the group would go; if it cannot start, where most members fit."""
    scores: PlacementScores | None = None
    """Of the placements where it can start, in their order, if there are several."""
    preferences: Mapping[str, str] = field(default_factory=dict)
    """By plugin that scores placements, which of them it prefers."""
    message: str = ""
    """Why there is no placement, or why they cannot be scored."""
    obstacle: Member | None = None
    """The first member that gets no node in the best placement."""
    evaluating: Steps[Evaluation] | None = None
    """Ends with all that stands between the obstacle and each node of that placement."""


class GroupTrials:
    """Tries groups of a scheduler; to be used on its event loop, between two attempts."""

    def __init__(self, view: SchedulerView, metrics: SchedulerMetrics) -> None:
        """*metrics* are nobody's: trials are counted there."""
        self._view = view
        self._metrics = metrics

    def run(
        self,
        group: PodGroup,
        members: Sequence[QueuedPodInfo],
        *,
        is_part: bool = False,
        profile: Profile,
        scheduled: Sequence[PodInfo],
        taken_off: Iterable[PodInfo] = (),
        limit: int | None,
    ) -> GroupTrial:
        """Try *members*, of which all are of *profile*, beside those that are *scheduled*.

        The pods *taken_off* do not count meanwhile. The evaluation tells about *limit* nodes. If
        the group *is_part* of another, nobody is asked whether that has what it needs.
        """
        trial: PodGroupTrial = (
            self._view.new_tree_trials(self._metrics).trial_of(group, ())
            if is_part
            else self._view.new_trial(self._metrics)
        )
        with ExitStack() as undone:
            for pod in taken_off:
                undone.enter_context(trial.without(pod.uid))
            return self._run(trial, group, members, profile, scheduled, limit)

    def run_tree(
        self, root: PodGroup, members: Sequence[QueuedPodInfo], *, profile: Profile
    ) -> GroupTrial:
        """Try *members* of *root* and of all groups below it, in the best placements of each."""
        self._view.cache.refresh_order()
        now, nodes = self._view.clock.monotonic(), self._view.cache.table
        tried: Sequence[Member] = [Member(member, profile, now) for member in members]
        with ExitStack() as nominations:
            trials = self._view.new_tree_trials(self._metrics)
            tried, status = at_once(trials.run(root, tried, nominations))
            undo(tried)
        best = Tried(EVERYWHERE, tried, status, len(nodes), {}, {})
        refused = (member for member in tried if isinstance(member.outcome, Unschedulable))
        obstacle = next(refused, None)
        return GroupTrial([best], best, obstacle=obstacle)

    def _run(
        self,
        trial: PodGroupTrial,
        group: PodGroup,
        members: Sequence[QueuedPodInfo],
        profile: Profile,
        scheduled: Sequence[PodInfo],
        limit: int | None,
    ) -> GroupTrial:
        cache, groups = self._view.cache, self._view.groups
        cache.refresh_order()
        nodes = cache.table
        placements: Sequence[Placement] | Status = [EVERYWHERE]
        if groups is not None and groups.is_topology_aware:
            placements = run_placement_generate(profile, group, scheduled, nodes)
        if isinstance(placements, Status):
            return GroupTrial((), message=placements.message)
        tried = [self._try(trial, members, profile, placement) for placement in placements]
        able = [placed for placed in tried if placed.can_start]
        scores = None
        if len(able) > 1:
            found = score_placements(
                profile, [_proposal(placed, len(scheduled)) for placed in able], nodes
            )
            if isinstance(found, Status):
                return GroupTrial(tried, message=found.message)
            scores = found
            best = able[int(np.argmax(scores.totals))]
        else:
            best = able[0] if able else max(tried, key=lambda placed: len(placed.fitting))
        obstacle = next(
            (member for member in best.members if member.outcome and not member.host), None
        )
        evaluating = None
        if obstacle is not None:
            evaluating = self._begin_evaluation(trial, best, obstacle, limit)
        preferences = {score.NAME: score.PREFERRED_PLACEMENT for score in profile.placement_scores}
        return GroupTrial(tried, best, scores, preferences, "", obstacle, evaluating)

    def _try(
        self,
        trial: PodGroupTrial,
        members: Sequence[QueuedPodInfo],
        profile: Profile,
        placement: Placement,
    ) -> Tried:
        now, nodes = self._view.clock.monotonic(), self._view.cache.table
        rows, free, allocatable = placement.rows_of(nodes), {}, {}
        for name in _requested(members):
            there = nodes.resource_rows(name)
            allocatable[name] = sum(there[0][rows].tolist()) if there else 0
            free[name] = sum((there[0] - there[1])[rows].tolist()) if there else 0
        tried = [Member(member, profile, now) for member in members]
        with ExitStack() as nominations:
            status = trial.run(tried, nominations, placement, may_preempt=False)
            undo(tried)
        return Tried(placement, tried, status, placement.size(nodes), free, allocatable)

    def _begin_evaluation(
        self, trial: PodGroupTrial, best: Tried, obstacle: Member, limit: int | None
    ) -> Steps[Evaluation]:
        """Ask all plugins about the obstacle while the others are on their nodes.

        What they have said is told later, from a copy of the table.
        """
        with ExitStack() as nominations:
            trial.place_again(best.members, nominations)
            steps = evaluate_in_steps(
                obstacle.profile,
                obstacle.queued.pod_info,
                self._view.cache.table.detached(),
                nominated=self._view.queue.nominator.nominated_pods(),
                limit=limit,
                notes=[WITH_THE_OTHERS] if best.fitting else [],
                placement=best.placement,
                on_trial=frozenset(member.queued.uid for member in best.members),
            )
            for _ in range(LOOKS):
                next(steps)
            undo(best.members)
        return steps


def _proposal(tried: Tried, num_scheduled: int) -> PodGroupPlacement:
    proposed = tuple(Assignment(member.queued.pod_info, member.host) for member in tried.fitting)
    return PodGroupPlacement(tried.placement, proposed, num_scheduled)


def _requested(members: Sequence[QueuedPodInfo]) -> Sequence[str]:
    """Return the resources that *members* request."""
    wanted = [member.pod_info.template.incoming_requested for member in members]
    scalars = {name for requests in wanted for name in requests.scalars if requests.scalars[name]}
    native = [name for name in (CPU, MEMORY) if any(requests.amount(name) for requests in wanted)]
    return [*native, *sorted(scalars)]
