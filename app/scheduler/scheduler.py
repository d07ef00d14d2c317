"""The scheduling cycle: from the queue to a claimed node, one pod at a time (spec §2.1, §2.7)."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from app.cache.cache import Cache
from app.clock import Clock
from app.framework.cycle_state import CycleState
from app.framework.diagnosis import Diagnosis
from app.framework.events import ASSIGNED_POD_DELETE
from app.framework.pod_info import PodInfo, QueuedPodInfo
from app.framework.status import Code, Status
from app.objects.meta import Condition
from app.objects.pod import Pod
from app.profile.profile import Profile
from app.queue.scheduling_queue import SchedulingQueue
from app.scheduler.decision import Decision
from app.scheduler.decisions import Decisions
from app.scheduler.find_node import NodeFinder

log = logging.getLogger(__name__)


class Reporter(Protocol):
    """Where the scheduler's words about a pod go; nothing here waits."""

    def event(
        self, pod: Pod, *, profile: str, type: str, reason: str, action: str, note: str
    ) -> None:
        """Record an event on *pod* in the name of *profile*."""

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        """Have the pod's status say so; None leaves that part alone."""


@dataclass(slots=True)
class Claim:
    """A pod that has room on a node, and how to give the room back."""

    queued: QueuedPodInfo
    profile: Profile
    state: CycleState
    assumed: PodInfo
    undo: ExitStack
    started: float


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
        reporter: Reporter,
        decisions: Decisions,
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
        decision = self._finder.find(
            profile,
            queued.pod_info,
            state=state,
            nominated={node: nominator.nominated_pods(node) for node in nominator.nodes()},
        )
        claim = None
        if decision.status is None:
            claim = self._claim(queued, profile, state, decision, started)
        else:
            self._post_filter(profile, state, decision)
        self.decisions.add(decision, nodes=self.cache.table, attempt=queued.attempts, at=started)
        if claim is None:
            self._fail(queued, profile, decision)
        return claim

    def _post_filter(self, profile: Profile, state: CycleState, decision: Decision) -> None:
        """Let PostFilter plugins make room for a pod that fits nowhere (spec §2.8)."""
        status = decision.status
        if status is None or not status.is_rejected or decision.is_no_nodes:
            decision.nominated_node = ""
            return
        result = profile.run_post_filters(state, decision.pod, self.cache.table, decision.diagnosis)
        if result is None:
            decision.nominated_node = ""
            return
        decision.nominated_node = result.nominated_node
        if result.status is not None:
            decision.post_filter_message = result.status.message

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
            self.cache.assume_pod(assumed)
            undo.callback(self.cache.forget_pod, assumed)
            self.queue.nominator.delete(queued.uid)
            undo.callback(profile.run_unreserve, state, assumed, decision.node_name)
            status = profile.run_reserve(state, assumed, decision.node_name)
            if status is None:
                permit = profile.run_permit(state, assumed, decision.node_name)
                status = permit if isinstance(permit, Status) else None
            if status is None:
                return Claim(queued, profile, state, assumed, undo.pop_all(), started)
        decision.status = status
        decision.node_name = ""
        decision.nominated_node = ""
        if status.is_rejected:
            # Told as if the cluster were this one node (spec §2.7).
            decision.diagnosis = Diagnosis(1, statuses={0: status})
            decision.diagnosis.unschedulable_plugins.add(status.plugin)
        return None

    # Binding, one task per pod.

    async def bind(self, claim: Claim) -> None:
        """Carry a claim out; whatever goes wrong, one pod must never stop the scheduler."""
        pod, node_name = claim.assumed, claim.assumed.node_name
        with claim.undo:
            try:
                status = await self._run_binding(claim)
            except asyncio.CancelledError:
                raise
            except Exception as exc:
                log.exception("binding failed", extra={"pod": pod.key, "node": node_name})
                status = Status.error(repr(exc))
            if status is None:
                claim.undo.pop_all()
        if status is None:
            self._bound(claim)
        else:
            self._binding_failed(claim, status)

    async def _run_binding(self, claim: Claim) -> Status | None:
        pod, node_name = claim.assumed, claim.assumed.node_name
        self.queue.done(pod.uid)
        status = await claim.profile.run_pre_bind(claim.state, pod, node_name)
        if status is None:
            status = await claim.profile.run_bind(claim.state, pod, node_name)
        return status

    def _bound(self, claim: Claim) -> None:
        pod, node_name = claim.assumed, claim.assumed.node_name
        self.last_bound_at = self._clock.monotonic()
        if not self.scheduled:
            self.first_bound_at = self.last_bound_at
        self.scheduled += 1
        log.info(
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
        decision = Decision(
            claim.queued.pod_info,
            claim.profile.name,
            Diagnosis(1),
            status=Status.error(status.message) if not status.is_rejected else status,
            nominated_node="",
        )
        if not status.is_rejected:
            self.queue.move_all(ASSIGNED_POD_DELETE, old=pod.pod)
        self._fail(claim.queued, claim.profile, decision, message=status.message)
        if status.is_rejected:
            uid = pod.uid
            self.queue.move_all(
                ASSIGNED_POD_DELETE,
                old=pod.pod,
                pre_check=lambda waiting: waiting.metadata.uid != uid,
            )

    # Failure (spec §2.10): queue first, then the event, then the condition.

    def _fail(
        self,
        queued: QueuedPodInfo,
        profile: Profile,
        decision: Decision,
        *,
        message: str | None = None,
    ) -> None:
        status = decision.status
        assert status is not None, queued.key
        text = decision.message if message is None else message
        rejected = status.code is not Code.ERROR
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
