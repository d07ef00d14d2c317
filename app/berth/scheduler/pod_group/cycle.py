"""One scheduling cycle for all waiting pods of a PodGroup (spec G5).

::

    pop one member --> take the others out of the queue, most important first
      trial: each is placed on the live table, in turn, and sees those before it
        enough have nodes -------------> keep all that fit, Permit, binding cycles; others fail
        enough, if victims are evicted-> undo all; evict; all are tried again
        too few, or an error ----------> undo all; nothing has happened
          the group preempts as one -----> evict; all are tried again

kube-scheduler rehearses on a copy. Here the one writer of the table places the pods and takes them
off again before anything else runs, so that nobody sees a trial, and what it has decided need not
be decided again.

Decisions (2026-11), where this differs from 1.36.2 and agrees with what later releases do:
victims are evicted only if that lets the group start (G8.1), and are out of the way for the rest of
the trial (G8.2); once enough pods have nodes, no pods are evicted for more of them (G5.5); a member
whose gang is complete does not wait on Permit (G5.6).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TypeVar

from msgspec.structs import replace

from berth.kube.objects.pod_group import GroupKey, group_of
from berth.runtime.tasks import at_once
from berth.scheduler.binding import Binding
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.outcome import (
    CLEAR,
    KEEP,
    Failed,
    Nomination,
    Outcome,
    Placed,
    To,
    Unschedulable,
    refused_placement,
)
from berth.scheduler.pod_group.placement_search import PlacementSearch
from berth.scheduler.pod_group.preemption import PodGroupPostFilterResult, PodGroupPreemption
from berth.scheduler.pod_group.reports import GroupParts
from berth.scheduler.pod_group.trial import (
    UNSCHEDULABLE,
    GroupStatus,
    Member,
    PodGroupTrial,
    Result,
    importance,
    undo,
)
from berth.scheduler.profile.waiting_pod import WaitingPod
from berth.scheduler.reservation import Reservation
from berth.scheduler.scheduling_steps import SchedulingSteps

AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


class PodGroupCycle:
    """Schedules groups; between two cycles it keeps nothing."""

    def __init__(self, steps: SchedulingSteps, parts: GroupParts) -> None:
        self._steps = steps
        self._trial = PodGroupTrial(steps)
        self._pod_groups = parts.pod_groups
        self._groups = parts.groups
        self._reports = parts.reports
        self._search = (
            PlacementSearch(steps, parts.placement_metrics) if parts.is_topology_aware else None
        )
        self._preemption = (
            PodGroupPreemption(steps, self._trial, parts) if parts.preempts_as_one else None
        )

    async def run(self, popped: QueuedPodInfo, key: GroupKey) -> tuple[Binding, ...]:
        """Schedule the group of a popped pod; return what is to be bound.

        Extenders are asked before the trial. As long as pods of a trial are on nodes nothing is
        awaited, so that nobody sees it.
        """
        started = self._steps.clock.monotonic()
        members = list(self._members(popped, key))
        problem = of_different_schedulers(member.queued for member in members)
        if problem:
            for member in members:
                self._fail(member, failed(member, Status.error(problem)))
            return ()
        members = await self._ask_extenders(members)
        if not members:
            return ()
        return await self._schedule(members, key, started=started)

    async def _ask_extenders(self, members: list[Member]) -> list[Member]:
        """Have extenders say what they think of the nodes, each member for itself.

        They are not told where the others of the group are tried: kube-scheduler, which asks in the
        trial, does not tell them either. Return the members that still wait for a node then.
        """
        extenders = self._steps.extender_round
        due = [member for member in members if extenders.is_due(member.queued.pod_info)]
        if not due:
            return members
        for member in due:
            member.answer = await extenders.answer_for(member.profile, member.queued)
        return self._waiting(members)

    def _waiting(self, members: Sequence[Member]) -> list[Member]:
        """Return the members that still wait for a node after others had their turn."""
        waiting = []
        for member in members:
            if self._steps.extender_round.is_waiting(member.queued):
                waiting.append(member)
            else:
                self._steps.queue.done(member.queued.uid)
        return waiting

    async def _schedule(
        self, members: Sequence[Member], key: GroupKey, *, started: float
    ) -> tuple[Binding, ...]:
        """Try *members*, and do what follows from it."""
        began = self._steps.clock.monotonic()
        nominations = ExitStack()
        members, status = self._try(members, key, nominations)
        self._reports.algorithm_took(self._steps.clock.monotonic() - began)
        if status.result is Result.SCHEDULED:
            bindings = tuple(self._submit(members))
        else:
            undo(members)
            nominations.close()
            result = PodGroupPostFilterResult(status)
            if self._preemption is not None and status.result is Result.UNSCHEDULABLE:
                nodes = dict(self._steps.cache.table.row_of)
                result = await self._preemption.run(members, key, status)
                if self._steps.cache.table.row_of != nodes:
                    forget_scores(members)
            status = result.status
            for member in members:
                self._give_back(member, status, result.nominations.get(member.queued.uid))
            bindings = ()
        self._reports.finished(
            key,
            profile=members[0].profile.name,
            result=status.result.value,
            message=status.message,
            seconds=self._steps.clock.monotonic() - started,
        )
        return bindings

    def _try(
        self, members: Sequence[Member], key: GroupKey, nominations: ExitStack
    ) -> tuple[Sequence[Member], GroupStatus]:
        """Place *members* where they may be placed; return those that hold what they got."""
        if self._search is None:
            return members, self._trial.run(members, nominations)
        group = self._groups.get(key.namespace, key.name)
        if group is None:
            return members, GroupStatus(Result.ERROR, key.not_found)
        scheduled = self._scheduled(key)
        return at_once(self._search.run(members, group, scheduled, self._trial, nominations))

    def _scheduled(self, key: GroupKey) -> tuple[PodInfo, ...]:
        state = self._pod_groups.get(key)
        return tuple(state.scheduled.values()) if state is not None else ()

    def _members(self, popped: QueuedPodInfo, key: GroupKey) -> Iterator[Member]:
        """Yield all pods of the group that can be tried now, most important first (G4.3)."""
        taken = [popped]
        state = self._pod_groups.get(key)
        for pod in list(state.unscheduled()) if state is not None else ():
            if pod.metadata.uid != popped.uid:
                queued = self._steps.queue.pop_specific_pod(pod.key)
                if queued is not None:
                    taken.append(queued)
        taken.sort(key=importance)
        for queued in taken:
            profile = self._steps.profile_for_pod(queued)
            if profile is not None:
                yield Member(queued, profile, self._steps.clock.monotonic())

    # What follows from it.

    def _submit(self, members: Sequence[Member]) -> Iterator[Binding]:
        """Bind the members that have nodes; let the others fail, each for its own reason.

        Permit plugins are asked again: this time all of the group are on their nodes.
        """
        for member in members:
            assert member.outcome is not None
            assert member.cycle is not None
            if member.assumed is None or not isinstance(member.outcome, Placed):
                assert not isinstance(member.outcome, Placed)
                self._fail(member, member.outcome)
                continue
            state = member.cycle.state
            state.on_trial = frozenset()
            permit = member.profile.run_permit(state, member.assumed, member.host)
            if isinstance(permit, Status):
                member.undo.close()
                self._fail(member, refused_placement(member.outcome, permit))
                continue
            self._steps.queue.assumed(member.assumed)
            self._steps.failure_reporter.drop(member.queued.uid)
            self._steps.record(self._named(member.outcome), member.queued, member.started)
            yield self._steps.hand_over(
                Reservation(
                    member.queued,
                    member.profile,
                    state,
                    member.assumed,
                    member.started,
                    member.undo,
                    WaitingPod(member.assumed, permit.timeouts) if permit else None,
                )
            )

    def _give_back(
        self, member: Member, status: GroupStatus, nomination: Nomination | None
    ) -> None:
        """Let *member* fail with its group; have its victims evicted if the group waits for it.

        *nomination* is what the group's own preemption wants; None: nothing for this pod.
        """
        outcome = member.outcome
        if status.result is Result.ERROR:
            if not isinstance(outcome, Failed):
                outcome = failed(member, Status.error(status.message))
            self._fail(member, outcome)
            return
        if outcome is None:  # nobody was tried: the group has no place at all
            self._fail(member, without_trial(member, status.message))
            return
        assert not isinstance(outcome, Failed)
        if nomination is not None:
            if isinstance(outcome, Placed):
                self._fail(member, with_its_group(outcome, status.message, nomination))
            else:
                self._fail(member, replace(outcome, nomination=nomination))
        elif not member.host:
            assert isinstance(outcome, Unschedulable)
            self._fail(member, outcome)
        elif status.result is Result.UNSCHEDULABLE:
            words = f"{UNSCHEDULABLE}, {member.permit}" if member.permit else UNSCHEDULABLE
            self._fail(member, with_its_group(outcome, words, CLEAR))
        elif isinstance(outcome, Unschedulable):
            self._steps.preempt(outcome)
            self._fail(member, outcome)
        else:
            self._fail(member, with_its_group(outcome, status.message, To(member.host)))

    def _fail(self, member: Member, outcome: Unschedulable | Failed) -> None:
        self._steps.failure_reporter.drop(member.queued.uid)
        outcome = self._named(outcome)
        self._steps.record(outcome, member.queued, member.started)
        self._steps.failures.handle_scheduling_failure(
            member.queued, member.profile, outcome, started=member.started
        )

    def _named(self, outcome: AnyOutcome) -> AnyOutcome:
        key = group_of(outcome.pod.pod)
        return replace(outcome, gang=f"pod group {key}")


def of_different_schedulers(queued: Iterable[QueuedPodInfo]) -> str:
    """Return what is wrong if not all pods name the same scheduler; empty if they do."""
    names = [waiting.pod.spec.scheduler_name for waiting in queued]
    for name in names:
        if name != names[0]:
            return (
                "all pods in a single pod group should have the same .spec.schedulerName set,"
                f' got: "{name}" and "{names[0]}"'
            )
    return ""


def failed(member: Member, status: Status) -> Failed:
    nowhere = FeasibleNodes.nowhere(Diagnosis(0))
    return Failed(member.queued.pod_info, member.profile.name, nowhere, status)


def without_trial(member: Member, words: str) -> Unschedulable:
    nowhere = FeasibleNodes.nowhere(Diagnosis(0))
    return Unschedulable(member.queued.pod_info, member.profile.name, nowhere, KEEP, words=words)


def forget_scores(members: Sequence[Member]) -> None:
    """Forget what was found out about nodes, some of which are no longer what they were."""
    for member in members:
        if isinstance(member.outcome, Placed):
            member.outcome = replace(member.outcome, scores=None, highest=None, num_best=None)


def with_its_group(
    outcome: Placed | Unschedulable, words: str, nomination: Nomination
) -> Unschedulable:
    """Return how a pod fails that has a node only if its group has.

    No plugin has rejected it, so that it is tried again after a backoff.
    """
    return Unschedulable(
        outcome.pod,
        outcome.profile,
        FeasibleNodes.nowhere(Diagnosis(0)),
        nomination,
        refused=outcome if isinstance(outcome, Placed) else None,
        words=words,
    )
