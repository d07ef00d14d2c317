"""The trial of a pod group: its pods are placed on the live table, in turn (spec G5.4).

Each pod sees those that were placed before it. The one writer of the table places them and takes
them off again before anything else runs, so that nobody sees a trial.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from enum import StrEnum
from itertools import zip_longest
from typing import ClassVar, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from berth.scheduler.cycle import Cycle
from berth.scheduler.extender.result import ExtenderResult
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.placement import EVERYWHERE, Placement
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate, QueuedPodInfo
from berth.scheduler.framework.pod_signature import PodSignature, signature_in_group
from berth.scheduler.framework.status import Status
from berth.scheduler.outcome import (
    CLEAR,
    Failed,
    Nomination,
    Outcome,
    Placed,
    To,
    Unschedulable,
    refused_placement,
)
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.profile.profile import Profile
from berth.scheduler.reservation import assume, assumed_on, reserve
from berth.scheduler.scheduling_steps import SchedulingSteps

UNSCHEDULABLE: Final = "pod group is unschedulable"
WAITS: Final = "pod group is waiting for preemption to complete"


class Result(StrEnum):
    """What a cycle came to; the values are those of metrics."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    WAITING = "waiting_on_preemption"
    ERROR = "error"


class Member(msgspec.Struct, eq=False):
    """One pod of the group in this cycle."""

    queued: QueuedPodInfo
    profile: Profile
    started: float
    """When it was tried, in monotonic seconds."""
    answer: ExtenderResult | None = None
    """What extenders said of the nodes before the trial; None: they have no say in the pod."""
    cycle: Cycle | None = None
    outcome: Outcome | None = None
    """What its own attempt came to; None: the trial ended before."""
    assumed: PodInfo | None = None
    """The pod on its node, while it is there."""
    host: str = ""
    """The node that it got in the trial."""
    permit: str = ""
    """Why Permit plugins held it back in the trial; empty: they let it go."""
    requires_preemption: bool = False
    of_child: "GroupStatus | None" = None
    """What its PodGroup came to as part of another group, which did not come to more."""
    undo: ExitStack = msgspec.field(default_factory=ExitStack)
    """Takes it off the node, and puts its victims back."""

    def take_over(self, other: "Member") -> None:
        """Hold what *other* does, which is the same pod in another trial."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(other, name))

    @property
    def template(self) -> PodTemplate:
        return self.queued.pod_info.template


class GroupStatus(msgspec.Struct, frozen=True):
    """What the trial came to, as the PodGroup's condition says it."""

    result: Result
    message: str
    plugins: frozenset[str] = frozenset()
    """Those that rejected the group as a whole."""
    may_be_resolved: bool = True
    """Whether evictions may help, if it is unschedulable."""


class _Refusal(NamedTuple):
    """What came of a member that fits nowhere: the same as of any other of its signature."""

    signature: PodSignature
    generation: int
    """Of the table; it stands until a pod comes or goes."""
    outcome: Unschedulable


class PodGroupTrial:
    """Places pods of a group on the live table; they stay until they are undone."""

    asks_permit: ClassVar[bool] = True
    """Whether Permit plugins say if enough pods have nodes."""
    without_preemption: ClassVar[Nomination] = CLEAR
    """What becomes of the nomination of a pod that has no node, where PostFilter is not asked."""

    def __init__(self, steps: SchedulingSteps) -> None:
        self._steps = steps
        self._refusal: _Refusal | None = None
        """The last one of this trial."""
        self.placement_state: CycleState | None = None
        """What plugins remember of this trial as a whole."""

    def run(
        self,
        members: Sequence[Member],
        nominations: ExitStack,
        placement: Placement = EVERYWHERE,
        *,
        may_preempt: bool = True,
    ) -> GroupStatus:
        """Place as many of *members* as fit; they hold what they got until they are undone.

        A pod that is placed is nominated no more; *nominations* restores that. Without
        *may_preempt* no PostFilter runs.
        """
        result, preempting = Result.UNSCHEDULABLE, False
        self._refusal = None
        on_trial = frozenset(member.queued.uid for member in members)
        for member, following in zip_longest(members, members[1:]):
            outcome = self._attempt(
                member,
                nominations,
                on_trial,
                placement,
                may_preempt=may_preempt,
                is_one_of_many=following is not None and following.template is member.template,
            )
            if isinstance(outcome, Failed):
                text = f"failed to schedule other pod from a pod group: {outcome.message}"
                return GroupStatus(Result.ERROR, text)
            if not member.host:
                continue
            preempting = preempting or member.requires_preemption
            if not member.permit:
                result = Result.WAITING if preempting else Result.SCHEDULED
            if result is Result.SCHEDULED:
                may_preempt = False
        match result:
            case Result.SCHEDULED:
                return GroupStatus(result, "")
            case Result.WAITING:
                return GroupStatus(result, f"{UNSCHEDULABLE}, {WAITS}")
            case _:
                return GroupStatus(result, UNSCHEDULABLE)

    def _attempt(
        self,
        member: Member,
        nominations: ExitStack,
        on_trial: frozenset[str],
        placement: Placement,
        *,
        may_preempt: bool,
        is_one_of_many: bool,
    ) -> Outcome:
        """Put *member* on the best node, if there is one; keep and return what came of it."""
        member.started = self._steps.clock.monotonic()
        outcome = self._decide(
            member,
            on_trial,
            placement,
            may_preempt=may_preempt,
            is_one_of_many=is_one_of_many,
        )
        if member.host and not isinstance(outcome, Failed):
            refusal = self._place(member, outcome)
            if refusal is not None:
                placed = Placed(outcome.pod, outcome.profile, outcome.found, member.host)
                outcome = refused_placement(placed, refusal)
                member.undo.close()
                member.host, member.requires_preemption = "", False
            else:
                nominations.callback(self._steps.queue.nominator.suspend(member.queued.uid))
        self._steps.measure(outcome, member.started)
        member.outcome = outcome
        return outcome

    def fits(
        self,
        member: Member,
        nominations: ExitStack,
        on_trial: frozenset[str],
        placement: Placement,
    ) -> bool:
        """Put *member* on a node of *placement*; say whether it is there. Nothing is counted."""
        outcome = self._decide(member, on_trial, placement, may_preempt=False, is_one_of_many=False)
        if not isinstance(outcome, Placed) or self._place(member, outcome) is not None:
            return False
        nominations.callback(self._steps.queue.nominator.suspend(member.queued.uid))
        return True

    def _decide(
        self,
        member: Member,
        on_trial: frozenset[str],
        placement: Placement,
        *,
        may_preempt: bool,
        is_one_of_many: bool,
    ) -> Outcome:
        """Find a node for *member*, one where victims would have to go if there is no other."""
        cycle = member.cycle = self._steps.begin_cycle(member.profile, member.queued, placement)
        cycle.state.on_trial, cycle.state.placement = on_trial, self.placement_state
        extenders, answer = self._steps.extender_round, member.answer
        signature = None
        if answer is None:
            signature = self._signature_of(member)
            refusal, generation = self._refusal, cycle.nodes.last_generation
            if refusal and (refusal.signature, refusal.generation) == (signature, generation):
                return replace(refusal.outcome, pod=cycle.pod)
            outcome = self._steps.decide(cycle, is_one_of_many=is_one_of_many)
        else:
            outcome = extenders.decide(cycle, answer)
            may_preempt = may_preempt and extenders.may_preempt(cycle.pod)
        if isinstance(outcome, Placed):
            member.host = outcome.node_name
        elif isinstance(outcome, Unschedulable):
            outcome = (
                run_post_filter_plugins(cycle, outcome)
                if may_preempt
                else replace(outcome, nomination=self.without_preemption)
            )
            if isinstance(outcome, Failed):
                return outcome
            if isinstance(outcome.nomination, To):
                member.host, member.requires_preemption = outcome.nomination.node, True
            elif signature is not None and _is_final(outcome):
                self._refusal = _Refusal(signature, cycle.nodes.last_generation, outcome)
        return outcome

    def _signature_of(self, member: Member) -> PodSignature | None:
        """Return what decides about *member* within this trial; None if there is more to it.

        A profile that samples nodes begins each search elsewhere.
        """
        profile, pod = member.profile, member.queued.pod_info
        if (
            profile.percentage_of_nodes_to_score
            or not profile.decides_by_signature
            or self._steps.queue.nominator.nominated_node(pod.uid) is not None
        ):
            return None
        return signature_in_group(pod)

    def _place(self, member: Member, outcome: Placed | Unschedulable) -> Status | None:
        """Put *member* on its node in place of its victims; return who refuses it there."""
        assert member.cycle is not None
        cache = self._steps.cache
        state, undo = member.cycle.state, member.undo
        for victim in _victims(outcome):
            undo.enter_context(cache.without(victim.uid))
        assumed = member.assumed = assumed_on(member.queued.pod_info, member.host, state)
        status = assume(assumed, cache, undo)
        if status is not None:
            return status
        status = reserve(assumed, member.profile, state, undo)
        if status is not None or not self.asks_permit:
            return status
        permit = member.profile.run_permit(state, assumed, member.host)
        if isinstance(permit, Status):
            return permit
        member.permit = permit.message if permit else ""
        return None

    def without(self, uid: str) -> AbstractContextManager[None]:
        """Have a pod that has a node not count in the block; see :meth:`Cache.without`."""
        return self._steps.cache.without(uid)

    def place_again(self, members: Sequence[Member], nominations: ExitStack) -> None:
        """Put *members* where their trial had put them: nothing has changed since."""
        refusal = self.place_if_unchanged(members, nominations)
        assert refusal is None, refusal

    def place_if_unchanged(
        self, members: Sequence[Member], nominations: ExitStack
    ) -> Status | None:
        """Do the same; return what refuses one of them if something has changed all the same."""
        suspend = self._steps.queue.nominator.suspend
        for member in members:
            if member.host:
                assert isinstance(member.outcome, Placed | Unschedulable)
                refusal = self._place(member, member.outcome)
                if refusal is not None:
                    return refusal
                nominations.callback(suspend(member.queued.uid))
        return None


def importance(queued: QueuedPodInfo) -> tuple[int, float]:
    """Return what sorts the pods of a group into the order in which they are tried (spec G4.3)."""
    return -queued.pod_info.priority, queued.initial_attempt_timestamp or 0.0


def anew(members: Sequence[Member]) -> list[Member]:
    """Return *members* as they were before any trial."""
    return [
        Member(member.queued, member.profile, member.started, member.answer) for member in members
    ]


def undo(members: Sequence[Member]) -> None:
    """Take all pods off their nodes, the last first."""
    for member in reversed(members):
        member.undo.close()


def _is_final(outcome: Unschedulable) -> bool:
    """Whether PostFilter has found that nothing can be done, or was not asked."""
    helped = outcome.post_filter
    return not outcome.diagnosis.pending_plugins and (
        helped is None or (helped.status is not None and helped.status.is_rejected)
    )


def _victims(outcome: Placed | Unschedulable) -> Sequence[PodInfo]:
    """Return the pods that have to go for the node that *outcome* found."""
    result = outcome.post_filter if isinstance(outcome, Unschedulable) else None
    if result is None or result.preemption is None or result.preemption.chosen is None:
        return ()
    return result.preemption.chosen.victims
