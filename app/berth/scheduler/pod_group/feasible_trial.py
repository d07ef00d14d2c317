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
from berth.scheduler.outcome import KEEP, Failed, Nomination
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
        self._num_scheduled = num_scheduled
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
        self._refusal = None
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
                text = f"failed to schedule other pod from a pod group: {outcome.message}"
                return GroupStatus(Result.ERROR, text)
            return bool(member.host)

        return self.try_parts(members[0].profile, len(members), attempt)

    def begin(self, members: Sequence[Member], nominations: ExitStack) -> None:
        """Begin with a new state of the placement, and nominate *members* to no node."""
        self.placement_state = CycleState()
        self.placement_state.placement = self._state_above
        self.suspend(members, nominations)

    def try_parts(
        self, profile: Profile, number: int, attempt: Callable[[int], bool | GroupStatus]
    ) -> GroupStatus:
        """Try a *number* of pods, or groups, until too few of them can be placed.

        *attempt* says of each whether it has been placed; or returns the error that ends the trial.
        """
        progress = PlacementProgress(number, self._num_scheduled)
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

    def suspend(self, members: Sequence[Member], nominations: ExitStack) -> None:
        """Have *members* be nominated to no node; *nominations* restores that."""
        for member in members:
            nominations.callback(self._steps.queue.nominator.suspend(member.queued.uid))
