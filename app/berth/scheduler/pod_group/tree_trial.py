"""The trial of a group with all groups below it: groups go by the rules of pods (1.37 spec N11).

::

    root      in each of its placements
      child     in each of its placements inside that of the root
        pods      on nodes inside that of the child

A group is tried in every placement that it may have, and its children in the one that it is tried
in. PlacementFeasible plugins count pods of a PodGroup and children of a CompositePodGroup; a child
that does not come to enough holds nothing.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from msgspec.structs import replace

from berth.kube.objects.pod_group import CompositePodGroup, PodGroup, group_of
from berth.runtime.tasks import Steps, at_once
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.placement import EVERYWHERE, Placement
from berth.scheduler.framework.pod_groups import PodGroups
from berth.scheduler.pod_group.feasible_trial import FeasibleTrial
from berth.scheduler.pod_group.placement_search import PlacementSearch
from berth.scheduler.pod_group.trial import (
    UNSCHEDULABLE,
    GroupStatus,
    Member,
    Result,
    undo,
)
from berth.scheduler.scheduling_steps import SchedulingSteps

CHILD_ERROR: Final = "composite pod group evaluation failed due to child error: "


class TreeTrials:
    """Tries groups; between two trials it keeps nothing."""

    def __init__(
        self, steps: SchedulingSteps, search: PlacementSearch | None, pod_groups: PodGroups
    ) -> None:
        """Without *search* the whole cluster is the only placement."""
        self._steps = steps
        self._search = search
        self._pod_groups = pod_groups

    def run(
        self, root: PodGroup, members: Sequence[Member], nominations: ExitStack
    ) -> Steps[tuple[Sequence[Member], GroupStatus]]:
        """Place *members*, which are of *root* or of groups below it.

        Return those that hold what they got; between steps, which end with placements of the root,
        nothing is held. A root that needs no more than it has is unschedulable if none of them gets
        a node.
        """
        members, status = yield from self._run(root, members, nominations)
        if status.result is Result.SCHEDULED and not any(member.host for member in members):
            status = GroupStatus(Result.UNSCHEDULABLE, UNSCHEDULABLE)
        return members, status

    def run_inside(
        self,
        group: PodGroup,
        members: Sequence[Member],
        nominations: ExitStack,
        parent: Placement,
        state_above: CycleState | None,
    ) -> tuple[Sequence[Member], GroupStatus]:
        """Do the same for a group that is part of another, in the placement *parent* of that.

        That is one step: between the groups of a tree others have no turn.
        """
        return at_once(self._run(group, members, nominations, parent, state_above))

    def _run(
        self,
        group: PodGroup,
        members: Sequence[Member],
        nominations: ExitStack,
        parent: Placement = EVERYWHERE,
        state_above: CycleState | None = None,
    ) -> Steps[tuple[Sequence[Member], GroupStatus]]:
        trial = self.trial_of(group, members, state_above)
        if self._search is None:
            return members, trial.run(members, nominations, parent)
        scheduled = self._pod_groups.scheduled(group)
        search = self._search.run(members, group, scheduled, trial, nominations, parent)
        return (yield from search)

    def trial_of(
        self, group: PodGroup, members: Sequence[Member], state_above: CycleState | None = None
    ) -> FeasibleTrial:
        """Make the trial of *group* in one placement."""
        if not isinstance(group, CompositePodGroup):
            number = self._pod_groups.scheduled_pods_count(group.key)
            return FeasibleTrial(self._steps, group, num_scheduled=number, state_above=state_above)
        hierarchy, parts, complete = self._pod_groups.hierarchy, [], 0
        by_leaf: dict[object, list[Member]] = {}
        for member in members:
            by_leaf.setdefault(group_of(member.queued.pod), []).append(member)
        for child in hierarchy.children(group.key):
            waiting = [
                member for leaf in hierarchy.leaves(child) for member in by_leaf.get(leaf, ())
            ]
            if waiting:
                parts.append((child, [member.queued.uid for member in waiting]))
            else:
                # Guess (1.37 spec N11): a child of which nobody waits counts by the pods it has.
                complete += hierarchy.has_enough(child, self._pod_groups.scheduled_pods_count)
        return CompositeTrial(
            self._steps,
            group,
            num_scheduled=complete,
            state_above=state_above,
            trials=self,
            parts=parts,
        )


class CompositeTrial(FeasibleTrial):
    """Places the groups that a CompositePodGroup is made of, in one cycle."""

    def __init__(
        self,
        steps: SchedulingSteps,
        group: CompositePodGroup,
        *,
        num_scheduled: int,
        state_above: CycleState | None,
        trials: TreeTrials,
        parts: Sequence[tuple[PodGroup, Sequence[str]]],
    ) -> None:
        """*parts* are the children that have waiting pods, each with the UIDs of these."""
        super().__init__(steps, group, num_scheduled=num_scheduled, state_above=state_above)
        self._trials = trials
        self._parts = parts

    def run(
        self,
        members: Sequence[Member],
        nominations: ExitStack,
        placement: Placement = EVERYWHERE,
        *,
        may_preempt: bool = False,
    ) -> GroupStatus:
        """Place the children until too few can be placed; those after that are not tried.

        SCHEDULED says that enough children are placed, in which perhaps none of *members* is.
        """
        self.begin(members, nominations)
        by_uid = {member.queued.uid: member for member in members}
        rejectors: set[str] = set()

        def attempt(index: int) -> bool | GroupStatus:
            child, uids = self._parts[index]
            own = [by_uid[uid] for uid in uids]
            tried, status = self._trials.run_inside(
                child, own, nominations, placement, self.placement_state
            )
            for member, other in zip(own, tried, strict=True):
                if other is not member:
                    member.take_over(other)
                member.of_child = status_below(status, member.of_child)
            if status.result is Result.ERROR:
                return GroupStatus(Result.ERROR, CHILD_ERROR + status.message)
            if status.result is Result.SCHEDULED:
                return True
            rejectors.update(status.plugins)
            undo(own)
            for member in own:
                member.host = ""
            return False

        status = self.try_parts(members[0].profile, len(self._parts), attempt)
        return replace(status, plugins=status.plugins | rejectors)


def status_below(status: GroupStatus, own: GroupStatus | None) -> GroupStatus:
    """Return what a group comes to that came to *own* alone, and is part of one with *status*.

    None: it was not tried. If the whole does not come to enough, neither does any part of it.
    """
    if own is None:
        return status
    match status.result, own.result:
        case Result.SCHEDULED, _:
            return own
        case Result.ERROR, Result.ERROR:
            return own
        case Result.ERROR, _:
            return status
        case _, Result.SCHEDULED:
            return status
        case _:
            return own
