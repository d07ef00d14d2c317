"""Metrics of scheduling, recorded at the moments that kube-scheduler does (§8)."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.runtime.clock import Clock
from berth.runtime.metrics import Counters, Histograms, numbers
from berth.scheduler.metrics.families import berth, kube
from berth.scheduler.metrics.recorders import PluginMetrics, RequestMetrics

MOST_ATTEMPTS_TOLD_APART: Final = 14
"""Pods that needed more attempts than these share a label (spec §8)."""

FailureResult = Literal["unschedulable", "error"]


class SchedulerMetrics(Collector):
    """The instruments of one scheduler; each method records one kind of event.

    All durations are in seconds. Registers itself with *registry*.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._attempts = Counters(kube.SCHEDULE_ATTEMPTS)
        self._attempt_duration = Histograms(kube.ATTEMPT_DURATION)
        self._algorithm_duration = Histograms(kube.ALGORITHM_DURATION)
        self._sli_duration = Histograms(kube.POD_SCHEDULING_SLI_DURATION)
        self._attempts_needed = Histograms(kube.POD_SCHEDULING_ATTEMPTS)
        self._after_flush = Counters(kube.POD_SCHEDULED_AFTER_FLUSH)
        self._batch_attempts = Counters(kube.BATCH_ATTEMPTS)
        self._batch_flushed = Counters(kube.BATCH_CACHE_FLUSHED)
        self._victims = Histograms(kube.PREEMPTION_VICTIMS)
        self._preemption_duration = Histograms(kube.PREEMPTION_TASK_DURATION)
        self._preemptions = Counters(kube.PREEMPTION_TASK_EXECUTIONS)
        self._surplus_victims = Counters(berth.SURPLUS_VICTIMS)
        self._foreign_binds = Counters(berth.FOREIGN_BINDS)
        self._permit_wait = Histograms(kube.PERMIT_WAIT_DURATION)
        self._event_handling = Histograms(kube.EVENT_HANDLING_DURATION)
        self.handled_event: Callable[[float, str], None] = self._event_handling.observe
        """So many seconds it took to take a change of the cluster in, by its event's label."""
        self._hint_duration = Histograms(kube.QUEUEING_HINT_DURATION)
        self._looked_up_events = Counters(kube.PRE_QUEUEING_HINT_EVALUATIONS)
        self._points = Histograms(kube.EXTENSION_POINT_DURATION)
        self._plugins = Histograms(kube.PLUGIN_DURATION)
        self._claims_created = Counters(kube.RESOURCE_CLAIM_CREATES)
        self._shared_claims_created = Counters(kube.SHARED_RESOURCE_CLAIM_CREATES)
        self._batch_rescores = Counters(kube.BATCH_RESCORE_ATTEMPTS)
        self._batch_rescore_duration = Histograms(kube.BATCH_RESCORE_DURATION)
        self._volume_errors = Counters(kube.VOLUME_STAGE_ERRORS)
        self._device_waits = Counters(kube.DEVICE_WAITS)
        self._device_wait_duration = Histograms(kube.DEVICE_WAIT_DURATION)
        self._requests = RequestMetrics()
        self._rejecting_attempts = Counters(berth.REJECTING_ATTEMPTS)
        self._rejected_nodes = Counters(berth.REJECTED_NODES)
        self._plugin_errors = Counters(berth.PLUGIN_ERRORS)
        self._plugin_seconds = Counters(berth.PLUGIN_SECONDS)
        self._loop_lag = Histograms(berth.LOOP_LAG)
        self.pod_groups = PodGroupMetrics()
        """To be registered where groups are scheduled."""
        self.group_preemption = GroupPreemptionMetrics()
        """To be registered where groups are entities of the queue."""
        self.placements = PlacementMetrics()
        """To be registered where groups are entities of the queue, and placed by topology."""
        self.async_calls = AsyncCallMetrics()
        """To be registered with SchedulerAsyncAPICalls."""
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        for instrument in vars(self).values():
            if isinstance(instrument, Counters | Histograms):
                yield instrument.collect()
        yield from self._requests.collect()

    def reset(self) -> None:
        """Forget what was measured so far, for all families with labels."""
        for instrument in vars(self).values():
            if isinstance(
                instrument,
                Counters
                | Histograms
                | RequestMetrics
                | PodGroupMetrics
                | GroupPreemptionMetrics
                | PlacementMetrics
                | AsyncCallMetrics,
            ):
                instrument.reset()

    # Attempts.

    def decided(self, *, seconds: float) -> None:
        """An attempt found a node, or found that there is none."""
        self._algorithm_duration.observe(seconds)

    def had_no_hint(self, profile: str, *, found: bool, scored: bool) -> None:
        """An attempt *found* a node, having *scored* several, or found that there is none.

        Hints from one pod to the next alike do not exist here, as in kube-scheduler with default
        settings (spec §2.12), where these counters move nevertheless.
        """
        self._batch_attempts.add(profile, "no_hint")
        if found:
            self._batch_flushed.add(profile, "pod_not_batchable" if scored else "empty_list")

    def scheduled(
        self, profile: str, *, seconds: float, attempts: int, waited: float, after_flush: bool
    ) -> None:
        """A pod was bound, *seconds* after the start of the attempt.

        *waited* is the time since it could first be tried; *after_flush*: it was tried only because
        it had waited for long. kube-scheduler forgets that on the way (spec §8, the quirk) and
        counts none.
        """
        self._attempts.add(profile, "scheduled")
        self._attempt_duration.observe(seconds, profile, "scheduled")
        few = attempts <= MOST_ATTEMPTS_TOLD_APART
        self._sli_duration.observe(
            waited, str(attempts) if few else f"{MOST_ATTEMPTS_TOLD_APART + 1}+"
        )
        self._attempts_needed.observe(attempts)
        if after_flush:
            self._after_flush.add()

    def failed(
        self, profile: str, result: FailureResult, *, seconds: float, plugins: Iterable[str]
    ) -> None:
        """An attempt failed, or the binding it led to; *plugins* have rejected the pod."""
        self._attempts.add(profile, result)
        self._attempt_duration.observe(seconds, profile, result)
        for plugin in plugins:
            self._rejecting_attempts.add(plugin, profile)

    def attempts(self) -> dict[str, float]:
        """Return how many attempts there were since the start, or :meth:`reset`, by result."""
        return self._attempts.by("result")

    def rejected_nodes(self, profile: str, plugin: str, count: int) -> None:
        """A Filter plugin ruled *count* nodes out that had passed so far."""
        self._rejected_nodes.add(plugin, profile, amount=count)

    def waited_on_permit(self, status: str, *, seconds: float) -> None:
        """A pod that had to wait for Permit plugins got its answer."""
        self._permit_wait.observe(seconds, status)

    # Preemption.

    def victims_chosen(self, count: int) -> None:
        """Preemption is carried out on a node where *count* pods have to go."""
        self._victims.observe(count)

    def preempted(self, *, seconds: float, failed: bool) -> None:
        """The victims are evicted, or that *failed*.

        kube-scheduler looks at the clock and at the outcome too early: always 0 and success.
        """
        result = "error" if failed else "success"
        self._preemption_duration.observe(seconds, result)
        self._preemptions.add(result)

    def evicted_for_nothing(self, count: int) -> None:
        """A preemption was given up after *count* victims had been evicted for it."""
        self._surplus_victims.add(amount=count)

    def foreign_bind(self) -> None:
        """A pod of one of our profiles was bound by somebody else."""
        self._foreign_binds.add()

    # Around it.

    def ran_hint(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        """A plugin said whether an event is worth another attempt: the queue's ``ObserveHint``."""
        self._hint_duration.observe(seconds, event, outcome, plugin)

    def looked_up_event(self, plugin: str, result: str) -> None:
        """A plugin said which waiting pods an event may help: the queue's ``ObserveIndex``."""
        self._looked_up_events.add(plugin, result)

    def created_claim(self, status: str) -> None:
        """A claim for extended resources was created (success), or was not (failure).

        Such a claim belongs to a pod and asks for no administrative access.
        """
        self._claims_created.add(status)
        self._shared_claims_created.add(status, "false", "", "Pod")

    # What plugins report: the framework's Outcomes.

    def volume_stage_failed(self, stage: str) -> None:
        """An error, not a refusal, came of a pod's volumes: predicate, assume or bind."""
        self._volume_errors.add(stage)

    def waited_for_devices(self, profile: str, driver: str, status: str, *, seconds: float) -> None:
        """A pod's binding waited for devices of *driver*: success, failure, timeout or error."""
        self._device_waits.add(profile, driver, status)
        self._device_wait_duration.observe(seconds, profile, driver, status)

    def evaluated_preemption(self, result: str, *, seconds: float) -> None:
        """A pod that preempts alone has looked for victims."""
        self.group_preemption.evaluated("pod", result, seconds=seconds)

    def loop_lagged(self, seconds: float) -> None:
        """The event loop came back to a timer *seconds* late."""
        self._loop_lag.observe(seconds)

    def of_profile(self, name: str, *, clock: Clock, rng: random.Random) -> PluginMetrics:
        """Return what watches the plugins of a profile; *rng* picks the cycles it samples."""
        return PluginMetrics(
            name,
            self._points,
            self._plugins,
            seconds=self._plugin_seconds,
            errors=self._plugin_errors,
            clock=clock,
            rng=rng,
        )

    @property
    def requests(self) -> RequestMetrics:
        """The recorder of requests to the API server."""
        return self._requests


class PodGroupMetrics(Collector):
    """The instruments of group cycles (spec G7.2)."""

    def __init__(self) -> None:
        self._attempts = Counters(kube.POD_GROUP_ATTEMPTS)
        self._attempt_duration = Histograms(kube.POD_GROUP_ATTEMPT_DURATION)
        self._algorithm_duration = Histograms(kube.POD_GROUP_ALGORITHM_DURATION)

    def collect(self) -> Iterator[Metric]:
        yield self._attempts.collect()
        yield self._attempt_duration.collect()
        yield self._algorithm_duration.collect()

    def reset(self) -> None:
        """Forget what was measured so far."""
        for instrument in (self._attempts, self._attempt_duration, self._algorithm_duration):
            instrument.reset()

    def algorithm_took(self, seconds: float) -> None:
        """All pods of a group have been tried."""
        self._algorithm_duration.observe(seconds)

    def attempted(self, result: str, profile: str, *, seconds: float) -> None:
        """A cycle ended: scheduled, unschedulable, waiting_on_preemption or error."""
        self._attempts.add(result, profile)
        self._attempt_duration.observe(seconds, result, profile)


Preemptor = Literal["pod", "podgroup"]


class GroupPreemptionMetrics(Collector):
    """The instruments of preemption that come with GenericWorkload (1.37 spec N5.3)."""

    def __init__(self) -> None:
        self._attempts = Counters(kube.WORKLOAD_PREEMPTION_ATTEMPTS)
        self._victims = Histograms(kube.WORKLOAD_PREEMPTION_VICTIMS)
        self._disruptions = Histograms(kube.PREEMPTION_WORKLOAD_DISRUPTIONS)
        self._evaluation = Histograms(kube.PREEMPTION_EVALUATION_DURATION)
        self._execution = Histograms(kube.PREEMPTION_EXECUTION_DURATION)
        self._violations = Counters(kube.PREEMPTION_PDB_VIOLATIONS)

    def collect(self) -> Iterator[Metric]:
        for instrument in vars(self).values():
            yield instrument.collect()

    def reset(self) -> None:
        """Forget what was measured so far."""
        for instrument in vars(self).values():
            instrument.reset()

    def attempted(self, result: str) -> None:
        """A group asked for victims; *result* is the name of a status code."""
        self._attempts.add(result)

    def evaluated(self, preemptor: Preemptor, result: str, *, seconds: float) -> None:
        """Victims were looked for."""
        self._evaluation.observe(seconds, preemptor, result)

    def chosen(
        self, preemptor: Preemptor, *, victims: int, groups: int, pdb_violations: int
    ) -> None:
        """Some *victims* have to go, among them all pods of so many *groups*."""
        if preemptor == "podgroup":
            self._victims.observe(victims)
        self._disruptions.observe(groups, preemptor)
        self._violations.add(preemptor, amount=pdb_violations)

    def executed(self, preemptor: Preemptor, result: str, *, seconds: float) -> None:
        """The victims are evicted, or that has failed: success or error."""
        self._execution.observe(seconds, preemptor, result)


class PlacementMetrics(Collector):
    """The instruments of the search for placements (1.37 spec N5.4)."""

    def __init__(self) -> None:
        self._generated = Counters(kube.GENERATED_PLACEMENTS)
        self._evaluations = Counters(kube.PLACEMENT_EVALUATIONS)
        self._duration = Histograms(kube.PLACEMENT_EVALUATION_DURATION)

    def collect(self) -> Iterator[Metric]:
        for instrument in vars(self).values():
            yield instrument.collect()

    def reset(self) -> None:
        """Forget what was measured so far."""
        for instrument in vars(self).values():
            instrument.reset()

    def generated(self, profile: str, number: int) -> None:
        """A group may have a *number* of placements."""
        self._generated.add(profile, amount=number)

    def evaluated(self, profile: str, *, is_feasible: bool, seconds: float) -> None:
        """A group was tried in one of them."""
        result = "feasible" if is_feasible else "infeasible"
        self._evaluations.add(result, profile)
        self._duration.observe(seconds, result, profile)


class AsyncCallMetrics(Collector):
    """The instruments of SchedulerAsyncAPICalls (spec G12)."""

    def __init__(self) -> None:
        self._calls = Counters(kube.ASYNC_CALLS)
        self._duration = Histograms(kube.ASYNC_CALL_DURATION)
        self._pending = Counter[str]()

    def collect(self) -> Iterator[Metric]:
        yield self._calls.collect()
        yield self._duration.collect()
        waiting = {(call_type,): count for call_type, count in self._pending.items()}
        yield numbers(kube.PENDING_ASYNC_CALLS, waiting)

    def reset(self) -> None:
        """Forget what was measured so far. What waits is not forgotten: it still does."""
        self._calls.reset()
        self._duration.reset()

    def waits(self, call_type: str, change: int) -> None:
        """One call more waits for its turn (1), or one less (-1)."""
        self._pending[call_type] += change

    def executed(self, call_type: str, *, failed: bool, seconds: float) -> None:
        """A call was made."""
        result = "error" if failed else "success"
        self._calls.add(call_type, result)
        self._duration.observe(seconds, call_type, result)
