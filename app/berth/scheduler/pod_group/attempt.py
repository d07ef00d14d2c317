"""What PodGroupPostFilter plugins may ask about a group that does not fit (1.37 spec N9)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.interface import PodGroupAssignments
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import Placement
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.pod_group.feasible_trial import FeasibleTrial
from berth.scheduler.pod_group.trial import GroupStatus, Member, Result, anew, undo
from berth.scheduler.scheduling_steps import SchedulingSteps

TryGroup = Callable[[Sequence[Member], PodGroup, ExitStack], tuple[Sequence[Member], GroupStatus]]
"""Makes the trial of a group, in one step; returns the members that hold what they got."""


class GroupAttempt:
    """A ``PodGroupAttempt``: each question is a trial on the live table that is undone."""

    def __init__(
        self,
        steps: SchedulingSteps,
        try_group: TryGroup,
        members: Sequence[Member],
        group: PodGroup,
    ) -> None:
        self._steps = steps
        self._try_group = try_group
        self._members = members
        self._group = group
        self.pods: Sequence[PodInfo] = [member.queued.pod_info for member in members]

    @property
    def nodes(self) -> NodeTable:
        return self._steps.cache.table

    async def schedule_without(self, gone: Sequence[PodInfo]) -> PodGroupAssignments:
        """Try the whole group anew; extenders, if they have a say, are asked before."""
        extenders = self._steps.extender_round
        members = []
        for member in self._members:
            answer = member.answer
            if answer is not None:
                answer = await extenders.answer_for(member.profile, member.queued, gone=gone)
            members.append(Member(member.queued, member.profile, member.started, answer))
        self._members = members
        with self._steps.cache.without_all(gone), ExitStack() as nominations:
            tried, status = self._try_group(anew(members), self._group, nominations)
            undo(tried)
        hosts = {member.queued.uid: member.host for member in tried if member.host}
        match status.result:
            case Result.SCHEDULED:
                return PodGroupAssignments(None, hosts)
            case Result.ERROR:
                return PodGroupAssignments(Status.error(status.message), {})
            case _:
                return PodGroupAssignments(Status.unschedulable(status.message), {})

    def fits_without(self, gone: Sequence[PodInfo], hosts: Mapping[str, str]) -> bool:
        """Place the pods one after the other, each on its own node only."""
        nodes = self._steps.cache.table
        placed = [member for member in anew(self._members) if member.queued.uid in hosts]
        on_trial = frozenset(member.queued.uid for member in placed)
        trial = FeasibleTrial(self._steps, self._group, num_scheduled=0)
        with self._steps.cache.without_all(gone), ExitStack() as nominations:
            trial.suspend(self._members, nominations)
            try:
                for member in placed:
                    row = nodes.row_of.get(hosts[member.queued.uid])
                    if row is None:
                        return False
                    rows = np.zeros(nodes.size, bool)
                    rows[row] = True
                    if not trial.fits(member, nominations, on_trial, Placement("", rows)):
                        return False
            finally:
                undo(placed)
        return True
