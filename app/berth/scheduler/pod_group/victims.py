"""Victims that make room for a pod group, found in few trials (spec G9.4).

The rule: all units of lower priority are taken away; if the group has room then, they are put back
one after the other as far as it keeps its room, those whose disruption budgets would break first,
then the most important first. kube-scheduler makes a trial of the whole group for each unit. Here
these find the same victims in fewer trials:

1. Where all pods of the group are alike, arithmetic over resources (:class:`Room`) says how many
   fit at best, and which units go back. It allows too much, never too little: if too few fit, no
   trial is needed; and if one trial places as many pods, without the units that it does not let
   back, that is the answer of the rule.
2. Otherwise a trial without all units tells how many pods fit, and units are put back by halves: a
   block that fits goes back as a whole, one that does not is split. That is the rule's answer as
   long as a group that fits beside some units also fits beside fewer.
3. Where that would take too many trials, the longest prefix goes back that can, found by bisection;
   then those that are not in the way of where the last trial put the group (later releases of
   kube-scheduler do only that); then the rest by halves until the trials are used up. Who was not
   reached is evicted: the victims are enough, but may not be the fewest.

Every trial must place as many pods as the first one did, not only ``minCount``. The last word is a
trial with exactly the victims gone. Between two trials the event loop runs and the cluster may
change; each trial leaves everything as it was.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import msgspec

from berth.scheduler.find_nodes_that_fit import evaluate_all_nodes
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.in_the_way import units_in_the_way
from berth.scheduler.framework.preemption.victim_units import VictimUnit, pods_of
from berth.scheduler.framework.status import Code
from berth.scheduler.pod_group.room import Room
from berth.scheduler.pod_group.trial import (
    UNSCHEDULABLE,
    GroupStatus,
    Member,
    PodGroupTrial,
    Result,
    undo,
)
from berth.scheduler.scheduling_steps import SchedulingSteps

MOST_DECISIONS: Final = 4_096
"""For so many pods nodes are looked for in one attempt, in as many trials as that makes."""
LEAST_TRIALS: Final = 20
"""So many trials are made however large the group: enough to bisect 100,000 units."""
UNITS_PER_TURN: Final = 1_000
"""After so many units of arithmetic other tasks have their turn."""


class Victims(msgspec.Struct, frozen=True):
    """Who has to go, and where the group goes then."""

    units: Sequence[VictimUnit]
    """Most important first."""
    hosts: Mapping[str, str]
    """The node of each pod that was placed, by UID."""


class _TrialFailedError(Exception):
    """A plugin failed in a trial: what it would have come to is not known."""

    def __init__(self, status: GroupStatus) -> None:
        super().__init__(status.message)
        self.status = status


class VictimSearch:
    """One search for the victims of one group."""

    def __init__(
        self,
        steps: SchedulingSteps,
        trial: PodGroupTrial,
        members: Sequence[Member],
        *,
        needed: int,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """Search for *members*, of which so many are *needed* at least, and one in any case."""
        self._needed = needed
        self._sleep = sleep
        self._steps = steps
        self._trial = trial
        self._members = members
        self._trials_left = max(MOST_DECISIONS // len(members), LEAST_TRIALS)
        self._gone: dict[VictimUnit, None] = {}
        """The units that are not put back, in the order in which they would be."""
        self._hosts: dict[str, str] = {}
        """Where the pods were placed by the last trial that fitted, which was without these."""
        self._is_proved = False
        """Whether nothing was tried or awaited after that trial."""

    async def run(
        self, violating: Sequence[VictimUnit], others: Sequence[VictimUnit]
    ) -> Victims | GroupStatus:
        """Find the victims among all units of lower priority; return why they are of no help.

        Both *violating* budgets and *others* have the most important first. What is returned is
        true until something is awaited. An error in any of the trials is returned, too.
        """
        try:
            return await self._run([*violating, *others])
        except _TrialFailedError as exc:
            return exc.status

    async def _run(self, units: Sequence[VictimUnit]) -> Victims | GroupStatus:
        room = self._room_without(units)
        if room is not None and room.total < self._needed:
            return GroupStatus(Result.UNSCHEDULABLE, UNSCHEDULABLE)
        if room is None or not await self._spare_by_arithmetic(units, room):
            status = await self._try(units)
            if status.result is not Result.SCHEDULED:
                return status
            if 2 * len(units) > self._trials_left:
                await self._spare_prefix(units)
                await self._spare_out_of_the_way()
            await self._spare_by_halves([*self._gone])
        if not self._is_proved:
            status = await self._try([*self._gone])
            if status.result is not Result.SCHEDULED:
                return status
        victims = sorted(self._gone, key=lambda unit: unit.importance)
        return Victims(victims, self._hosts)

    # Trials.

    async def _try(self, units: Sequence[VictimUnit]) -> GroupStatus:
        """Try the group without *units*; what is left is as it was before.

        Raises _TrialFailedError when it ends in an error.
        """
        self._is_proved = False
        await self._sleep(0.0)
        self._trials_left -= 1
        members = [
            Member(member.queued, member.profile, member.started, member.answer)
            for member in self._members
        ]
        nominator = self._steps.queue.nominator
        with self._steps.cache.without_all(pods_of(units)), ExitStack() as nominations:
            for member in members:  # what they were nominated to does not count here
                nominations.callback(nominator.suspend(member.queued.uid))
            status = self._trial.run(members, nominations, may_preempt=False)
            undo(members)
        if status.result is Result.ERROR:
            raise _TrialFailedError(status)
        if status.result is not Result.SCHEDULED:
            return status
        hosts = {member.queued.uid: member.host for member in members if member.host}
        if len(hosts) < len(self._hosts):
            return GroupStatus(Result.UNSCHEDULABLE, UNSCHEDULABLE)
        self._gone, self._hosts, self._is_proved = dict.fromkeys(units), hosts, True
        return status

    async def _fits_without(self, units: Sequence[VictimUnit]) -> bool:
        status = await self._try(units)
        return status.result is Result.SCHEDULED

    # By arithmetic.

    async def _spare_by_arithmetic(self, units: Sequence[VictimUnit], room: Room) -> bool:
        """Put back the units that *room* allows, if a trial agrees."""
        at_best = min(room.total, len(self._members))
        gone = []
        for number, unit in enumerate(units, 1):
            if not room.put_back(unit, keep=at_best):
                gone.append(unit)
            if not number % UNITS_PER_TURN:
                await self._sleep(0.0)
        return await self._fits_without(gone) and len(self._hosts) == at_best

    def _room_without(self, units: Sequence[VictimUnit]) -> Room | None:
        """Return the room for pods of the group once *units* are gone.

        None if the pods differ, or pods of *units* ask for more than can be added up.
        """
        first = self._members[0]
        kind = _kind_of(first.queued.pod_info)
        if kind is None or any(
            _kind_of(member.queued.pod_info) != kind for member in self._members
        ):
            return None
        if any(pod.template.is_large for pod in pods_of(units)):
            return None
        cycle = self._steps.begin_cycle(first.profile, first.queued)
        diagnosis = evaluate_all_nodes(cycle).diagnosis
        hopeless = diagnosis.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, cycle.nodes)
        usable = cycle.nodes.exists & ~hopeless
        return Room(cycle.nodes, cycle.pod.template, usable=usable, gone=units)

    # By trials.

    async def _spare_by_halves(
        self, block: Sequence[VictimUnit], *, fits: bool | None = None
    ) -> bool:
        """Put *block* back, as a whole or what can be of it; return whether all of it is back.

        *fits* False: as a whole it does not.
        """
        if fits is None:
            if self._trials_left <= 0:
                return False
            away = set(block)
            if await self._fits_without([unit for unit in self._gone if unit not in away]):
                return True
        if len(block) < 2:
            return False
        middle = len(block) // 2
        fits = await self._spare_by_halves(block[:middle])
        # If the first half is back, the second one is what does not fit.
        await self._spare_by_halves(block[middle:], fits=False if fits else None)
        return False

    async def _spare_prefix(self, units: Sequence[VictimUnit]) -> None:
        """Put back as many of the first *units* as can be without leaving one out."""
        back, too_many = 0, len(units)
        while too_many - back > 1 and self._trials_left > 0:
            middle = (back + too_many) // 2
            if await self._fits_without(units[middle:]):
                back = middle
            else:
                too_many = middle

    async def _spare_out_of_the_way(self) -> None:
        """Put back what leaves the group the nodes that it got in the last trial that fitted."""
        placed = [
            member.queued.pod_info.on_node(self._hosts[member.queued.uid])
            for member in self._members
            if member.queued.uid in self._hosts
        ]
        nodes = self._steps.cache.table
        if all(pod.node_name in nodes.row_of for pod in placed):
            await self._fits_without(units_in_the_way(nodes, [*self._gone], placed))


def _kind_of(pod: PodInfo) -> tuple[object, ...] | None:
    """Return what decides on which nodes *pod* has room; None if something of its own does."""
    spec = pod.pod.spec
    if spec.resource_claims or any(v != type(v)(name=v.name) for v in spec.volumes):
        return None
    requests = pod.template.incoming_requested
    return requests, spec.node_selector, spec.affinity, spec.tolerations
