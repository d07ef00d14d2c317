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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from typing import Final, NamedTuple

from msgspec.structs import replace

from berth.kube.objects.pod_group import group_of
from berth.runtime.clock import Clock
from berth.scheduler.binding import Binding, Bindings
from berth.scheduler.binding_cycle import BindingCycle
from berth.scheduler.cache.cache import Cache
from berth.scheduler.cycle import Cycle
from berth.scheduler.decisions import DecisionRecord, Decisions
from berth.scheduler.failure import FailureHandler
from berth.scheduler.failure_reporter import FailureReporter
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.cycle_state import Gang
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.interface import PostFilterResult
from berth.scheduler.framework.placement import EVERYWHERE, Placement
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.framework.status import Status
from berth.scheduler.gang import NO_EXTENDERS, Member, schedule_gang
from berth.scheduler.journal import NO_JOURNAL, Journal
from berth.scheduler.known_templates import KnownTemplates
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.outcome import KEEP, Failed, Outcome, Placed, Unschedulable, refused_placement
from berth.scheduler.pod_group_cycle import PodGroupCycle
from berth.scheduler.pod_group_reports import GroupParts
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.preemption import Preemptions
from berth.scheduler.profile.profile import Profile
from berth.scheduler.profile.waiting_pod import WaitingPod
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.reservation import Reservation, assume, assumed_on, reserve
from berth.scheduler.sampling import Sampling
from berth.scheduler.schedule_pod import Select, schedule_pod, smallest_name
from berth.scheduler.signatures import known_failure_of
from berth.scheduler.with_extenders import ExtenderRound

log = logging.getLogger(__name__)

TURN_SECONDS: Final = 0.01
"""After which other tasks have their turn, however few attempts were made: some search for long."""
ATTEMPTS_PER_TURN: Final = 4
"""Attempts made before other tasks have their turn on the event loop.

Together they take about as long as all else that a bound pod needs. A turn for each would cost 8%
more CPU per pod; and what is written waits for at most as many.
"""
KNOWN_FAILURES_PER_TURN: Final = 32
"""The same for pods that fail without an attempt."""


class Attempt(NamedTuple):
    """A pod that was tried, and what came of it."""

    queued: QueuedPodInfo
    cycle: Cycle
    outcome: Outcome
    started: float
    gang: Gang | None = None
    """The gang that is to be tried with it."""


class Scheduler:
    """Schedules one pod after the other; bindings run beside it as tasks.

    All state it changes (queue, cache) is changed without awaiting, so attempts are atomic. Where
    extenders are waited for, that is before anything is changed, and the filters run again after.
    """

    def __init__(
        self,
        *,
        profiles: Mapping[str, Profile],
        queue: SchedulingQueue,
        cache: Cache,
        select: Select,
        sampling: Sampling,
        extender_round: ExtenderRound,
        decisions: Decisions,
        bindings: Bindings,
        preemptions: Preemptions,
        binding_cycle: BindingCycle,
        failures: FailureHandler,
        failure_reporter: FailureReporter,
        metrics: SchedulerMetrics,
        clock: Clock,
        groups: GroupParts | None = None,
        batches: bool = True,
        preempts_async: bool = True,
        shares_answers: bool = True,
        journal: Journal = NO_JOURNAL,
    ) -> None:
        """With *groups*, pods of a PodGroup are scheduled together.

        *batches* is the feature gate OpportunisticBatching, which shows in metrics only, and
        *preempts_async* SchedulerAsyncPreemption: without, victims are evicted within the attempt.
        *shares_answers*: what plugins say about a pod stands for others of its template.
        """
        self._batches = batches
        self._preempts_async = preempts_async
        self.profiles = profiles
        self.queue = queue
        self.cache = cache
        self.decisions = decisions
        self.bindings = bindings
        self.binding_cycle = binding_cycle
        self._select = select
        self._sampling = sampling
        self._known_templates = KnownTemplates() if shares_answers else None
        self.extender_round = extender_round
        self.preemptions = preemptions
        self.failures = failures
        self.failure_reporter = failure_reporter
        self._metrics = metrics
        self.clock = clock
        self.groups = groups
        self._pod_group_cycle = PodGroupCycle(self, groups) if groups is not None else None
        self._journal = journal

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
                queued = self.next_pod()
                if queued is None:
                    await self.queue.wait_ready()
                    continue
                if self.apply_known_failure(queued):
                    turn += 1 / KNOWN_FAILURES_PER_TURN
                else:
                    started = self.clock.monotonic()
                    for binding in await self.schedule_one(queued):
                        self._begin_binding_cycle(binding, tasks)
                    took = self.clock.monotonic() - started
                    turn += max(1 / ATTEMPTS_PER_TURN, took / TURN_SECONDS)

    def _begin_binding_cycle(self, binding: Binding, tasks: asyncio.TaskGroup) -> None:
        tasks.create_task(self.binding_cycle.run(binding), name=f"bind {binding.pod.key}")

    def next_pod(self) -> QueuedPodInfo | None:
        """Take the pod to try next from the queue; None if none is ready."""
        self._journal.attempt_begins()
        queued = self.queue.pop()
        if queued is not None:
            self._journal.popped(queued)
        return queued

    @property
    def binding_count(self) -> int:
        """How many binding cycles are under way."""
        return len(self.bindings)

    def apply_known_failure(self, queued: QueuedPodInfo) -> bool:
        """Let a popped pod fail without an attempt, if one of its signature has just failed.

        Not if extenders have a say: no event tells when they would give another answer.
        """
        failure = self.queue.known_failure(queued)
        if failure is None or self.extender_round.is_due(queued.pod_info):
            return False
        if failure.num_nodes != len(self.cache.table):
            return False  # what it says of N nodes would not be true of the nodes there are
        profile = self.profile_for_pod(queued)
        if profile is None:
            return True
        started = self.clock.monotonic()
        if not self.failures.apply_known_failure(queued, profile, failure, started=started):
            return False
        attempt = queued.attempts
        record = self.decisions.add_known_failure(
            queued.pod_info, failure, attempt=attempt, at=started
        )
        self._journal.decided(record, None)
        self._journal.attempt_ended()
        return True

    async def schedule_one(self, queued: QueuedPodInfo) -> tuple[Binding, ...]:
        """Make one attempt for a popped pod; return what is to be bound.

        That is one pod, none if it has to wait, or all of a gang.
        """
        bindings = await self._schedule_one(queued)
        self._journal.attempt_ended()
        return bindings

    async def _schedule_one(self, queued: QueuedPodInfo) -> tuple[Binding, ...]:
        if self._pod_group_cycle is not None:
            key = group_of(queued.pod)
            if key is not None:
                return await self._pod_group_cycle.run(queued, key)
        if not self.extender_round.is_due(queued.pod_info):
            if self._preempts_async:
                return self.scheduling_cycle(queued)
            attempt = self.attempt(queued)
        else:
            attempt = await self._attempt_with_extenders(queued)
        if attempt is None:
            return ()
        chosen = None if self._preempts_async else _chosen(attempt.outcome)
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

    def decide(self, cycle: Cycle, *, is_one_of_many: bool = False) -> Outcome:
        """Find a node for the pod of *cycle*, without PostFilter.

        *is_one_of_many*: more pods of the same template are tried next.
        """
        if self._known_templates is not None:
            placed = self._known_templates.schedule(
                cycle, select=self._select, is_one_of_many=is_one_of_many
            )
            if placed is not None:
                return placed
        return schedule_pod(cycle, select=self._select, sampling=self._sampling)

    def begin_cycle(
        self, profile: Profile, queued: QueuedPodInfo, placement: Placement = EVERYWHERE
    ) -> Cycle:
        return Cycle.begin(
            profile,
            queued.pod_info,
            cache=self.cache,
            nominator=self.queue.nominator,
            placement=placement,
        )

    def for_trials(self, metrics: SchedulerMetrics) -> "Scheduler":
        """Return one that decides about the same cluster, for trials that are undone.

        It draws nothing but takes the smallest name of several, leaves the rotation over the nodes
        where it is, and counts in *metrics*.
        """
        other = copy(self)
        other._select = smallest_name(self.cache.table)
        other._sampling = copy(self._sampling)
        other._metrics = metrics
        return other

    def select_best(self, totals: Sequence[int]) -> int:
        """Return where the highest total is; of several, one is drawn."""
        best = [index for index, total in enumerate(totals) if total == max(totals)]
        return best[0] if len(best) == 1 else self._select(best)

    def profile_for_pod(self, queued: QueuedPodInfo) -> Profile | None:
        """Return whose plugins decide; None if the pod is skipped, and the queue done with it."""
        name = queued.pod.spec.scheduler_name
        profile = self.profiles.get(name)
        if profile is None:
            log.error("no profile for pod", extra={"pod": queued.key, "scheduler_name": name})
        elif not self._skip_pod_schedule(queued, profile):
            return profile
        self.queue.done(queued.uid)
        return None

    def _skip_pod_schedule(self, queued: QueuedPodInfo, profile: Profile) -> bool:
        """Whether a pod must not be tried: it is being deleted, or assumed on a node already."""
        pod = queued.pod
        if pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.metadata.namespace}/{pod.metadata.name}"
            self.failure_reporter.record_event(pod, profile, note)
            return True
        return self.cache.is_assumed(queued.uid)

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
        known_failure = None
        if isinstance(outcome, Unschedulable):
            known_failure = known_failure_of(outcome, record, cycle.profile)
        self.failures.handle_scheduling_failure(
            queued, cycle.profile, outcome, started=started, known_failure=known_failure
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

        Every step registers its undo before the next one runs (spec §2.7).
        """
        profile, state = cycle.profile, cycle.state
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

    def hand_over(self, reservation: Reservation) -> Binding:
        """Leave a reservation to the binding cycle; try the pods again that plugins want tried."""
        self.queue.activate_all(reservation.state.pods_to_activate)
        return self.bindings.add(reservation)

    def preempt(self, outcome: Unschedulable) -> None:
        """Have the pods evicted that PostFilter chose, if it did, beside what follows."""
        chosen = _chosen(outcome)
        if chosen is not None:
            self.preemptions.prepare_candidate_async(
                outcome.pod, profile=outcome.profile, chosen=chosen
            )

    def measure(self, outcome: Outcome, started: float) -> None:
        """Record what finding a node took, and which plugins ruled nodes out."""
        profile, placed = outcome.profile, outcome if isinstance(outcome, Placed) else None
        self._metrics.decided(seconds=self.clock.monotonic() - started)
        if self._batches:
            scored = placed is not None and placed.scores is not None
            self._metrics.had_no_hint(profile, found=placed is not None, scored=scored)
        for plugin, verdict in outcome.found.diagnosis.verdicts:
            if verdict:
                self._metrics.rejected_nodes(profile, plugin, verdict.num_rejected)

    def record(self, outcome: Outcome, queued: QueuedPodInfo, started: float) -> DecisionRecord:
        record = self.decisions.add(
            outcome, nodes=self.cache.table, attempt=queued.attempts, at=started
        )
        self._journal.decided(record, outcome)
        return record

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
            found = FeasibleNodes.nowhere(Diagnosis(len(cycle.nodes)))
            outcome: Outcome = Failed(
                queued.pod_info, profile.name, found, Status.error(NO_EXTENDERS)
            )
        else:
            outcome = self.decide(cycle)
        return Member(queued, cycle, outcome)


def _chosen(outcome: Outcome) -> Candidate | None:
    """Return the node and the victims that PostFilter chose, if it did."""
    result = outcome.post_filter if isinstance(outcome, Unschedulable) else None
    if result is None or result.status is not None or result.preemption is None:
        return None
    return result.preemption.chosen
