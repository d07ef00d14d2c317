"""The search for the part of the cluster that a group goes to as a whole (spec G10.2, N10).

All placements are tried, each in one step that ends with the table as it was before. Between two of
them others may have a turn. What they change is part of the world from then on:

- Nodes that come or go are part of the placements that are still to be tried, or not any more.
- If the cluster has changed since the chosen placement was tried, it is tried again, in the step in
  which its pods are kept there. If they do not fit any more, the next best one is.

Who lets others have turns must begin anew if the group or its pods have changed. If nothing
changes, that comes to the same as a search in one step.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from berth.kube.objects.pod_group import PodGroup
from berth.runtime.tasks import Steps
from berth.scheduler.framework.node_table import NodeTable
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
from berth.scheduler.pod_group.trial import (
    UNSCHEDULABLE,
    GroupStatus,
    Member,
    PodGroupTrial,
    Result,
    anew,
    undo,
)
from berth.scheduler.profile.placements import run_placement_generate, run_placement_scores
from berth.scheduler.scheduling_steps import SchedulingSteps

PODS_PER_TURN: Final = 128
"""Pods that are tried before others have a turn: 10 to 50 ms. Time would not replay."""


class _Tried(msgspec.Struct):
    """A placement in which enough pods got nodes."""

    candidate: PodGroupPlacement
    members: Sequence[Member]
    status: GroupStatus
    changes: int
    """How often the cluster had changed by then."""


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
    ) -> Steps[tuple[Sequence[Member], GroupStatus]]:
        """Try *group*, of which the pods *scheduled* have nodes, in the best placement in *parent*.

        Return the members of the *trial* that counts; they hold what they got there. Between steps
        nothing is held.
        """
        profile, nodes = members[0].profile, self._steps.cache.table
        generate = partial(run_placement_generate, profile, group, scheduled, nodes, parent)
        placements = generate()
        if isinstance(placements, Status):
            return members, _not_generated(placements)
        self._metrics.generated(profile.name, len(placements))
        if len(placements) == 1:
            run = partial(trial.run, members, nominations, placements[0])
            status = self._measured(run, profile.name)
            if status.result is Result.UNSCHEDULABLE:
                status = _no_placement(1, status)
            return members, status
        world = _World(nodes, placements, generate)
        first: tuple[Sequence[Member], GroupStatus] | None = None
        rejectors: set[str] = set()
        feasible: list[_Tried] = []
        num_tried = 0
        for name in [placement.name for placement in placements]:
            if num_tried >= PODS_PER_TURN:
                num_tried = 0
                yield from world.turn()
            placement = world.placements.get(name)
            if placement is None:
                continue
            tried: Sequence[Member] = anew(members)
            with ExitStack() as suspended:
                run = partial(trial.run, tried, suspended, placement)
                status = self._measured(run, profile.name)
                undo(tried)
            num_tried += sum(member.outcome is not None for member in tried)
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
                feasible.append(_Tried(candidate, tried, status, world.changes))
        assert first is not None  # the first placement is tried before any turn
        while feasible := world.known(feasible):
            index = 0
            if len(feasible) > 1:
                candidates = [each.candidate for each in feasible]
                totals = run_placement_scores(profile, candidates, nodes)
                if isinstance(totals, Status):
                    return members, GroupStatus(Result.ERROR, totals.message)
                index = self._steps.select_best(totals)
            found = self._keep(feasible.pop(index), trial, nominations, world)
            if found is not None:
                return found
        tried, status = first
        status = replace(status, plugins=frozenset(rejectors))
        if status.result is not Result.UNSCHEDULABLE:  # it was not, before the cluster changed
            status = GroupStatus(Result.UNSCHEDULABLE, UNSCHEDULABLE, status.plugins)
        return tried, _no_placement(len(placements), status)

    def _keep(
        self, chosen: _Tried, trial: PodGroupTrial, nominations: ExitStack, world: "_World"
    ) -> tuple[Sequence[Member], GroupStatus] | None:
        """Put the members where they were tried, or may be put by now; None if they do not fit."""
        if chosen.changes == world.changes:
            with ExitStack() as suspended:
                if trial.place_if_unchanged(chosen.members, suspended) is None:
                    nominations.push(suspended.pop_all())
                    return chosen.members, chosen.status
                undo(chosen.members)
        tried = anew(chosen.members)
        with ExitStack() as suspended:
            status = trial.run(tried, suspended, world.placements[chosen.candidate.placement.name])
            if status.result is not Result.UNSCHEDULABLE:
                nominations.push(suspended.pop_all())
                return tried, status
            undo(tried)
        return None

    def _measured(self, run: Callable[[], GroupStatus], profile: str) -> GroupStatus:
        """Count a trial in one placement; errors are no evaluations."""
        started = self._steps.clock.monotonic()
        status = run()
        if status.result is not Result.ERROR:
            seconds = self._steps.clock.monotonic() - started
            is_feasible = status.result is not Result.UNSCHEDULABLE
            self._metrics.evaluated(profile, is_feasible=is_feasible, seconds=seconds)
        return status


class _World:
    """The nodes, and the placements that they make, while others have turns."""

    def __init__(
        self,
        nodes: NodeTable,
        placements: Sequence[Placement],
        generate: Callable[[], Sequence[Placement] | Status],
    ) -> None:
        self.placements = {placement.name: placement for placement in placements}
        self.changes = 0
        """How often the cluster has changed while others had their turn."""
        self._nodes = nodes
        self._generate = generate

    def turn(self) -> Steps[None]:
        """Let others have a turn, and see what they have changed."""
        generation = self._nodes.last_generation
        yield
        if self._nodes.last_generation == generation:
            return
        self.changes += 1
        placements = self._generate()
        known = () if isinstance(placements, Status) else placements
        self.placements = {placement.name: placement for placement in known}

    def known(self, tried: Sequence[_Tried]) -> list[_Tried]:
        """Return what was *tried*, without placements that are gone, and with the rows of now."""
        return [
            replace(
                each,
                candidate=replace(
                    each.candidate, placement=self.placements[each.candidate.placement.name]
                ),
            )
            for each in tried
            if each.candidate.placement.name in self.placements
        ]


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
