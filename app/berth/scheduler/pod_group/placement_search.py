"""The search for the part of the cluster that a group goes to as a whole (spec G10.2, N10)."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from msgspec.structs import replace

from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.placement import (
    EVERYWHERE,
    Assignment,
    Placement,
    PodGroupPlacement,
)
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.metrics.scheduler_metrics import PlacementMetrics
from berth.scheduler.outcome import Unschedulable
from berth.scheduler.pod_group.trial import GroupStatus, Member, PodGroupTrial, Result, undo
from berth.scheduler.profile.placements import run_placement_generate, run_placement_scores
from berth.scheduler.scheduling_steps import SchedulingSteps


class PlacementSearch:
    """Tries groups in every placement that they may have; between two searches it keeps nothing."""

    def __init__(self, steps: SchedulingSteps, metrics: PlacementMetrics) -> None:
        self._steps = steps
        self._metrics = metrics

    def run(
        self,
        members: Sequence[Member],
        group: PodGroup,
        scheduled: Sequence[PodInfo],
        trial: PodGroupTrial,
        nominations: ExitStack,
        parent: Placement = EVERYWHERE,
    ) -> tuple[Sequence[Member], GroupStatus]:
        """Try *group*, of which the pods *scheduled* have nodes, in the best placement in *parent*.

        Return the members of the *trial* that counts; they hold what they got there.
        """
        profile, nodes = members[0].profile, self._steps.cache.table
        placements = run_placement_generate(profile, group, scheduled, nodes, parent)
        if isinstance(placements, Status):
            return members, _not_generated(placements)
        self._metrics.generated(profile.name, len(placements))
        if len(placements) == 1:
            run = partial(trial.run, members, nominations, placements[0])
            status = self._measured(run, profile.name)
            if status.result is Result.UNSCHEDULABLE:
                status = _no_placement(1, status)
            return members, status
        first: tuple[Sequence[Member], GroupStatus] | None = None
        rejectors: set[str] = set()
        feasible: list[tuple[PodGroupPlacement, Sequence[Member], GroupStatus]] = []
        for placement in placements:
            tried: Sequence[Member] = [
                Member(member.queued, member.profile, member.started, member.answer)
                for member in members
            ]
            with ExitStack() as suspended:
                run = partial(trial.run, tried, suspended, placement)
                status = self._measured(run, profile.name)
                undo(tried)
            if status.result is Result.ERROR:
                return tried, status
            first = first or (tried, status)
            rejectors |= status.plugins.union(*map(_rejectors_of, tried))
            if status.result is not Result.UNSCHEDULABLE:
                proposed = tuple(
                    Assignment(member.queued.pod_info, member.host)
                    for member in tried
                    if member.host
                )
                candidate = PodGroupPlacement(
                    placement, proposed, len(scheduled), trial.placement_state
                )
                feasible.append((candidate, tried, status))
        if not feasible:
            assert first is not None
            tried, status = first
            status = replace(status, plugins=frozenset(rejectors))
            return tried, _no_placement(len(placements), status)
        index = 0
        if len(feasible) > 1:
            totals = run_placement_scores(
                profile, [candidate for candidate, _, _ in feasible], nodes
            )
            if isinstance(totals, Status):
                return members, GroupStatus(Result.ERROR, totals.message)
            index = self._steps.select_best(totals)
        _, chosen, status = feasible[index]
        trial.place_again(chosen, nominations)
        return chosen, status

    def _measured(self, run: Callable[[], GroupStatus], profile: str) -> GroupStatus:
        """Count a trial in one placement; errors are no evaluations."""
        started = self._steps.clock.monotonic()
        status = run()
        if status.result is not Result.ERROR:
            seconds = self._steps.clock.monotonic() - started
            is_feasible = status.result is not Result.UNSCHEDULABLE
            self._metrics.evaluated(profile, is_feasible=is_feasible, seconds=seconds)
        return status


def _rejectors_of(member: Member) -> set[str]:
    outcome = member.outcome
    return outcome.diagnosis.unschedulable_plugins if isinstance(outcome, Unschedulable) else set()


def _not_generated(status: Status) -> GroupStatus:
    if not status.is_rejected:
        return GroupStatus(Result.ERROR, status.message)
    return GroupStatus(
        Result.UNSCHEDULABLE,
        status.message,
        frozenset({status.plugin}),
        may_be_resolved=status.code is Code.UNSCHEDULABLE,
    )


def _no_placement(number: int, first: GroupStatus) -> GroupStatus:
    """Return what the search in *number* placements came to, of which the *first* says why."""
    what = f"0/{number} placements are available, first placement status: "
    return replace(first, message=what + first.message)
