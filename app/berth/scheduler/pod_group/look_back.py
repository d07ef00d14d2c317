"""A second search in a placement where a group found no place by greed (docs/groups.md).

A trial puts each pod on the node that is best for it and never goes back. Two ways lead on from a
pod that found no node then, until one finds a place or the attempts are used up:

1. Pods like it go first, and the trial is made again, as long as that makes another order.
2. Depth first: the pod before it gets its next best node, and so on back to the first pod. This is
   complete: with enough attempts it finds a place if filters let the pods, in this order, have one.
   Pods of one template can stand for each other: nodes in vain for one are not tried for the next.

kube-scheduler has no such search. Groups of groups have none here, nor have the groups in them.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import msgspec
import numpy as np

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import Placement, PlacementProgress
from berth.scheduler.framework.verdict import Mask
from berth.scheduler.outcome import Failed
from berth.scheduler.pod_group.feasible_trial import SCHEDULED, FeasibleTrial, failed_trial
from berth.scheduler.pod_group.trial import GroupStatus, Member, Result, anew, undo

AT_ONCE: Final = 200
"""Attempts for pods in one placement, and one for each of the pods. Nothing interrupts them: 50 to
150 ms for 32 to 128 pods."""
PLACEMENTS: Final = 10
"""In all placements together a group has so many times the attempts of one: more placements find
more than more attempts in each."""


def attempts_for(num_members: int) -> int:
    """Return how many attempts a group of so many pods has in one placement."""
    return AT_ONCE + num_members


class LookBack(msgspec.Struct):
    """The search in one placement after the other; made for one cycle of one group."""

    trial: FeasibleTrial
    nodes: NodeTable
    attempts: int
    """How many pods may still be tried."""

    def run(
        self,
        members: Sequence[Member],
        nominations: ExitStack,
        placement: Placement,
        *,
        attempts: int,
    ) -> tuple[Sequence[Member], GroupStatus] | None:
        """Look for a place in *placement*, by at most so many *attempts*, in one step.

        Return the members that hold it, with *nominations* to be restored; or the error that ended
        it; None: no place was found, and all is as before.
        """
        if not self._may_hold(members, placement):
            return None
        spared = max(self.attempts - attempts, 0)
        self.attempts -= spared
        try:
            order, found = self._failed_first(members, nominations, placement)
            return found or self._depth_first(order, nominations, placement)
        finally:
            self.attempts += spared

    def _may_hold(self, members: Sequence[Member], placement: Placement) -> bool:
        """Whether there is room for as many members as are needed, if pods could be cut up.

        Where NodeResourcesFit is off, pods may be more than that; such groups are not looked at.
        """
        needed = self.trial.num_needed(members)
        if needed is None:
            return False
        rows, nodes = placement.rows_of(self.nodes), self.nodes
        requests = [member.template.incoming_requested for member in members]
        free = np.maximum(nodes.allocatable - nodes.requested, 0)[:, rows].sum(axis=1)
        return all(
            sum(sorted(each.amount(name) for each in requests)[:needed]) <= free[index]
            for name, index in nodes.resources.items()
        )

    def _failed_first(
        self, members: Sequence[Member], nominations: ExitStack, placement: Placement
    ) -> tuple[Sequence[Member], tuple[Sequence[Member], GroupStatus] | None]:
        """Return the last order, and what came of it if the search is over."""
        order, orders = anew(members), set[tuple[str, ...]]()
        while self.attempts > 0:
            uids = tuple(member.queued.uid for member in order)
            if uids in orders:
                break
            orders.add(uids)
            with ExitStack() as suspended:
                status = self.trial.run(order, suspended, placement)
                self.attempts -= sum(member.outcome is not None for member in order)
                if status.result is Result.ERROR:
                    undo(order)
                    return order, (order, status)
                if status.result is Result.SCHEDULED and any(member.host for member in order):
                    nominations.push(suspended.pop_all())
                    return order, (order, status)
                undo(order)
            failed = {member.template for member in order if member.outcome and not member.host}
            order = anew(sorted(order, key=lambda member: member.template not in failed))
        return order, None

    def _depth_first(
        self, members: Sequence[Member], nominations: ExitStack, placement: Placement
    ) -> tuple[Sequence[Member], GroupStatus] | None:
        trial, order, depth = self.trial, anew(members), 0
        on_trial = frozenset(member.queued.uid for member in order)
        with ExitStack() as suspended:
            trial.begin(order, suspended)
            progress = [PlacementProgress(len(order), trial.num_scheduled)]
            rows = [placement.rows_of(self.nodes).copy()]
            """By pod: where it was not tried, with the pods before it where they are."""
            is_left_out = [False]
            while depth >= 0 and self.attempts > 0:
                member = order[depth]
                take_off(member)
                if rows[depth].any():
                    self.attempts -= 1
                    here = Placement(placement.name, rows[depth].copy())
                    outcome = trial.try_one(member, suspended, on_trial, here)
                    if isinstance(outcome, Failed):
                        undo(order)
                        return order, failed_trial(outcome)
                    rows[depth] &= bool(member.host)
                if member.host:
                    rows[depth][self.nodes.row_of[member.host]] = False
                elif is_left_out[depth]:
                    for of_depth in (progress, rows, is_left_out):
                        of_depth.pop()
                    depth -= 1
                    continue
                else:
                    is_left_out[depth] = True
                remaining, scheduled = progress[depth]
                coming = PlacementProgress(remaining - 1, scheduled + bool(member.host))
                if depth + 1 < len(order):
                    if trial.may_be_enough(order, coming):
                        progress.append(coming)
                        rows.append(self._rows_after(order, rows, placement))
                        is_left_out.append(False)
                        depth += 1
                elif trial.is_enough(order, coming) and any(each.host for each in order):
                    status = self._try_left_out(order, suspended, on_trial, placement)
                    if status is SCHEDULED:
                        nominations.push(suspended.pop_all())
                    return order, status
            undo(order)
        return None

    def _rows_after(
        self, order: Sequence[Member], rows: Sequence[Mask], placement: Placement
    ) -> Mask:
        """Return where the next pod is to be tried, once those before it are where they are."""
        last, member = order[len(rows) - 1], order[len(rows)]
        if member.template is not last.template:
            return placement.rows_of(self.nodes).copy()
        left = rows[-1].copy()
        if last.host:
            left[self.nodes.row_of[last.host]] = True
        return left

    def _try_left_out(
        self,
        order: Sequence[Member],
        suspended: ExitStack,
        on_trial: frozenset[str],
        placement: Placement,
    ) -> GroupStatus:
        """Have the pods that were left out fail for what rejects them now, or get a node."""
        for member in order:
            if not member.host:
                take_off(member)
                outcome = self.trial.try_one(member, suspended, on_trial, placement)
                if isinstance(outcome, Failed):
                    undo(order)
                    return failed_trial(outcome)
        return SCHEDULED


def take_off(member: Member) -> None:
    """Take *member* off its node, if it has one, to be tried elsewhere."""
    member.undo.close()
    member.assumed, member.host, member.permit = None, "", ""
