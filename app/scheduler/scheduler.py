"""The scheduling cycle: from the queue to a claimed node, one pod at a time (spec §2.1, §2.7)."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import ExitStack

import numpy as np

from app.cache.cache import Cache, CacheError
from app.client.errors import ApiError
from app.clock import Clock
from app.framework.cycle_state import CycleState
from app.framework.diagnosis import Diagnosis
from app.framework.events import ASSIGNED_POD_DELETE
from app.framework.pod_info import PodInfo, QueuedPodInfo
from app.framework.status import Code, Status
from app.metrics.scheduler_metrics import SchedulerMetrics
from app.objects.meta import Condition
from app.objects.pod import Pod
from app.profile.profile import Profile
from app.profile.waiting_pod import WaitingPod
from app.queue.scheduling_queue import SchedulingQueue
from app.scheduler.claim import PREEMPTED, Claim, Claims, Stage
from app.scheduler.decision import Decision
from app.scheduler.decisions import Decisions
from app.scheduler.find_node import NodeFinder
from app.scheduler.preemption import Preemptions
from app.scheduler.reporter import BindingReporter

log = logging.getLogger(__name__)


class Scheduler:
    """Decides for one pod after the other; bindings run beside it as tasks.

    All state it changes (queue, cache) is changed without awaiting, so attempts are atomic.
    """

    def __init__(
        self,
        *,
        profiles: Mapping[str, Profile],
        queue: SchedulingQueue,
        cache: Cache,
        finder: NodeFinder,
        pods: Mapping[str, Pod],
        reporter: BindingReporter,
        decisions: Decisions,
        claims: Claims,
        preemptions: Preemptions,
        metrics: SchedulerMetrics,
        clock: Clock,
    ) -> None:
        """*pods* is the informer's store, by namespace/name: what the API says now."""
        self.profiles = profiles
        self.queue = queue
        self.cache = cache
        self.decisions = decisions
        self._finder = finder
        self._pods = pods
        self._reporter = reporter
        self._claims = claims
        self._preemptions = preemptions
        self._metrics = metrics
        self._clock = clock
        self._bindings: set[asyncio.Task[None]] = set()
        self.scheduled = 0
        """Pods bound since the start; the first and the last at these monotonic times."""
        self.first_bound_at = self.last_bound_at = 0.0

    async def run(self) -> None:
        """Schedule for ever. The loop breathes between attempts, so watches and leases go on."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                queued = self.queue.pop()
                if queued is None:
                    await self.queue.wait_ready()
                    continue
                claim = self.schedule_one(queued)
                if claim is not None:
                    task = tasks.create_task(self.bind(claim), name=f"bind {queued.key}")
                    self._bindings.add(task)
                    task.add_done_callback(self._bindings.discard)
                await asyncio.sleep(0)

    @property
    def binding_count(self) -> int:
        """How many pods are between being claimed and being bound."""
        return len(self._bindings)

    def schedule_one(self, queued: QueuedPodInfo) -> Claim | None:
        """Make one attempt for a popped pod; return its claim, or None if it has to wait."""
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
            self._failed_event(pod, profile, note)
            self.queue.done(queued.uid)
            return None
        if self.cache.is_assumed(queued.uid):
            self.queue.done(queued.uid)
            return None

        started = self._clock.monotonic()
        self.cache.refresh_order()
        state = CycleState()
        nominator = self.queue.nominator
        nominated = {node: nominator.nominated_pods(node) for node in nominator.nodes()}
        decision = self._finder.find(profile, queued.pod_info, state=state, nominated=nominated)
        if decision.status is not None:
            self._finder.make_room(profile, decision, state=state, nominated=nominated)
        self._measure(decision, started)
        claim = None
        if decision.status is None:
            claim = self._claim(queued, profile, state, decision, started)
        else:
            self._preempt(profile, decision)
        self.decisions.add(decision, nodes=self.cache.table, attempt=queued.attempts, at=started)
        if claim is None:
            self._fail(queued, profile, decision, started=started)
        return claim

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

    def _claim(
        self,
        queued: QueuedPodInfo,
        profile: Profile,
        state: CycleState,
        decision: Decision,
        started: float,
    ) -> Claim | None:
        """Take the room on the chosen node; on refusal give all back and word it in *decision*.

        Every step registers its undo before the next one runs (spec §2.7).
        """
        assumed = queued.pod_info.on_node(decision.node_name)
        with ExitStack() as undo:
            status = self._assume(assumed, undo)
            if status is None:
                self.queue.nominator.delete(queued.uid)
                undo.callback(profile.run_unreserve, state, assumed, decision.node_name)
                status = profile.run_reserve(state, assumed, decision.node_name)
            if status is None:
                permit = profile.run_permit(state, assumed, decision.node_name)
                status = permit if isinstance(permit, Status) else None
            if status is None:
                claim = Claim(queued, profile, state, assumed, undo.pop_all(), started)
                if isinstance(permit, dict):
                    claim.waiting = WaitingPod(assumed, permit)
                self._claims.add(claim)
                return claim
        decision.status = status
        decision.node_name = ""
        decision.nominated_node = ""
        if status.is_rejected:
            decision.diagnosis = _refused_late(status)
        return None

    def _assume(self, assumed: PodInfo, undo: ExitStack) -> Status | None:
        """Count the pod on its node until *undo*; an error if the cache has it already."""
        try:
            self.cache.assume_pod(assumed)
        except CacheError as exc:
            return Status.error(str(exc))
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

    # Binding, one task per pod.

    async def bind(self, claim: Claim) -> None:
        """Carry a claim out; whatever goes wrong, one pod must never stop the scheduler."""
        pod, node_name = claim.assumed, claim.assumed.node_name
        claim.task = task = asyncio.current_task()
        with claim.undo:
            try:
                status = await self._run_binding(claim)
            except asyncio.CancelledError:
                if not claim.is_preempted or task is None or task.uncancel():
                    raise
                status = Status.error(PREEMPTED)
            except Exception as exc:
                log.exception("binding failed", extra={"pod": pod.key, "node": node_name})
                status = Status.error(repr(exc))
            finally:
                self._claims.remove(claim)
            if status is None:
                claim.undo.pop_all()
        if status is not None:
            self._binding_failed(claim, status)
            return
        self._bound(claim)
        try:
            await claim.profile.run_post_bind(claim.state, pod, node_name)
        except Exception:  # the pod is bound: whoever is only told cannot change that
            log.exception("PostBind failed", extra={"pod": pod.key, "node": node_name})

    async def _run_binding(self, claim: Claim) -> Status | None:
        pod, node_name = claim.assumed, claim.assumed.node_name
        profile = claim.profile
        pre_binds = profile.run_pre_bind_pre_flight(claim.state, pod, node_name)
        if isinstance(pre_binds, Status):
            return pre_binds
        if pre_binds or claim.waiting is not None:
            await self._announce(claim)
        if claim.waiting is not None:
            began = self._clock.monotonic()
            status = await claim.waiting.wait(self._clock)
            code = Code.SUCCESS if status is None else status.code
            self._metrics.waited_on_permit(code.label, seconds=self._clock.monotonic() - began)
            if status is not None:
                return status
        self.queue.done(pod.uid)
        claim.stage = Stage.PRE_BIND
        status = await profile.run_pre_binds(pre_binds, claim.state, pod, node_name)
        claim.stage = Stage.BIND
        if status is None:
            status = await profile.run_bind(claim.state, pod, node_name)
        return status

    async def _announce(self, claim: Claim) -> None:
        """Tell others where the pod is bound for, since it may take long until it is (spec §2.9).

        Waited for: a nomination that is written after the binding would stay for good.
        """
        pod, node_name = claim.assumed, claim.assumed.node_name
        if pod.pod.status.nominated_node_name == node_name:
            return
        try:
            await self._reporter.patch_pod_status(pod.pod, {"nominatedNodeName": node_name})
        except ApiError as exc:
            log.warning(
                "could not nominate the node of a pod that is being bound",
                extra={"pod": pod.key, "node": node_name, "error": str(exc)},
            )

    def _bound(self, claim: Claim) -> None:
        pod, node_name = claim.assumed, claim.assumed.node_name
        self.last_bound_at = self._clock.monotonic()
        if not self.scheduled:
            self.first_bound_at = self.last_bound_at
        self.scheduled += 1
        queued, now = claim.queued, self._clock.now()
        first_tried = queued.initial_attempt_timestamp
        self._metrics.scheduled(
            claim.profile.name,
            seconds=self.last_bound_at - claim.started,
            attempts=queued.attempts,
            waited=0.0 if first_tried is None else now - first_tried,
            after_flush=queued.was_flushed_from_unschedulable,
        )
        log.debug(
            "pod bound",
            extra={"pod": pod.key, "node": node_name, "attempts": claim.queued.attempts},
        )
        self._reporter.event(
            pod.pod,
            profile=claim.profile.name,
            type="Normal",
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {pod.key} to {node_name}",
        )

    def _binding_failed(self, claim: Claim, status: Status) -> None:
        """The room is given back already; wake who waits for it, and requeue the pod (§2.9)."""
        pod = claim.assumed
        late = claim.stage is not Stage.PERMIT
        decision = Decision(
            claim.queued.pod_info,
            claim.profile.name,
            Diagnosis(1) if late or not status.is_rejected else _refused_late(status),
            status=status,
            nominated_node="",
        )
        left = pod.pod.assigned_to(pod.node_name)
        if not status.is_rejected:
            self.queue.move_all(ASSIGNED_POD_DELETE, old=left)
        self._fail(
            claim.queued,
            claim.profile,
            decision,
            started=claim.started,
            message=status.message if late else None,
        )
        if status.is_rejected:
            uid = pod.uid
            self.queue.move_all(
                ASSIGNED_POD_DELETE,
                old=left,
                pre_check=lambda waiting: waiting.metadata.uid != uid,
            )

    # Failure (spec §2.10): queue first, then the event, then the condition.

    def _fail(
        self,
        queued: QueuedPodInfo,
        profile: Profile,
        decision: Decision,
        *,
        started: float,
        message: str | None = None,
    ) -> None:
        status = decision.status
        assert status is not None, queued.key
        text = decision.message if message is None else message
        rejected = status.code is not Code.ERROR
        self._metrics.failed(
            profile.name,
            "unschedulable" if rejected else "error",
            seconds=self._clock.monotonic() - started,
            plugins=decision.diagnosis.unschedulable_plugins | decision.diagnosis.pending_plugins,
        )
        log.debug("pod not scheduled", extra={"pod": queued.key, "why": text})
        queued.unschedulable_plugins = set(decision.diagnosis.unschedulable_plugins)
        queued.pending_plugins = set(decision.diagnosis.pending_plugins)
        if decision.is_no_nodes or not rejected:
            queued.unschedulable_plugins.clear()
            queued.pending_plugins.clear()
        current = self._pods.get(queued.key)
        if current is None or current.spec.node_name:
            self.queue.done(queued.uid)
        elif current.metadata.uid != queued.uid:
            self.queue.done(queued.uid)
            return
        else:
            if current is not queued.pod:
                queued.pod_info = PodInfo(current)
            self.queue.add_unschedulable_if_not_present(queued)
            self.queue.nominator.add(queued.pod_info, node_name=decision.nominated_node)
        pod = queued.pod
        self._failed_event(pod, profile, text)
        condition = Condition(
            type="PodScheduled",
            status="False",
            reason="Unschedulable" if rejected else "SchedulerError",
            message=text,
            observed_generation=pod.metadata.generation,
        )
        if current is not None:
            self._reporter.status(
                pod, condition=condition, nominated_node_name=decision.nominated_node
            )

    def _failed_event(self, pod: Pod, profile: Profile, note: str) -> None:
        self._reporter.event(
            pod,
            profile=profile.name,
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=note,
        )


def _refused_late(status: Status) -> Diagnosis:
    """Tell a refusal by Reserve or Permit as if the cluster were one node (spec §2.7, §2.9)."""
    diagnosis = Diagnosis(1, statuses={0: status})
    diagnosis.unschedulable_plugins.add(status.plugin)
    return diagnosis
