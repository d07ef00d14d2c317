"""The trial of a pod group as an entity: PlacementFeasible plugins say when it ends (1.37 N8.3).

Decision (2026-11): what pods of the group are nominated to does not count against the others. In
kube-scheduler it does, so that a group that spreads, and has had pods evicted, can block itself: on
each node filters see the pods nominated there, and not those nominated elsewhere.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import ClassVar

from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.placement import EVERYWHERE, Placement, PlacementProgress
from berth.scheduler.framework.status import Code
from berth.scheduler.outcome import KEEP, Failed, Nomination, Outcome
from berth.scheduler.pod_group.trial import (
    UNSCHEDULABLE,
    GroupStatus,
    Member,
    PodGroupTrial,
    Result,
)
from berth.scheduler.profile.profile import Profile
from berth.scheduler.scheduling_steps import SchedulingSteps

SCHEDULED = GroupStatus(Result.SCHEDULED, "")


class FeasibleTrial(PodGroupTrial):
    """Places pods of one group, in one cycle; no pod preempts, and Permit is not asked."""

    asks_permit: ClassVar[bool] = False
    without_preemption: ClassVar[Nomination] = KEEP

    def __init__(
        self,
        steps: SchedulingSteps,
        group: PodGroup,
        *,
        num_scheduled: int,
        state_above: CycleState | None = None,
    ) -> None:
        """*num_scheduled* pods of *group* have nodes already; of a group of groups, groups do.

        *state_above* is the placement's of the group that *group* is a part of.
        """
        super().__init__(steps)
        self._group = group
        self.num_scheduled = num_scheduled
        self._state_above = state_above

    def run(
        self,
        members: Sequence[Member],
        nominations: ExitStack,
        placement: Placement = EVERYWHERE,
        *,
        may_preempt: bool = False,
    ) -> GroupStatus:
        """Place *members* until too few can get nodes; those after that are not tried.

        SCHEDULED says that enough have nodes, which may be none of *members*.
        """
        self.begin(members, nominations)
        on_trial = frozenset(member.queued.uid for member in members)

        def attempt(index: int) -> bool | GroupStatus:
            member, following = members[index], members[index + 1 : index + 2]
            outcome = self._attempt(
                member,
                nominations,
                on_trial,
                placement,
                may_preempt=False,
                is_one_of_many=any(other.template is member.template for other in following),
            )
            if isinstance(outcome, Failed):
                return failed_trial(outcome)
            return bool(member.host)

        return self.try_parts(members[0].profile, len(members), attempt)

    def begin(self, members: Sequence[Member], nominations: ExitStack) -> None:
        """Begin with a new state of the placement, and nominate *members* to no node."""
        self._refusal, self.placement_state = None, CycleState()
        self.placement_state.placement = self._state_above
        self.suspend(members, nominations)

    def try_parts(
        self, profile: Profile, number: int, attempt: Callable[[int], bool | GroupStatus]
    ) -> GroupStatus:
        """Try a *number* of pods, or groups, until too few of them can be placed.

        *attempt* says of each whether it has been placed; or returns the error that ends the trial.
        """
        progress = PlacementProgress(number, self.num_scheduled)
        status = profile.run_placement_feasible(self._group, progress)
        for index in range(number):
            if status is not None and status.code is not Code.WAIT:
                break
            is_placed = attempt(index)
            if isinstance(is_placed, GroupStatus):
                return is_placed
            remaining, scheduled = progress
            progress = PlacementProgress(remaining - 1, scheduled + is_placed)
            status = profile.run_placement_feasible(self._group, progress)
        if status is None:
            return SCHEDULED
        if status.code is Code.WAIT or status.is_rejected:
            text = ", ".join((UNSCHEDULABLE, *status.reasons))
            return GroupStatus(Result.UNSCHEDULABLE, text, frozenset({status.plugin}))
        text = f"failed to evaluate placement feasibility: {status.message}"
        return GroupStatus(Result.ERROR, text)

    def try_one(
        self,
        member: Member,
        nominations: ExitStack,
        on_trial: frozenset[str],
        placement: Placement,
    ) -> Outcome:
        """Put *member*, which is nowhere, on the best node of *placement*, if one takes it."""
        self._refusal = None  # it may be of other nodes
        return self._attempt(
            member, nominations, on_trial, placement, may_preempt=False, is_one_of_many=False
        )

    def is_enough(self, members: Sequence[Member], progress: PlacementProgress) -> bool:
        """Whether the group of *members* may start with those that have nodes."""
        return members[0].profile.run_placement_feasible(self._group, progress) is None

    def may_be_enough(self, members: Sequence[Member], progress: PlacementProgress) -> bool:
        """Whether it may start, or might if those that remain got nodes."""
        status = members[0].profile.run_placement_feasible(self._group, progress)
        return status is None or status.code is Code.WAIT

    def num_needed(self, members: Sequence[Member]) -> int | None:
        """Return of how many of *members* it needs nodes; None: more than there are."""
        for needed in range(len(members) + 1):
            if self.is_enough(members, PlacementProgress(0, self.num_scheduled + needed)):
                return needed
        return None

    def suspend(self, members: Sequence[Member], nominations: ExitStack) -> None:
        """Have *members* be nominated to no node; *nominations* restores that."""
        for member in members:
            nominations.callback(self._steps.queue.nominator.suspend(member.queued.uid))


def failed_trial(outcome: Failed) -> GroupStatus:
    """Return what a trial comes to in which the attempt of one pod ended in an error."""
    text = f"failed to schedule other pod from a pod group: {outcome.message}"
    return GroupStatus(Result.ERROR, text)
