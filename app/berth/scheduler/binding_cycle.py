"""The binding cycle: from a claimed node to a bound pod, beside the attempts (spec §2.9)."""

import asyncio
import logging

from berth.client.errors import ApiError, log_failure
from berth.clock import Clock
from berth.extender.errors import ExtenderError
from berth.extender.extenders import Extenders
from berth.framework.diagnosis import Diagnosis
from berth.framework.events import ASSIGNED_POD_DELETE
from berth.framework.status import Code, Status
from berth.metrics.scheduler_metrics import SchedulerMetrics
from berth.profile.statuses import refused
from berth.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.decision import Decision
from berth.scheduler.failure import FailureHandler, refused_late
from berth.scheduler.reporter import BindingReporter
from berth.scheduler.reservation import PREEMPTED, Reservation, Reservations, Stage

log = logging.getLogger(__name__)


class BindingCycle:
    """Waits on Permit, then runs PreBind, Bind and PostBind; unreserves and forgets on failure."""

    def __init__(
        self,
        *,
        extenders: Extenders,
        queue: SchedulingQueue,
        reservations: Reservations,
        reporter: BindingReporter,
        failures: FailureHandler,
        metrics: SchedulerMetrics,
        clock: Clock,
    ) -> None:
        self._extenders = extenders
        self._queue = queue
        self._reservations = reservations
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

    async def run(self, reservation: Reservation) -> None:
        """Carry a reservation out; whatever goes wrong, one pod must never stop the scheduler."""
        pod, node_name = reservation.assumed, reservation.assumed.node_name
        reservation.task = task = asyncio.current_task()
        with reservation.undo:
            try:
                status = await self._steps(reservation)
            except asyncio.CancelledError:
                if not reservation.is_preempted or task is None or task.uncancel():
                    raise
                status = Status.error(PREEMPTED)
                if reservation.running_pre_binds:
                    status = refused(status, "PreBind", reservation.running_pre_binds[0])
            except Exception as exc:  # noqa: BLE001 - one pod must never stop the scheduler
                log_failure(log, "binding failed", exc, {"pod": pod.key, "node": node_name})
                status = Status.error(repr(exc))
            finally:
                self._reservations.remove(reservation)
            if status is None:
                reservation.undo.pop_all()
        if status is not None:
            self._failed(reservation, status)
            return
        self._bound(reservation)
        self._queue.activate_all(reservation.state.pods_to_activate)
        try:
            await reservation.profile.run_post_bind(reservation.state, pod, node_name)
        except Exception:  # the pod is bound: whoever is only told cannot change that
            log.exception("PostBind failed", extra={"pod": pod.key, "node": node_name})

    async def _steps(self, reservation: Reservation) -> Status | None:
        pod, node_name = reservation.assumed, reservation.assumed.node_name
        profile = reservation.profile
        pre_binds = profile.run_pre_bind_pre_flight(reservation.state, pod, node_name)
        if isinstance(pre_binds, Status):
            return pre_binds
        if pre_binds or reservation.waiting is not None:
            await self._announce(reservation)
        if reservation.waiting is not None:
            began = self._clock.monotonic()
            status = await reservation.waiting.wait(self._clock)
            code = Code.SUCCESS if status is None else status.code
            self._metrics.waited_on_permit(code.label, seconds=self._clock.monotonic() - began)
            if status is not None:
                return status
        self._queue.done(pod.uid)
        reservation.stage = Stage.PRE_BIND
        status = await profile.run_pre_binds(
            pre_binds, reservation.state, pod, node_name, running=reservation.running_pre_binds
        )
        reservation.stage = Stage.BIND
        if status is None:
            status = await self._bind(reservation)
        return status

    async def _bind(self, reservation: Reservation) -> Status | None:
        """Have the pod bound: by the extender that does it, else by Bind plugins (spec §9.6)."""
        pod, node_name = reservation.assumed, reservation.assumed.node_name
        binder = self._extenders.binder(pod.pod)
        if binder is not None:
            try:
                await binder.bind(pod, node_name)
                return None
            except ExtenderError as exc:
                if await self._was_bound(reservation, exc):
                    return None
                if not binder.is_ignorable:
                    return Status.error(str(exc))
                log.warning(
                    "extender failed to bind and is ignored",
                    extra={"pod": pod.key, "extender": binder.name, "error": str(exc)},
                )
        return await reservation.profile.run_bind(reservation.state, pod, node_name)

    async def _was_bound(self, reservation: Reservation, error: ExtenderError) -> bool:
        """Look whether an extender that failed bound the pod nevertheless.

        Its room must not be given to another while it may be on the node.
        """
        pod, node_name = reservation.assumed, reservation.assumed.node_name
        if not error.may_have_acted or await self._reporter.bound_node(pod.pod) != node_name:
            return False
        log.info("extender had bound the pod", extra={"pod": pod.key, "error": str(error)})
        return True

    async def _announce(self, reservation: Reservation) -> None:
        """Tell others where the pod is bound for, since it may take long until it is (spec §2.9).

        Waited for: a nomination that is written after the binding would stay for good.
        """
        pod, node_name = reservation.assumed, reservation.assumed.node_name
        if pod.pod.status.nominated_node_name == node_name:
            return
        try:
            await self._reporter.patch_pod_status(pod.pod, {"nominatedNodeName": node_name})
        except ApiError as exc:
            log.warning(
                "could not nominate the node of a pod that is being bound",
                extra={"pod": pod.key, "node": node_name, "error": str(exc)},
            )

    def _bound(self, reservation: Reservation) -> None:
        pod, node_name = reservation.assumed, reservation.assumed.node_name
        self.last_bound_at = self._clock.monotonic()
        if not self.scheduled:
            self.first_bound_at = self.last_bound_at
        self.scheduled += 1
        queued, now = reservation.queued, self._clock.now()
        first_tried = queued.initial_attempt_timestamp
        self._metrics.scheduled(
            reservation.profile.name,
            seconds=self.last_bound_at - reservation.started,
            attempts=queued.attempts,
            waited=0.0 if first_tried is None else now - first_tried,
            after_flush=queued.was_flushed_from_unschedulable,
        )
        log.debug(
            "pod bound",
            extra={"pod": pod.key, "node": node_name, "attempts": reservation.queued.attempts},
        )
        self._reporter.event(
            pod.pod,
            profile=reservation.profile.name,
            type="Normal",
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {pod.key} to {node_name}",
        )

    def _failed(self, reservation: Reservation, status: Status) -> None:
        """The room is given back already; wake who waits for it, and requeue the pod (§2.9)."""
        pod = reservation.assumed
        late = reservation.stage is not Stage.PERMIT
        decision = Decision(
            reservation.queued.pod_info,
            reservation.profile.name,
            Diagnosis(1) if late or not status.is_rejected else refused_late(status),
            status=status,
            nominated_node="",
        )
        left = pod.pod.assigned_to(pod.node_name)
        if not status.is_rejected:
            self._queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, old=left)
        self._failures.fail(
            reservation.queued,
            reservation.profile,
            decision,
            started=reservation.started,
            message=status.message if late else None,
        )
        if status.is_rejected:
            uid = pod.uid
            self._queue.move_all_to_active_or_backoff_queue(
                ASSIGNED_POD_DELETE,
                old=left,
                pre_check=lambda waiting: waiting.metadata.uid != uid,
            )
