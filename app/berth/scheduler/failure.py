"""Handling of a failed attempt (spec §2.10)."""

import logging
from collections.abc import Mapping

from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.failure_reporter import FailureReporter
from berth.scheduler.framework.deferred_resize import waits_to_be_resized
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.outcome import Failed, Unschedulable
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.failure_cache import CachedFailure
from berth.scheduler.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger(__name__)


class FailureHandler:
    """Requeues pods, then writes the event, then the condition."""

    def __init__(
        self,
        *,
        queue: SchedulingQueue,
        pods: Mapping[str, Pod],
        failure_reporter: FailureReporter,
        metrics: SchedulerMetrics,
        clock: Clock,
    ) -> None:
        """*pods* is the informer's store, by namespace/name: what the API says now."""
        self._queue = queue
        self._pods = pods
        self._failure_reporter = failure_reporter
        self._metrics = metrics
        self._clock = clock

    def handle_scheduling_failure(
        self,
        queued: QueuedPodInfo,
        profile: Profile,
        outcome: Unschedulable | Failed,
        *,
        started: float,
        cached_failure: CachedFailure | None = None,
    ) -> None:
        """Requeue the pod of an attempt begun at *started*, and report why.

        To be called when all that the attempt had reserved is given back. *cached_failure* is for
        pods of the same signature.
        """
        rejected = isinstance(outcome, Unschedulable)
        text, diagnosis = outcome.message, outcome.diagnosis
        self._metrics.failed(
            profile.name,
            "unschedulable" if rejected else "error",
            seconds=self._clock.monotonic() - started,
            plugins=diagnosis.unschedulable_plugins | diagnosis.pending_plugins,
        )
        current = self._pods.get(queued.key)
        is_gone = current is None or current.metadata.uid != queued.uid
        if rejected:
            log.debug("unable to schedule pod", extra={"pod": queued.key, "why": text})
        elif is_gone:
            # Deleted meanwhile: whatever broke, nobody needs to look into it.
            log.debug(
                "error scheduling a pod that is gone", extra={"pod": queued.key, "error": text}
            )
        else:
            log.error("error scheduling pod, retrying", extra={"pod": queued.key, "error": text})
        has_rejectors = rejected and diagnosis.num_all_nodes > 0
        queued.unschedulable_plugins = (
            set(diagnosis.unschedulable_plugins) if has_rejectors else set()
        )
        queued.pending_plugins = set(diagnosis.pending_plugins) if has_rejectors else set()
        nominated_node = outcome.nomination.override
        is_resize = bool(queued.pod.spec.node_name)
        if current is None or (
            current.spec.node_name and not (is_resize and waits_to_be_resized(current))
        ):
            self._queue.done(queued.uid)
        elif current.metadata.uid != queued.uid:
            self._queue.done(queued.uid)
            return
        else:
            if current is not queued.pod:
                queued.pod_info, cached_failure = PodInfo(current), None
            self._queue.add_unschedulable_if_not_present(queued, cached_failure=cached_failure)
            self._queue.nominator.add_nominated_pod(queued.pod_info, node_name=nominated_node)
        if is_resize:
            self._report_resize(queued.pod, profile, outcome)
            return
        pod, reason = queued.pod, "Unschedulable" if rejected else "SchedulerError"
        self._failure_reporter.record_event(pod, profile, text)
        if current is not None:
            self._failure_reporter.update_condition(
                pod, reason, text, nominated_node_name=nominated_node
            )

    def _report_resize(self, pod: Pod, profile: Profile, outcome: Unschedulable | Failed) -> None:
        """Say why there is no room for *pod*, which runs, to be resized.

        Guess (1.37 spec N12.2 is silent): its condition PodScheduled stays true and it is nominated
        to no node, as KEP-5836 has it; the event, which that plans for the next stage of the gate,
        tells the user what is wrong, or who goes. That there is room is nothing to warn of.
        """
        if outcome.refused is None:
            self._failure_reporter.record_event(pod, profile, outcome.message)

    def apply_cached_failure(
        self, queued: QueuedPodInfo, profile: Profile, failure: CachedFailure, *, started: float
    ) -> bool:
        """Do the same for a pod that *failure* holds for, but report it later.

        False, and nothing is done, if the pod has changed since the queue looked it up.
        """
        if self._pods.get(queued.key) is not queued.pod:
            return False
        queued.unschedulable_plugins = set(failure.rejectors)
        queued.pending_plugins = set()
        self._queue.add_unschedulable_if_not_present(queued)
        self._failure_reporter.report_later(queued.pod, profile, failure.message)
        self._metrics.failed(
            profile.name,
            "unschedulable",
            seconds=self._clock.monotonic() - started,
            plugins=failure.rejectors,
        )
        return True
