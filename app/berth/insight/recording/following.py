"""Attempts and bindings of a replay: decided anew, then as recorded.

What is decided anew is compared with the recording. Then what was recorded happens, so that the
next decision is made on the state of the recording, and differences do not add up. Pods that are
scheduled together are an exception: of them what is decided anew happens.
"""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

from berth.insight.explain.comparison import Chosen, Comparison, compare
from berth.insight.recording.difference import Difference, fields_that_differ, has_same_outcome
from berth.insight.recording.lines import Attempt, Bound, Decision, Evicted
from berth.insight.recording.replayed_api import Meetings
from berth.scheduler import schedule_one
from berth.scheduler.binding import Binding
from berth.scheduler.binding_cycle import BindingCycle
from berth.scheduler.cache.cache import Cache
from berth.scheduler.cycle import Cycle
from berth.scheduler.decisions import Decisions
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.interface import PostFilterResult
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.preemption.candidate import Candidate, Preemption
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.outcome import (
    Failed,
    Outcome,
    Placed,
    Unschedulable,
    nomination_of,
    refused_placement,
)
from berth.scheduler.preemption import PendingPreemption, Preemptions
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.reservation import Reservation, assume, assumed_on
from berth.scheduler.result import Result
from berth.scheduler.schedule_pod import Select, evaluate_pod, smallest_name


class Following:
    """Compares one attempt after the other with the recording."""

    def __init__(self, *, is_strict: bool) -> None:
        """*is_strict*: nothing at all may differ, since the same decides again."""
        self.differences: list[Difference] = []
        self.decisions = 0
        self.is_strict = is_strict
        self._attempt: Attempt | None = None
        self._left: dict[str, Decision] = {}
        """What was recorded of the attempt and not yet decided anew, by UID."""
        self._done: set[str] = set()

    def begin(self, attempt: Attempt) -> None:
        """*attempt* is about to be made again."""
        self.end()
        self._attempt = attempt
        self._left = {decision.uid: decision for decision in attempt.decisions}
        self._done = set()

    def end(self) -> None:
        """All is decided that will be."""
        for decision in [*self._left.values()]:
            self._compare(decision, None, "it is not tried")
        self._attempt = None

    def recorded(self, uid: str) -> Decision | None:
        """Return what was decided about the pod in the attempt that is made again."""
        attempt = self._attempt
        decisions = attempt.decisions if attempt is not None else ()
        return next((decision for decision in decisions if decision.uid == uid), None)

    def decided(self, now: Decision, why: str = "", comparison: Comparison | None = None) -> None:
        """Compare what is decided *now*; once it is compared, what happens then is not."""
        if now.uid not in self._done and self._attempt is not None:
            self._compare(self.recorded(now.uid), now, why, comparison)

    def _compare(
        self,
        recorded: Decision | None,
        now: Decision | None,
        why: str,
        comparison: Comparison | None = None,
    ) -> None:
        known = recorded or now
        assert known is not None
        assert self._attempt is not None
        self._done.add(known.uid)
        self._left.pop(known.uid, None)
        self.decisions += 1
        is_same = (
            not fields_that_differ(recorded, now)
            if self.is_strict
            else has_same_outcome(recorded, now)
        )
        if not is_same:
            number, t = self._attempt.number, self._attempt.t
            self.differences.append(Difference(number, t, recorded, now, why, comparison))


class ReplayedScheduler(schedule_one.Scheduler):
    """Decides anew, and then does what was recorded."""

    following: Following
    """Set by whoever makes this."""

    def attempt(self, queued: QueuedPodInfo) -> schedule_one.Attempt | None:
        made = super().attempt(queued)
        return self._as_recorded(made) if made is not None else None

    async def _attempt_with_extenders(self, queued: QueuedPodInfo) -> schedule_one.Attempt | None:
        made = await super()._attempt_with_extenders(queued)
        return self._as_recorded(made) if made is not None else None

    def _as_recorded(self, made: schedule_one.Attempt) -> schedule_one.Attempt | None:
        """Compare what was decided anew; return what was recorded."""
        queued = made.queued
        if made.gang is not None:
            return made
        recorded = self.following.recorded(queued.uid)
        if recorded is None:
            self.following.decided(self._decision(made.outcome, queued))
            self.queue.done(queued.uid)
            return None
        now = self._decision(made.outcome, queued)
        if _choice(now) == _choice(recorded):
            return made
        self.following.decided(now, comparison=self._compared(made, recorded))
        return made._replace(outcome=_recorded_outcome(recorded, made, self.cache))

    def _compared(self, made: schedule_one.Attempt, recorded: Decision) -> Comparison:
        """Look at all nodes once more, and compare what is best with what was chosen."""
        cycle = self.begin_cycle(made.cycle.profile, made.queued)
        outcome = evaluate_pod(cycle, select=_drawn(made.outcome, cycle.nodes))
        chosen = Chosen(recorded.node or recorded.refused, recorded.message)
        return compare(outcome, cycle.nodes, chosen)

    def prepare_for_binding_cycle(
        self, queued: QueuedPodInfo, cycle: Cycle, placed: Placed, started: float
    ) -> Reservation | Unschedulable | Failed:
        reserved = super().prepare_for_binding_cycle(queued, cycle, placed, started)
        recorded = self.following.recorded(queued.uid)
        if recorded is None or placed.node_name not in (recorded.node, recorded.refused):
            return reserved
        if recorded.node and not isinstance(reserved, Reservation):
            self.following.decided(self._decision(reserved, queued), reserved.message)
            return self._assume(queued, cycle, placed, started)
        if recorded.refused and isinstance(reserved, Reservation):
            self.following.decided(self._decision(placed, queued), "nothing refuses the node")
            reserved.undo.close()
            code = Code.ERROR if recorded.result == Result.ERROR else Code.UNSCHEDULABLE
            plugin = next(iter(recorded.plugins), "")
            return refused_placement(placed, Status(code, (recorded.message,), plugin))
        return reserved

    def _assume(
        self, queued: QueuedPodInfo, cycle: Cycle, placed: Placed, started: float
    ) -> Reservation | Unschedulable | Failed:
        """Count the pod on its node, whatever Reserve and Permit say."""
        assumed = assumed_on(queued.pod_info, placed.node_name, cycle.state)
        undo = ExitStack()
        status = assume(assumed, self.cache, undo)
        if status is not None:
            return refused_placement(placed, status)
        self.queue.assumed(assumed)
        return Reservation(queued, cycle.profile, CycleState(), assumed, started, undo)

    def _decision(self, outcome: Outcome, queued: QueuedPodInfo) -> Decision:
        records = Decisions(capacity=1, monotonic=self.clock.monotonic, ranks_nodes=False)
        record = records.add(outcome, nodes=self.cache.table, attempt=queued.attempts, at=0.0)
        return Decision.of(record, outcome)


def _drawn(outcome: Outcome, nodes: NodeTable) -> Select:
    """Return a *select* that takes the node of *outcome* where that is one of the best."""
    row = nodes.row_of.get(outcome.node_name) if isinstance(outcome, Placed) else None
    otherwise = smallest_name(nodes)
    return lambda rows: row if row is not None and row in rows else otherwise(rows)


def _choice(decision: Decision) -> tuple[object, ...]:
    """Return what was chosen for a pod, before Reserve and Permit had their say."""
    node = decision.node or decision.refused
    return (node,) if node else (decision.result, decision.victims, decision.nominated)


def _recorded_outcome(recorded: Decision, made: schedule_one.Attempt, cache: Cache) -> Outcome:
    """Return the outcome that *recorded* tells of, as far as it matters to what follows."""
    pod, profile = made.queued.pod_info, made.cycle.profile.name
    node = recorded.node or recorded.refused
    if node:
        return Placed(pod, profile, made.outcome.found, node)
    diagnosis = Diagnosis(recorded.num_nodes)
    diagnosis.pending_plugins.update(recorded.pending)
    diagnosis.unschedulable_plugins.update(set(recorded.plugins) - set(recorded.pending))
    nowhere, nomination = FeasibleNodes.nowhere(diagnosis), nomination_of(recorded.nominated)
    if recorded.result == Result.ERROR:
        return Failed(pod, profile, nowhere, Status.error(recorded.message), nomination)
    return Unschedulable(
        pod,
        profile,
        nowhere,
        nomination,
        post_filter=_preemption(recorded, cache),
        words=recorded.message,
    )


def _preemption(recorded: Decision, cache: Cache) -> PostFilterResult | None:
    row = cache.table.row_of.get(recorded.nominated or "")
    if row is None or not recorded.victims:
        return None
    by_key = {info.key: info for info in cache.table.pods[row].values()}
    victims = tuple(by_key[key] for key in recorded.victims if key in by_key)
    if not victims:
        return None
    assert recorded.nominated is not None
    chosen = Candidate(row, recorded.nominated, victims, 0)
    return PostFilterResult(
        None, recorded.nominated, Preemption((chosen,), Diagnosis(0), chosen=chosen)
    )


class ReplayedBindingCycle(BindingCycle):
    """Ends each binding when and how it ended, whatever its plugins come to by then."""

    endings: Meetings[Bound]
    """By UID of the pod; set by whoever makes this."""

    async def steps(self, binding: Binding) -> Status | None:
        steps = asyncio.create_task(super().steps(binding), name=f"steps of {binding.pod.key}")
        ending = asyncio.create_task(self.endings.wait(binding.pod.uid))
        preempted = False
        try:
            while not ending.done():
                try:
                    await asyncio.wait([ending])
                except asyncio.CancelledError:
                    task = asyncio.current_task()
                    if preempted or not binding.is_preempted or task is None:
                        raise  # the recording is over
                    preempted = True
                    task.uncancel()
                    steps.cancel()
        finally:
            for running in (steps, ending):
                running.cancel()
            await asyncio.gather(steps, return_exceptions=True)
        bound = ending.result()
        self._queue.done(binding.pod.uid)
        return Status(Code(bound.code), bound.reasons, bound.plugin) if bound.code else None


class ReplayedPreemptions(Preemptions):
    """Goes on after evictions when that was done."""

    evictions: Meetings[Evicted]
    """By UID of the pod or group; set by whoever makes this."""

    async def evict_all(
        self, pending: PendingPreemption, victims: Sequence[PodInfo], queue: SchedulingQueue
    ) -> Sequence[PodInfo]:
        try:
            gone = await super().evict_all(pending, victims, queue)
        except Exception:  # not if cancelled: the recording is over
            await self.evictions.wait(pending.uid)
            raise
        await self.evictions.wait(pending.uid)
        return gone
