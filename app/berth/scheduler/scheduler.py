"""The scheduling cycle: from the queue to a claimed node, one pod at a time (spec §2.1, §2.7)."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from berth.cache.cache import Cache, CacheError
from berth.clock import Clock
from berth.framework.cycle_state import CycleState, Gang
from berth.framework.diagnosis import Diagnosis
from berth.framework.pod_info import PodInfo, QueuedPodInfo
from berth.framework.status import Status
from berth.metrics.scheduler_metrics import SchedulerMetrics
from berth.profile.profile import Profile
from berth.profile.waiting_pod import WaitingPod
from berth.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.binding_cycle import BindingCycle
from berth.scheduler.decision import Decision
from berth.scheduler.decisions import Decisions
from berth.scheduler.failure import FailureHandler, refused_late
from berth.scheduler.failure_reporter import FailureReporter
from berth.scheduler.find_node import NodeFinder
from berth.scheduler.gang import NO_EXTENDERS, Member, try_together
from berth.scheduler.preemption import Preemptions
from berth.scheduler.reservation import Reservation, Reservations
from berth.scheduler.signatures import known_failure_of
from berth.scheduler.with_extenders import ExtenderRound

log = logging.getLogger(__name__)

ANSWERS_PER_BREATH: Final = 32
"""So many pods that need no attempt take about as long as one attempt."""


@dataclass(slots=True)
class QueuedMember(Member[Reservation]):
    """One that is to be bound, or put back into the queue."""

    queued: QueuedPodInfo = field(kw_only=True)


class Scheduler:
    """Decides for one pod after the other; bindings run beside it as tasks.

    All state it changes (queue, cache) is changed without awaiting, so attempts are atomic. Where
    extenders are waited for, that is before anything is changed, and all is judged again after.
    """

    def __init__(
        self,
        *,
        profiles: Mapping[str, Profile],
        queue: SchedulingQueue,
        cache: Cache,
        finder: NodeFinder,
        extender_round: ExtenderRound,
        decisions: Decisions,
        reservations: Reservations,
        preemptions: Preemptions,
        binding: BindingCycle,
        failures: FailureHandler,
        failure_reporter: FailureReporter,
        metrics: SchedulerMetrics,
        clock: Clock,
    ) -> None:
        self.profiles = profiles
        self.queue = queue
        self.cache = cache
        self.decisions = decisions
        self._finder = finder
        self._extender_round = extender_round
        self.reservations = reservations
        self._preemptions = preemptions
        self.binding = binding
        self._failures = failures
        self._failure_reporter = failure_reporter
        self._metrics = metrics
        self._clock = clock
        self._bindings: set[asyncio.Task[None]] = set()
        self.answered = 0
        """How many pods failed without an attempt, because that of another answered for them."""

    async def run(self) -> None:
        """Schedule for ever. The loop breathes between attempts, so watches and leases go on."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self.binding.until_room()
                queued = self.queue.pop()
                if queued is None:
                    await self.queue.wait_ready()
                    continue
                answered = self.answered
                reservation = await self.attempt(queued)
                for each in () if reservation is None else (reservation, *reservation.companions):
                    name = f"bind {each.assumed.key}"
                    task = tasks.create_task(self.binding.run(each), name=name)
                    self._bindings.add(task)
                    task.add_done_callback(self._bindings.discard)
                if answered == self.answered or not answered % ANSWERS_PER_BREATH:
                    await asyncio.sleep(0)

    def asks_extenders_about(self, pod: PodInfo) -> bool:
        """Whether extenders have a say about *pod*."""
        return self._extender_round.is_due(pod)

    @property
    def binding_count(self) -> int:
        """How many pods are between being claimed and being bound."""
        return len(self._bindings)

    async def attempt(self, queued: QueuedPodInfo) -> Reservation | None:
        """Make one attempt for a popped pod, asking the extenders that have a say in it."""
        if self._extender_round.is_due(queued.pod_info):
            return await self.schedule_one_asking(queued)
        return self.schedule_one(queued)

    def schedule_one(self, queued: QueuedPodInfo) -> Reservation | None:
        """Make one attempt for a popped pod; return its reservation, or None if it has to wait.

        A pod of a gang brings the others along, and their reservations with its own.
        """
        profile = self._profile_of(queued)
        if profile is None:
            return None
        started = self._clock.monotonic()
        if self._is_answered(queued, profile, started):
            return None
        self.cache.refresh_order()
        state = CycleState()
        nominated = self.queue.nominator.nominated_pods()
        decision = self._finder.find(profile, queued.pod_info, state=state, nominated=nominated)
        if state.gang is not None:
            leader = QueuedMember(queued.pod_info, profile, state, decision, queued=queued)
            return self._schedule_gang(leader, state.gang, started)
        if decision.status is not None:
            self._finder.run_post_filter_plugins(
                profile, decision, state=state, nominated=nominated
            )
        return self._act_on(decision, profile, queued, state=state, started=started)

    async def schedule_one_asking(self, queued: QueuedPodInfo) -> Reservation | None:
        """Do the same with the say of extenders; the pod may be gone before they have answered."""
        profile = self._profile_of(queued)
        if profile is None:
            return None
        started = self._clock.monotonic()
        made = await self._extender_round.decide(profile, queued)
        if made is None:
            self.queue.done(queued.uid)
            return None
        if made.state.gang is not None and made.decision.status is None:
            made.decision.status = Status.error(f"{made.state.gang.name}: {NO_EXTENDERS}")
            made.decision.node_name = ""
        return self._act_on(made.decision, profile, queued, state=made.state, started=started)

    def _schedule_gang(
        self, leader: QueuedMember, gang: Gang, started: float
    ) -> Reservation | None:
        """Give all of *gang* nodes, or none of them."""

        def take(key: str) -> QueuedMember | None:
            queued = self.queue.pop_specific_pod(key)
            profile = None if queued is None else self._profile_of(queued)
            if queued is None or profile is None:
                return None
            return QueuedMember(
                queued.pod_info, profile, *self._find_for(queued, profile), queued=queued
            )

        def reserve(member: QueuedMember) -> None:
            self._failure_reporter.drop(member.queued.uid)
            self._measure(member.decision, started)
            if member.decision.status is None:
                member.room = self._assume_and_reserve(
                    member.queued, member.profile, member.state, member.decision, started
                )

        attempt = try_together(leader, gang, take=take, reserve=reserve)
        if attempt.is_complete:
            for member in attempt.members:
                self._record(member, started)
                self.queue.activate_all(member.state.pods_to_activate)
            first, *first.companions = [m.room for m in attempt.members if m.room is not None]
            return first
        attempt.fail(self._give_back)
        for member in attempt.members:
            self._record(member, started)
            self._failures.fail(member.queued, member.profile, member.decision, started=started)
        return None

    def _find_for(self, queued: QueuedPodInfo, profile: Profile) -> tuple[CycleState, Decision]:
        """Find a node for one of a gang that is not the first."""
        state = CycleState()
        if self._extender_round.is_due(queued.pod_info):
            status = Status.error(NO_EXTENDERS)
            return state, Decision(
                queued.pod_info, profile.name, Diagnosis(len(self.cache.table)), status=status
            )
        nominated = self.queue.nominator.nominated_pods()
        return state, self._finder.find(profile, queued.pod_info, state=state, nominated=nominated)

    def _give_back(self, member: QueuedMember) -> None:
        if member.room is not None:
            self.reservations.remove(member.room)
            member.room.undo.close()

    def _record(self, member: QueuedMember, started: float) -> None:
        self.decisions.add(
            member.decision, nodes=self.cache.table, attempt=member.queued.attempts, at=started
        )

    def _is_answered(self, queued: QueuedPodInfo, profile: Profile, started: float) -> bool:
        """Let a pod fail without an attempt, if that of another has shown what it would come to."""
        failure = self.queue.known_failure(queued)
        if failure is None or failure.num_nodes != len(self.cache.table):
            return False  # what it says of N nodes would not be true of the nodes there are
        if not self._failures.apply_known_failure(queued, profile, failure, started=started):
            return False
        self.decisions.add_known_failure(
            queued.pod_info, failure, attempt=queued.attempts, at=started
        )
        self.answered += 1
        return True

    def _profile_of(self, queued: QueuedPodInfo) -> Profile | None:
        """Return whose plugins decide; None, the pod being done with, if nothing is to be decided.

        What is skipped here is told in spec §2.1.
        """
        pod = queued.pod
        profile = self.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            log.error(
                "no profile for pod",
                extra={"pod": queued.key, "scheduler_name": pod.spec.scheduler_name},
            )
            self.queue.done(queued.uid)
            return None
        if pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.metadata.namespace}/{pod.metadata.name}"
            self._failure_reporter.record_event(pod, profile, note)
            self.queue.done(queued.uid)
            return None
        if self.cache.is_assumed(queued.uid):
            self.queue.done(queued.uid)
            return None
        return profile

    def _act_on(
        self,
        decision: Decision,
        profile: Profile,
        queued: QueuedPodInfo,
        *,
        state: CycleState,
        started: float,
    ) -> Reservation | None:
        """Reserve the chosen node; if there is none, have victims evicted and requeue the pod."""
        self._failure_reporter.drop(queued.uid)
        self._measure(decision, started)
        has_nominations = len(self.queue.nominator) > 0
        reservation = None
        if decision.status is None:
            reservation = self._assume_and_reserve(queued, profile, state, decision, started)
        else:
            self._preempt(profile, decision)
        record = self.decisions.add(
            decision, nodes=self.cache.table, attempt=queued.attempts, at=started
        )
        if reservation is not None:
            self.queue.activate_all(state.pods_to_activate)
        else:
            known = known_failure_of(decision, record, profile, has_nominations=has_nominations)
            self._failures.fail(queued, profile, decision, started=started, known_failure=known)
        return reservation

    def _measure(self, decision: Decision, started: float) -> None:
        """Record what finding a node took, and which plugins ruled nodes out."""
        profile = decision.profile
        self._metrics.decided(
            profile,
            seconds=self._clock.monotonic() - started,
            found=decision.status is None,
            scored=decision.scores is not None,
        )
        for plugin, verdict in decision.diagnosis.verdicts:
            rejected = verdict.rejected()
            if rejected is not None:
                self._metrics.rejected_nodes(profile, plugin, int(np.count_nonzero(rejected)))

    def _preempt(self, profile: Profile, decision: Decision) -> None:
        """Have the pods evicted that PostFilter chose, if it did."""
        result = decision.post_filter
        if result is None or result.status is not None or result.preemption is None:
            return
        chosen = result.preemption.chosen
        if chosen is not None:
            self._preemptions.order(decision.pod, profile=profile.name, chosen=chosen)

    def _assume_and_reserve(
        self,
        queued: QueuedPodInfo,
        profile: Profile,
        state: CycleState,
        decision: Decision,
        started: float,
    ) -> Reservation | None:
        """Take the room on the chosen node; on refusal give all back and word it in *decision*.

        Every step registers its undo before the next one runs (spec §2.7).
        """
        assumed = queued.pod_info.on_node(decision.node_name)
        with ExitStack() as undo:
            status = self._assume(assumed, undo)
            if status is None:
                self.queue.nominator.delete_nominated_pod_if_exists(queued.uid)
                undo.callback(profile.run_unreserve, state, assumed, decision.node_name)
                status = profile.run_reserve(state, assumed, decision.node_name)
            if status is None:
                permit = profile.run_permit(state, assumed, decision.node_name)
                status = permit if isinstance(permit, Status) else None
            if status is None:
                reservation = Reservation(queued, profile, state, assumed, undo.pop_all(), started)
                if isinstance(permit, dict):
                    reservation.waiting = WaitingPod(assumed, permit)
                self.reservations.add(reservation)
                return reservation
        decision.status = status
        decision.node_name = ""
        decision.nominated_node = ""
        if status.is_rejected:
            decision.diagnosis = refused_late(status)
        return None

    def _assume(self, assumed: PodInfo, undo: ExitStack) -> Status | None:
        """Count the pod on its node until *undo*; an error if the cache has it already."""
        try:
            self.cache.assume_pod(assumed)
        except CacheError as exc:
            return Status.error(str(exc))
        self.queue.assumed(assumed)
        undo.callback(self._forget, assumed)
        return None

    def _forget(self, assumed: PodInfo) -> None:
        """Give the room of an assumed pod back, unless the watch said meanwhile that it is bound.

        That happens when a binding succeeds and says it did not.
        """
        try:
            self.cache.forget_pod(assumed)
        except CacheError as exc:
            log.warning("room is not given back", extra={"pod": assumed.key, "error": str(exc)})
