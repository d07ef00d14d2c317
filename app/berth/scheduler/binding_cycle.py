"""The binding cycle: from a reservation to a bound pod, as a task of its own (spec §2.9)."""

import asyncio
import logging
from collections.abc import Sequence

from berth.kube.client.errors import ApiError, log_failure
from berth.runtime.clock import Clock
from berth.scheduler.binding import PREEMPTED, Binding, Bindings, Stage
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.extender.extenders import Extenders
from berth.scheduler.failure import FailureHandler
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.interface import PreBindPlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.journal import NO_JOURNAL, Journal
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.outcome import CLEAR, Failed, Unschedulable, rejected_on_node
from berth.scheduler.profile.statuses import refused
from berth.scheduler.profile.waiting_pod import WaitingPod
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.reporter import BindingReporter
from berth.scheduler.reservation import Reservation, wake_for_room_of

log = logging.getLogger(__name__)


class BindingCycle:
    """Waits on Permit, then runs PreBind, Bind and PostBind; unreserves and forgets on failure."""

    def __init__(
        self,
        *,
        extenders: Extenders,
        queue: SchedulingQueue,
        bindings: Bindings,
        reporter: BindingReporter,
        failures: FailureHandler,
        metrics: SchedulerMetrics,
        clock: Clock,
        nominates: bool = True,
        journal: Journal = NO_JOURNAL,
    ) -> None:
        """*nominates*: whether the node of a pod that is not bound at once is written down.

        The feature gate NominatedNodeNameForExpectation. Without, PreBind plugins are not asked
        whether they have work to do: all are run, one after the other (G14).
        """
        self._nominates = nominates
        self._journal = journal
        self._extenders = extenders
        self._queue = queue
        self._bindings = bindings
        self._reporter = reporter
        self._failures = failures
        self._metrics = metrics
        self._clock = clock
        self.scheduled = 0
        """Pods bound since the start; the first and the last at these monotonic times."""
        self.first_bound_at = self.last_bound_at = 0.0

    @property
    def has_room(self) -> bool:
        """Whether one more binding would be written soon."""
        return self._reporter.has_room

    async def until_room(self) -> None:
        """Return when there is room; see :class:`~berth.scheduler.reporter.BindingReporter`."""
        await self._reporter.until_room()

    async def run(self, binding: Binding) -> None:
        """Bind a pod; whatever goes wrong, one pod must never stop the scheduler."""
        reservation, pod = binding.reservation, binding.pod
        binding.task = task = asyncio.current_task()
        with reservation.undo:
            try:
                status = await self.steps(binding)
            except asyncio.CancelledError:
                if not binding.is_preempted or task is None or task.uncancel():
                    raise
                status = Status.error(PREEMPTED)
                if binding.pre_bind:
                    status = refused(status, "PreBind", binding.pre_bind[0])
            except Exception as exc:  # noqa: BLE001 - one pod must never stop the scheduler
                log_failure(log, "binding failed", exc, {"pod": pod.key, "node": pod.node_name})
                status = Status.error(repr(exc))
            finally:
                self._bindings.remove(binding)
            self._journal.binding_ended(pod.uid, status)
            if status is None:
                reservation.undo.pop_all()
        if status is not None:
            self._failed(binding, status)
            return
        self._bound(reservation)
        self._queue.activate_all(reservation.state.pods_to_activate)
        try:
            await reservation.profile.run_post_bind(reservation.state, pod, pod.node_name)
        except Exception:  # the pod is bound: PostBind cannot change that
            log.exception("PostBind failed", extra={"pod": pod.key, "node": pod.node_name})

    async def steps(self, binding: Binding) -> Status | None:
        """Run the steps from Permit to Bind; return why one of them has failed."""
        reservation, pod, node_name = binding.reservation, binding.pod, binding.pod.node_name
        profile, state = reservation.profile, reservation.state
        pre_binds: Sequence[PreBindPlugin] = profile.pre_binds
        if self._nominates:
            asked = profile.run_pre_bind_pre_flight(state, pod, node_name)
            if isinstance(asked, Status):
                return asked
            pre_binds = asked
            if pre_binds or reservation.waiting is not None:
                await self._nominate(pod)
        if reservation.waiting is not None:
            status = await self._wait_on_permit(reservation.waiting)
            if status is not None:
                return status
        self._queue.done(pod.uid)
        status = await profile.run_pre_binds(
            pre_binds,
            state,
            pod,
            node_name,
            entered=binding.enter_pre_bind,
            side_by_side=self._nominates,
        )
        binding.stage = Stage.BIND
        if status is None:
            status = await self._bind(reservation)
        return status

    async def _wait_on_permit(self, waiting: WaitingPod) -> Status | None:
        began = self._clock.monotonic()
        status = await waiting.wait(self._clock)
        code = Code.SUCCESS if status is None else status.code
        self._metrics.waited_on_permit(code.label, seconds=self._clock.monotonic() - began)
        return status

    async def _bind(self, reservation: Reservation) -> Status | None:
        """Have the pod bound: by the extender that does it, else by Bind plugins (spec §9.6)."""
        pod, node_name = reservation.assumed, reservation.node_name
        binder = self._extenders.binder(pod.pod)
        if binder is not None:
            try:
                await binder.bind(pod, node_name)
                return None
            except ExtenderError as exc:
                if await self._was_bound(pod, exc):
                    return None
                if not binder.is_ignorable:
                    return Status.error(str(exc))
                log.warning(
                    "extender failed to bind and is ignored",
                    extra={"pod": pod.key, "extender": binder.name, "error": str(exc)},
                )
        return await reservation.profile.run_bind(reservation.state, pod, node_name)

    async def _was_bound(self, pod: PodInfo, error: ExtenderError) -> bool:
        """Look whether an extender that failed bound the pod nevertheless.

        Its room must not be given to another while it may be on the node.
        """
        if not error.may_have_acted or await self._reporter.bound_node(pod.pod) != pod.node_name:
            return False
        log.info("extender had bound the pod", extra={"pod": pod.key, "error": str(error)})
        return True

    async def _nominate(self, pod: PodInfo) -> None:
        """Write where the pod is to be bound, since it may take long until it is (spec §2.9).

        Waited for: a nomination that is written after the binding would stay for good.
        """
        if pod.pod.status.nominated_node_name == pod.node_name:
            return
        try:
            await self._reporter.patch_pod_status(pod.pod, {"nominatedNodeName": pod.node_name})
        except ApiError as exc:
            log.warning(
                "could not nominate the node of a pod that is being bound",
                extra={"pod": pod.key, "node": pod.node_name, "error": str(exc)},
            )

    def _bound(self, reservation: Reservation) -> None:
        pod, queued = reservation.assumed, reservation.queued
        self.last_bound_at = self._clock.monotonic()
        if not self.scheduled:
            self.first_bound_at = self.last_bound_at
        self.scheduled += 1
        first_tried = queued.initial_attempt_timestamp
        self._metrics.scheduled(
            reservation.profile.name,
            seconds=self.last_bound_at - reservation.started,
            attempts=queued.attempts,
            waited=0.0 if first_tried is None else self._clock.now() - first_tried,
            after_flush=queued.was_flushed_from_unschedulable,
        )
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "pod bound",
                extra={"pod": pod.key, "node": pod.node_name, "attempts": queued.attempts},
            )
        self._reporter.event(
            pod.pod,
            profile=reservation.profile.name,
            type="Normal",
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {queued.key} to {pod.node_name}",
        )

    def _failed(self, binding: Binding, status: Status) -> None:
        """Requeue the pod, and wake those that wait for its room, which is free by now (§2.9)."""
        reservation, pod = binding.reservation, binding.pod
        if not status.is_rejected:
            wake_for_room_of(pod, self._queue)
        self._failures.handle_scheduling_failure(
            reservation.queued,
            reservation.profile,
            _outcome(binding, status),
            started=reservation.started,
        )
        if status.is_rejected:
            wake_for_room_of(pod, self._queue, but_not=pod.uid)


def _outcome(binding: Binding, status: Status) -> Unschedulable | Failed:
    """Return what an attempt came to whose binding ended with *status* (spec §2.9).

    From PreBind on no plugin rejects the pod any more: it is tried again after its backoff.
    """
    reservation = binding.reservation
    pod, profile = reservation.queued.pod_info, reservation.profile.name
    if not status.is_rejected:
        return Failed(pod, profile, FeasibleNodes.nowhere(Diagnosis(1)), status)
    if binding.stage is Stage.PERMIT:
        nowhere = FeasibleNodes.nowhere(rejected_on_node(status))
        return Unschedulable(pod, profile, nowhere, CLEAR)
    nowhere = FeasibleNodes.nowhere(Diagnosis(1))
    return Unschedulable(pod, profile, nowhere, CLEAR, words=status.message)
