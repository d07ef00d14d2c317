"""The steps that scheduling a pod by itself and scheduling pods of a group have in common."""

import logging
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

from berth.runtime.clock import Clock
from berth.scheduler.answer_cache.cache import AnswerCache
from berth.scheduler.binding import Binding, Bindings
from berth.scheduler.cache.cache import Cache
from berth.scheduler.cycle import Cycle
from berth.scheduler.decisions import DecisionRecord, Decisions
from berth.scheduler.failure import FailureHandler
from berth.scheduler.failure_reporter import FailureReporter
from berth.scheduler.framework.placement import EVERYWHERE, Placement
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.journal import NO_JOURNAL, Journal
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.outcome import Outcome, Placed, Unschedulable
from berth.scheduler.preemption import Preemptions
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.reservation import Reservation
from berth.scheduler.sampling import Sampling
from berth.scheduler.schedule_pod import Select, schedule_pod, smallest_name
from berth.scheduler.with_extenders import ExtenderRound

log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False)
class SchedulingSteps:
    """What attempts begin with, decide by, and leave to others."""

    profiles: Mapping[str, Profile]
    queue: SchedulingQueue
    cache: Cache
    select: Select
    sampling: Sampling
    extender_round: ExtenderRound
    decisions: Decisions
    bindings: Bindings
    preemptions: Preemptions
    failures: FailureHandler
    failure_reporter: FailureReporter
    metrics: SchedulerMetrics
    clock: Clock
    batches: bool = True
    """The feature gate OpportunisticBatching, which shows in metrics only."""
    shares_answers: bool = True
    """Whether what plugins say about a pod stands for others of its template."""
    journal: Journal = NO_JOURNAL

    def __post_init__(self) -> None:
        self._answer_cache = AnswerCache() if self.shares_answers else None

    def decide(self, cycle: Cycle, *, is_one_of_many: bool = False) -> Outcome:
        """Find a node for the pod of *cycle*, without PostFilter.

        *is_one_of_many*: more pods of the same template are tried next.
        """
        if self._answer_cache is not None and not cycle.pod.pod.spec.node_name:
            placed = self._answer_cache.schedule(
                cycle, select=self.select, is_one_of_many=is_one_of_many
            )
            if placed is not None:
                return placed
        return schedule_pod(cycle, select=self.select, sampling=self.sampling)

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

    def for_trials(self, metrics: SchedulerMetrics) -> Self:
        """Return one that decides about the same cluster, for trials that are undone.

        It draws nothing but takes the smallest name of several, leaves the rotation over the nodes
        where it is, and counts in *metrics*.
        """
        other = copy(self)
        other.select = smallest_name(self.cache.table)
        other.sampling = copy(self.sampling)
        other.metrics = metrics
        return other

    def select_best(self, totals: Sequence[int]) -> int:
        """Return where the highest total is; of several, one is drawn."""
        best = [index for index, total in enumerate(totals) if total == max(totals)]
        return best[0] if len(best) == 1 else self.select(best)

    def profile_for_pod(self, queued: QueuedPodInfo) -> Profile | None:
        """Return whose plugins decide; None if the pod is skipped, and the queue done with it."""
        name = queued.pod.spec.scheduler_name
        profile = self.profiles.get(name)
        if profile is None:
            log.error("no profile for pod", extra={"pod": queued.key, "scheduler_name": name})
        elif queued.pod.spec.node_name and profile.for_deferred_resizes is None:
            pass  # the configuration that had a part for it was replaced
        elif not self._skip_pod_schedule(queued, profile):
            return profile.for_deferred_resizes if queued.pod.spec.node_name else profile
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

    def hand_over(self, reservation: Reservation) -> Binding:
        """Leave a reservation to the binding cycle; try the pods again that plugins want tried."""
        self.queue.activate_all(reservation.state.pods_to_activate)
        return self.bindings.add(reservation)

    def preempt(self, outcome: Unschedulable) -> None:
        """Have the pods evicted that PostFilter chose, if it did, beside what follows."""
        chosen = chosen_candidate(outcome)
        if chosen is not None:
            self.preemptions.prepare_candidate_async(
                outcome.pod, profile=outcome.profile, chosen=chosen
            )

    def measure(self, outcome: Outcome, started: float) -> None:
        """Record what finding a node took, and which plugins ruled nodes out."""
        profile, placed = outcome.profile, outcome if isinstance(outcome, Placed) else None
        self.metrics.decided(seconds=self.clock.monotonic() - started)
        if self.batches:
            scored = placed is not None and placed.scores is not None
            self.metrics.had_no_hint(profile, found=placed is not None, scored=scored)
        for plugin, verdict in outcome.found.diagnosis.verdicts:
            if verdict:
                self.metrics.rejected_nodes(profile, plugin, verdict.num_rejected)

    def record(self, outcome: Outcome, queued: QueuedPodInfo, started: float) -> DecisionRecord:
        record = self.decisions.add(
            outcome, nodes=self.cache.table, attempt=queued.attempts, at=started
        )
        self.journal.decided(record, outcome)
        return record


def chosen_candidate(outcome: Outcome) -> Candidate | None:
    """Return the node and the victims that PostFilter chose, if it did."""
    result = outcome.post_filter if isinstance(outcome, Unschedulable) else None
    if result is None or result.status is not None or result.preemption is None:
        return None
    return result.preemption.chosen
