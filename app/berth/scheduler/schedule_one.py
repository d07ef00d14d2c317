"""Takes pods from the queue and schedules them, one at a time (spec §2.1).

::

    run -> schedule_one -> scheduling_cycle      schedule_pod: filter, score, select_host
                             |                   post_filter, if no node fits
                             |-- no node ------> preemptions, handle_scheduling_failure
                             `-- assume, reserve, permit
                                   `-- binding cycle, as a task of its own

Named after kube-scheduler's ``schedule_one.go``, whose steps are the modules of this package.
"""

import asyncio
import logging
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec.structs import replace

from berth.kube.objects.pod_group import group_to_wait_with
from berth.runtime.tasks import TURN_SECONDS
from berth.scheduler.binding import Binding
from berth.scheduler.binding_cycle import BindingCycle
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.cycle_state import Gang
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.interface import PostFilterResult
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.framework.status import Status
from berth.scheduler.gang import NO_EXTENDERS, Member, schedule_gang
from berth.scheduler.outcome import KEEP, Failed, Outcome, Placed, Unschedulable, refused_placement
from berth.scheduler.pod_group.cycle import PodGroupCycle
from berth.scheduler.pod_group.entity_cycle import PodGroupEntityCycle
from berth.scheduler.pod_group.reports import GroupParts
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.profile.waiting_pod import WaitingPod
from berth.scheduler.reservation import Reservation, assume, assumed_on, reserve
from berth.scheduler.scheduling_steps import SchedulingSteps, chosen_candidate
from berth.scheduler.signatures import cached_failure_of

log = logging.getLogger(__name__)

ATTEMPTS_PER_TURN: Final = 4
"""Attempts made before other tasks have their turn on the event loop.

Together they take about as long as all else that a bound pod needs. A turn for each would cost 8%
more CPU per pod; and what is written waits for at most as many.
"""
CACHED_FAILURES_PER_TURN: Final = 32
"""The same for pods that fail without an attempt."""


class Attempt(NamedTuple):
    """A pod that was tried, and what came of it."""

    queued: QueuedPodInfo
    cycle: Cycle
    outcome: Outcome
    started: float
    gang: Gang | None = None
    """The gang that is to be tried with it."""


@dataclass(kw_only=True, eq=False)
class Scheduler(SchedulingSteps):
    """Schedules one pod after the other; bindings run beside it as tasks.

    All state it changes (queue, cache) is changed without awaiting, so attempts are atomic. Where
    extenders are waited for, that is before anything is changed, and the filters run again after.
    """

    binding_cycle: BindingCycle
    groups: GroupParts | None = None
    """If given, pods of a PodGroup are scheduled together."""
    preempts_async: bool = True
    """SchedulerAsyncPreemption: without, victims are evicted within the attempt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pod_group_cycle: PodGroupCycle | None = None
        if self.groups is not None:
            cycle = PodGroupEntityCycle if self.groups.are_entities else PodGroupCycle
            self._pod_group_cycle = cycle(self, self.groups)

    async def run(self) -> None:
        """Schedule for ever. Every few attempts other tasks have their turn, such as watches."""
        turn = 0.0
        async with asyncio.TaskGroup() as tasks:
            while True:
                if turn >= 1.0:
                    turn = 0.0
                    await asyncio.sleep(0)
                if not self.binding_cycle.has_room:
                    await self.binding_cycle.until_room()
                if not self.queue.can_pop_fast:
                    await self.queue.settled()
                queued = self.next_pod()
                if queued is None:
                    await self.queue.wait_ready()
                    continue
                if self.apply_cached_failure(queued):
                    turn += 1 / CACHED_FAILURES_PER_TURN
                else:
                    started = self.clock.monotonic()
                    for binding in await self.schedule_one(queued):
                        self._begin_binding_cycle(binding, tasks)
                    took = self.clock.monotonic() - started
                    turn += max(1 / ATTEMPTS_PER_TURN, took / TURN_SECONDS)

    def _begin_binding_cycle(self, binding: Binding, tasks: asyncio.TaskGroup) -> None:
        name = f"bind {binding.reservation.queued.key}"
        tasks.create_task(self.binding_cycle.run(binding), name=name)

    def next_pod(self) -> QueuedPodInfo | None:
        """Take the pod to try next from the queue; None if none is ready."""
        self.journal.attempt_begins()
        queued = self.queue.pop()
        if queued is not None:
            self.journal.popped(queued)
        return queued

    @property
    def binding_count(self) -> int:
        """How many binding cycles are under way."""
        return len(self.bindings)

    def apply_cached_failure(self, queued: QueuedPodInfo) -> bool:
        """Let a popped pod fail without an attempt, if one of its signature has just failed.

        Not if extenders have a say: no event tells when they would give another answer.
        """
        failure = self.queue.cached_failure(queued)
        if failure is None or self.extender_round.is_due(queued.pod_info):
            return False
        if failure.num_nodes != len(self.cache.table):
            return False  # what it says of N nodes would not be true of the nodes there are
        profile = self.profile_for_pod(queued)
        if profile is None:
            return True
        started = self.clock.monotonic()
        if not self.failures.apply_cached_failure(queued, profile, failure, started=started):
            return False
        attempt = queued.attempts
        record = self.decisions.add_cached_failure(
            queued.pod_info, failure, attempt=attempt, at=started
        )
        self.journal.decided(record, None)
        self.journal.attempt_ended()
        return True

    async def schedule_one(self, queued: QueuedPodInfo) -> tuple[Binding, ...]:
        """Make one attempt for a popped pod; return what is to be bound.

        That is one pod, none if it has to wait, or all of a gang.
        """
        bindings = await self._schedule_one(queued)
        self.journal.attempt_ended()
        return bindings

    async def _schedule_one(self, queued: QueuedPodInfo) -> tuple[Binding, ...]:
        if self._pod_group_cycle is not None:
            key = group_to_wait_with(queued.pod)
            if key is not None:
                return await self._pod_group_cycle.run(queued, key)
        if not self.extender_round.is_due(queued.pod_info):
            if self.preempts_async:
                return self.scheduling_cycle(queued)
            attempt = self.attempt(queued)
        else:
            attempt = await self._attempt_with_extenders(queued)
        if attempt is None:
            return ()
        chosen = None if self.preempts_async else chosen_candidate(attempt.outcome)
        if chosen is None:
            return self._finish(attempt)
        return await self._preempt_and_fail(attempt, chosen)

    def scheduling_cycle(self, queued: QueuedPodInfo) -> tuple[Binding, ...]:
        """Decide where a popped pod goes, and reserve it; without asking extenders."""
        attempt = self.attempt(queued)
        return () if attempt is None else self._finish(attempt)

    def attempt(self, queued: QueuedPodInfo) -> Attempt | None:
        """Decide where a popped pod goes; None if it is not tried."""
        profile = self.profile_for_pod(queued)
        if profile is None:
            return None
        started = self.clock.monotonic()
        cycle = self.begin_cycle(profile, queued)
        outcome = self.decide(cycle)
        gang = cycle.state.gang
        if gang is None and isinstance(outcome, Unschedulable):
            outcome = run_post_filter_plugins(cycle, outcome)
        return Attempt(queued, cycle, outcome, started, gang)

    async def _attempt_with_extenders(self, queued: QueuedPodInfo) -> Attempt | None:
        """Do the same with extenders; the pod may be gone before they have answered."""
        profile = self.profile_for_pod(queued)
        if profile is None:
            return None
        started = self.clock.monotonic()
        attempt = await self.extender_round.schedule_pod(profile, queued)
        if attempt is None:
            self.queue.done(queued.uid)
            return None
        cycle, outcome = attempt.cycle, attempt.outcome
        if cycle.state.gang is not None and isinstance(outcome, Placed):
            status = Status.error(f"{cycle.state.gang.name}: {NO_EXTENDERS}")
            outcome = replace(refused_placement(outcome, status), nomination=KEEP)
        return Attempt(queued, cycle, outcome, started)

    def _finish(self, attempt: Attempt) -> tuple[Binding, ...]:
        """Reserve the node; if there is none, have victims evicted and requeue the pod."""
        queued, cycle, outcome, started = attempt[:4]
        if attempt.gang is not None:
            return self._schedule_gang(Member(queued, cycle, outcome), attempt.gang, started)
        self.failure_reporter.drop(queued.uid)
        self.measure(outcome, started)
        if isinstance(outcome, Placed):
            reserved = self.prepare_for_binding_cycle(queued, cycle, outcome, started)
            if isinstance(reserved, Reservation):
                self.record(outcome, queued, started)
                return (self.hand_over(reserved),)
            outcome = reserved
        elif isinstance(outcome, Unschedulable):
            self.preempt(outcome)
        record = self.record(outcome, queued, started)
        cached_failure = None
        if isinstance(outcome, Unschedulable):
            cached_failure = cached_failure_of(outcome, record, cycle.profile)
        self.failures.handle_scheduling_failure(
            queued, cycle.profile, outcome, started=started, cached_failure=cached_failure
        )
        return ()

    async def _preempt_and_fail(self, attempt: Attempt, chosen: Candidate) -> tuple[Binding, ...]:
        """Evict the victims that *attempt* came to, then requeue the pod.

        The attempt is recorded before, while its nodes are those of the cache.
        """
        queued, outcome, started = attempt.queued, attempt.outcome, attempt.started
        assert isinstance(outcome, Unschedulable)
        self.failure_reporter.drop(queued.uid)
        self.measure(outcome, started)
        self.record(outcome, queued, started)
        error = await self.preemptions.prepare_candidate_now(
            outcome.pod, profile=outcome.profile, chosen=chosen, queue=self.queue
        )
        if error is not None:
            result = PostFilterResult(Status.error(f"preemption: {error}"))
            outcome = replace(outcome, post_filter=result, nomination=KEEP)
        self.failures.handle_scheduling_failure(
            queued, attempt.cycle.profile, outcome, started=started
        )
        return ()

    def prepare_for_binding_cycle(
        self, queued: QueuedPodInfo, cycle: Cycle, placed: Placed, started: float
    ) -> Reservation | Unschedulable | Failed:
        """Assume the pod on its node and run Reserve and Permit; give all back if one refuses it.

        Every step registers its undo before the next one runs (spec §2.7). A pod that runs, and has
        room to be resized, is counted already: Permit refuses it (1.37 spec N12.2).
        """
        profile, state = cycle.profile, cycle.state
        if queued.pod.spec.node_name:
            refusal = profile.run_permit(state, queued.pod_info, placed.node_name)
            assert isinstance(refusal, Status), "a pod that runs would be bound"
            return refused_placement(placed, refusal)
        assumed = assumed_on(queued.pod_info, placed.node_name, state)
        with ExitStack() as undo:
            status = assume(assumed, self.cache, undo)
            if status is None:
                self.queue.assumed(assumed)
                status = reserve(assumed, profile, state, undo)
            if status is None:
                permit = profile.run_permit(state, assumed, placed.node_name)
                if not isinstance(permit, Status):
                    waiting = WaitingPod(assumed, permit.timeouts) if permit else None
                    kept = undo.pop_all()
                    return Reservation(queued, profile, state, assumed, started, kept, waiting)
                status = permit
        return refused_placement(placed, status)

    # Gangs.

    def _schedule_gang(self, leader: Member, gang: Gang, started: float) -> tuple[Binding, ...]:
        """Give all of *gang* nodes, or none of them."""

        def reserve_for(member: Member) -> Member:
            self.failure_reporter.drop(member.queued.uid)
            self.measure(member.outcome, started)
            if not isinstance(member.outcome, Placed):
                return member
            reserved = self.prepare_for_binding_cycle(
                member.queued, member.cycle, member.outcome, started
            )
            if isinstance(reserved, Reservation):
                return replace(member, reservation=reserved)
            return replace(member, outcome=reserved)

        attempt = schedule_gang(leader, gang, try_member=self._try_member, reserve=reserve_for)
        if attempt.is_complete:
            bindings = []
            for member in attempt.members:
                self.record(member.outcome, member.queued, started)
                assert member.reservation is not None
                bindings.append(self.hand_over(member.reservation))
            return tuple(bindings)
        for queued, profile, outcome in attempt.undo():
            self.record(outcome, queued, started)
            self.failures.handle_scheduling_failure(queued, profile, outcome, started=started)
        return ()

    def _try_member(self, key: str) -> Member | None:
        """Find a node for one of a gang that is not the first; None if it is missing."""
        queued = self.queue.pop_specific_pod(key)
        profile = self.profile_for_pod(queued) if queued is not None else None
        if queued is None or profile is None:
            return None
        cycle = self.begin_cycle(profile, queued)
        if self.extender_round.is_due(queued.pod_info):
            nowhere = FeasibleNodes.nowhere(Diagnosis(len(cycle.nodes)))
            outcome: Outcome = Failed(
                queued.pod_info, profile.name, nowhere, Status.error(NO_EXTENDERS)
            )
        else:
            outcome = self.decide(cycle)
        return Member(queued, cycle, outcome)
