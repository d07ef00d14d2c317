"""Carries preemption out: evicts the victims, while the preemptor waits (spec §6.7).

::

    PostFilter chose a candidate --prepare_candidate_async--> [pending] --run--> prepare_candidate:
                                                         clear lower nominations
                                                         evict all victims but the last, together
                                                         evict the last
    preemptor gated by PreEnqueue  <---------------------- until the watch tells that it leaves

What was decided in the scheduling cycle is done here beside it. The preemptor is not bound: it
goes through a cycle of its own once its victims are gone, and until then its nomination keeps the
room from pods of equal or lower priority.

Decision (2026-11): victims that cannot be evicted are tried again, with pauses, before the
preemptor may look elsewhere. kube-scheduler lets it try another node at once, which evicts other
pods while the first ones leave; when the API server fails, that repeats as fast as it can.

Decision (2026-11): the nomination is on the API server before the first victim is evicted; in
kube-scheduler the two race. A leader that ends in between would leave room of which its successor
does not know what it is for: that one would evict other pods on another node.

Decision (2026-11): the preemptor waits until the watch tells that its last victim leaves, not only
until the deletion is answered. In between, its node looks full, and as if nobody left: an attempt
would evict more pods elsewhere, as one of kube-scheduler's does.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from berth.kube.client.errors import ApiError, log_failure
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import GroupKey, PodGroup, group_of
from berth.runtime.clock import Clock
from berth.scheduler.binding import Bindings
from berth.scheduler.framework.deferred_resize import waits_to_be_resized
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import (
    DISRUPTION_TARGET,
    PREEMPTION_BY_SCHEDULER,
    Candidate,
)
from berth.scheduler.journal import NO_JOURNAL, Journal
from berth.scheduler.metrics.scheduler_metrics import Preemptor, SchedulerMetrics
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.reporter import Reporter

log = logging.getLogger(__name__)

IN_MEMORY: Final = " (in kube-scheduler memory)."

PAUSES: Final = (1.0, 2.0, 4.0)
"""Seconds before evictions that failed are tried again; then the preemption is given up."""


class Evictor(Protocol):
    """The API, as far as victims are concerned."""

    async def evict(self, pod: Pod, condition: Condition, *, nominated: Pod | None = None) -> bool:
        """Give *pod* the condition, then delete it; False if it was gone.

        The status of *nominated*, for which it is, is written first. Raises the API's errors.
        """
        ...


CLUSTER: Final = "cluster"
"""What is said in place of a node where victims leave many nodes for a group."""


class PendingPreemption(msgspec.Struct, eq=False):
    """Some victims to evict, none of which was leaving already."""

    preemptor: PodInfo
    """Of a group the first pod."""
    profile: str
    node: str
    victims: tuple[PodInfo, ...]
    last_victim: PodInfo | None = None
    """The victim that alone remains to be evicted; None while there are others."""
    group: PodGroup | None = None
    """The group that preempts as one; None: a pod preempts alone."""
    waiting: tuple[PodInfo, ...] = ()
    """All pods of the group that wait for the room."""
    deleted: list[PodInfo] = msgspec.field(default_factory=list)
    """The victims that the API server has taken the deletion of."""
    wakes: bool = False
    """Whether the deletion of the last victim wakes the preemptor; it does not if that one was gone
    before."""
    is_carried_out: bool = False
    """Whether nothing is left to be done for it."""

    @property
    def uid(self) -> str:
        return self.preemptor.uid if self.group is None else self.group.metadata.uid

    @property
    def kind(self) -> Preemptor:
        """What the preemptor is, in words of events and conditions."""
        return "pod" if self.group is None else "podgroup"

    @property
    def waiting_pods(self) -> tuple[PodInfo, ...]:
        return (self.preemptor,) if self.group is None else self.waiting


class Preemptions:
    """The preemptions under way.

    They are begun without waiting; :meth:`run`, which somebody must own, carries them out. The
    handle asks :meth:`is_preempting` on behalf of PreEnqueue, so this is made before the queue.
    """

    def __init__(
        self,
        *,
        pods: Mapping[str, Pod],
        bindings: Bindings,
        reporter: Reporter,
        evictor: Evictor,
        metrics: SchedulerMetrics,
        clock: Clock,
        journal: Journal = NO_JOURNAL,
        evicted_with: Callable[[GroupKey], PodGroup | None] = lambda _group: None,
    ) -> None:
        """*pods* is the informer's store, by namespace/name: what the API says now.

        *evicted_with* returns the group that is evicted as a whole if a pod of a PodGroup is; None:
        there is no such group.
        """
        self._evicted_with = evicted_with
        self._pods = pods
        self._bindings = bindings
        self._reporter = reporter
        self._evictor = evictor
        self._metrics = metrics
        self._clock = clock
        self._journal = journal
        self._by_preemptor: dict[str, PendingPreemption] = {}
        self._by_last_victim: dict[str, list[PendingPreemption]] = {}
        """By UID of the victim, while the watch has not told that it leaves."""
        self._victims_of_groups: dict[str, list[PodInfo]] = {}
        """By UID of the group, those that were deleted for it and may still be there."""
        self._to_prepare: deque[PendingPreemption] = deque()
        self._some = asyncio.Event()

    def prepare_candidate_async(
        self, preemptor: PodInfo, *, profile: str, chosen: Candidate
    ) -> None:
        """Have the victims of *chosen* evicted, but for those that are leaving already.

        The preemptor is gated until then. An earlier preemption of its own gates it no more.
        """
        staying = tuple(v for v in chosen.victims if v.pod.metadata.deletion_timestamp is None)
        if staying:
            self._metrics.victims_chosen(len(chosen.victims))
            names = {group_of(victim.pod) for victim in chosen.victims} - {None}
            groups = {group.key for name in names if name and (group := self._evicted_with(name))}
            self._metrics.group_preemption.chosen(
                "pod",
                victims=len(chosen.victims),
                groups=len(groups),
                pdb_violations=chosen.pdb_violations,
            )
            self._begin(PendingPreemption(preemptor, profile, chosen.node, staying))

    def prepare_group_async(
        self,
        group: PodGroup,
        waiting: Sequence[PodInfo],
        *,
        profile: str,
        victims: Sequence[PodInfo],
    ) -> None:
        """Do the same for the *waiting* pods of *group*, which preempt as one (spec G9.6)."""
        staying = tuple(v for v in victims if v.pod.metadata.deletion_timestamp is None)
        if staying:
            pods = tuple(waiting)
            self._begin(
                PendingPreemption(pods[0], profile, CLUSTER, staying, group=group, waiting=pods)
            )

    def _begin(self, pending: PendingPreemption) -> None:
        self._by_preemptor[pending.uid] = pending
        self._to_prepare.append(pending)
        self._some.set()

    async def prepare_candidate_now(
        self, preemptor: PodInfo, *, profile: str, chosen: Candidate, queue: SchedulingQueue
    ) -> Exception | None:
        """Evict the victims of *chosen* side by side; return the first error, if there is any.

        Without the feature gate SchedulerAsyncPreemption, this is part of the attempt (spec §6.7):
        the preemptor is not gated, and what fails is not tried again.
        """
        staying = tuple(v for v in chosen.victims if v.pod.metadata.deletion_timestamp is None)
        pending = PendingPreemption(preemptor, profile, chosen.node, staying)
        answers = await asyncio.gather(*(self._try_to_evict(pending, victim) for victim in staying))
        errors = [answer for answer in answers if isinstance(answer, Exception)]
        if errors:
            fields = {"pod": preemptor.key, "node": chosen.node, "failed": len(errors)}
            log_failure(log, "eviction failed", errors[0], fields)
            return errors[0]
        self._metrics.victims_chosen(len(chosen.victims))
        self._clear_lower_nominations(pending, queue)
        return None

    @property
    def is_idle(self) -> bool:
        return not self._by_preemptor

    def is_preempting(self, uid: str) -> bool:
        """Whether it is too early to try the preemptor, a pod or a group.

        It is not when the last victim is seen to go: that may well be heard of before the answer
        to our own request, and nothing wakes the preemptor later. Of that, the queue is told.
        """
        pending = self._by_preemptor.get(uid)
        if pending is None:
            return False
        return pending.last_victim is None or self._stays(pending.last_victim)

    def pod_leaves(self, pod: Pod, queue: SchedulingQueue) -> None:
        """Take note that the watch told that *pod* is gone or being deleted."""
        for pending in self._by_last_victim.pop(pod.metadata.uid, ()):
            if pending.is_carried_out:
                self._end(pending, queue)
            else:
                queue.gate_may_open(pending.preemptor.key)

    def waits_for_victims(self, uid: str) -> bool:
        """Whether victims of the group of this UID are still on their nodes (spec G9.2)."""
        if uid in self._by_preemptor:
            return True
        for group, victims in [*self._victims_of_groups.items()]:
            left = [victim for victim in victims if self._is_on_its_node(victim)]
            if left:
                self._victims_of_groups[group] = left
            else:
                del self._victims_of_groups[group]
        return uid in self._victims_of_groups

    def take(self) -> PendingPreemption | None:
        """Take the oldest one, for :meth:`prepare_candidate`; None if there is none."""
        return self._to_prepare.popleft() if self._to_prepare else None

    async def run(self, queue: SchedulingQueue) -> None:
        """Carry preemptions out as they come, for ever."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._some.wait()
                self._some.clear()
                while pending := self.take():
                    name = f"preempt for {pending.preemptor.key}"
                    tasks.create_task(self.prepare_candidate(pending, queue), name=name)

    async def prepare_candidate(self, pending: PendingPreemption, queue: SchedulingQueue) -> None:
        """Evict the victims; if that fails, let the preemptor, which *queue* has, try again.

        What fails is tried again first, unless the preemptor is gone or has a node by then.
        """
        self._journal.preemption_begins(pending.uid)
        preemptor = pending.preemptor
        started = self._clock.monotonic()
        if pending.group is None:
            self._clear_lower_nominations(pending, queue)
        left: Sequence[PodInfo] = pending.victims
        try:
            for pause in (*PAUSES, None):
                left = await self.evict_all(pending, left, queue)
                if not left or pause is None:
                    break
                await self._clock.sleep(pause)
                if not any(map(self._waits, pending.waiting_pods)):
                    break
                left = [victim for victim in left if self._stays(victim)]
                if not left:
                    break
        except Exception:  # whatever failed, the preemptor must not stay gated
            log.exception("preemption failed", extra={"pod": preemptor.key, "node": pending.node})
        finally:
            if pending.group is not None and pending.deleted:
                self._victims_of_groups[pending.uid] = pending.deleted
            seconds = self._clock.monotonic() - started
            self._metrics.preempted(seconds=seconds, failed=bool(left))
            self._metrics.group_preemption.executed(
                pending.kind, "error" if left else "success", seconds=seconds
            )
            if left:
                self._metrics.evicted_for_nothing(len(pending.victims) - len(left))
            pending.is_carried_out = True
            if left or not self._is_awaited(pending):
                self._end(pending, queue)

    def _is_awaited(self, pending: PendingPreemption) -> bool:
        """Whether the watch has yet to tell what the API server has answered: the last one leaves.

        Of a victim that was evicted in memory it has nothing to tell.
        """
        last = pending.last_victim
        if last is None or pending not in self._by_last_victim.get(last.uid, ()):
            return False
        is_in_memory = pending.wakes and last not in pending.deleted
        return not is_in_memory and self._stays(last)

    def _end(self, pending: PendingPreemption, queue: SchedulingQueue) -> None:
        """Let the preemptor be tried."""
        if self._by_preemptor.get(pending.uid) is pending:
            del self._by_preemptor[pending.uid]
        if (last := pending.last_victim) is not None and last.uid in self._by_last_victim:
            others = [other for other in self._by_last_victim.pop(last.uid) if other is not pending]
            if others:
                self._by_last_victim[last.uid] = others
        if pending.group is not None or not pending.wakes:
            # Of a group most pods were rejected by no plugin: no event would wake them.
            queue.activate(waiting_pod.pod for waiting_pod in pending.waiting_pods)
        else:
            queue.gate_may_open(pending.preemptor.key)

    def _stays(self, victim: PodInfo) -> bool:
        """Whether *victim* is neither gone nor leaving, as far as the watch knows."""
        current = self._current(victim)
        return current is not None and current.metadata.deletion_timestamp is None

    def _is_on_its_node(self, victim: PodInfo) -> bool:
        current = self._current(victim)
        return current is not None and current.spec.node_name == victim.node_name

    def _waits(self, preemptor: PodInfo) -> bool:
        """Whether *preemptor* still waits for a node, or for room on its own to be resized."""
        current = self._current(preemptor)
        if current is None:
            return False
        return not current.spec.node_name or waits_to_be_resized(current)

    def _current(self, pod: PodInfo) -> Pod | None:
        current = self._pods.get(pod.key)
        return current if current is not None and current.metadata.uid == pod.uid else None

    async def evict_all(
        self, pending: PendingPreemption, victims: Sequence[PodInfo], queue: SchedulingQueue
    ) -> Sequence[PodInfo]:
        """Try to evict *victims*, the last one when the others are; return those that remain.

        Raises what is no error of the API.
        """
        try:
            return await self._evict_all(pending, victims, queue)
        finally:
            self._journal.evictions_ended(pending.uid)

    async def _evict_all(
        self, pending: PendingPreemption, victims: Sequence[PodInfo], queue: SchedulingQueue
    ) -> Sequence[PodInfo]:
        *others, last = victims
        answers = await asyncio.gather(*(self._try_to_evict(pending, victim) for victim in others))
        left = self._failed(pending, others, answers)
        if left:
            return [*left, last]
        self._await(pending, last, queue)
        answer = await self._try_to_evict(pending, last)
        pending.wakes = answer is True
        return self._failed(pending, [last], [answer])

    def _await(self, pending: PendingPreemption, last: PodInfo, queue: SchedulingQueue) -> None:
        """From now on the preemptor waits for no more than the *last* victim."""
        pending.last_victim = last
        if not self._stays(last):
            queue.gate_may_open(pending.preemptor.key)
            return
        awaiting = self._by_last_victim.setdefault(last.uid, [])
        if pending not in awaiting:  # as when its deletion failed before
            awaiting.append(pending)

    async def _try_to_evict(self, pending: PendingPreemption, victim: PodInfo) -> bool | Exception:
        """Return what :meth:`_preempt_pod` does, or its error."""
        try:
            return await self._preempt_pod(pending, victim)
        except Exception as exc:  # noqa: BLE001 - looked at when the others have ended, too
            return exc

    def _failed(
        self,
        pending: PendingPreemption,
        victims: Sequence[PodInfo],
        answers: Sequence[bool | Exception],
    ) -> list[PodInfo]:
        """Return the victims whose eviction failed; raise the first error that is not the API's."""
        failed = [
            (victim, answer)
            for victim, answer in zip(victims, answers, strict=True)
            if isinstance(answer, Exception)
        ]
        for _, error in failed:
            if not isinstance(error, ApiError):
                raise error
        if failed:
            victim, error = failed[0]
            fields = {"pod": pending.preemptor.key, "node": pending.node, "victim": victim.key}
            log_failure(log, "eviction failed", error, {**fields, "failed": len(failed)})
        return [victim for victim, _ in failed]

    def _clear_lower_nominations(self, pending: PendingPreemption, queue: SchedulingQueue) -> None:
        """Let pods that the preemptor takes the node from look for another one."""
        for other in queue.nominator.nominated_pods_for_node(pending.node):
            if other.priority < pending.preemptor.priority:
                self._reporter.status(other.pod, condition=None, nominated_node_name="")

    async def _preempt_pod(self, pending: PendingPreemption, victim: PodInfo) -> bool:
        """Evict one pod, with a condition and an event; False if it was gone already."""
        suffix = IN_MEMORY
        if not self._bindings.preempt(victim.uid):
            suffix = ""
            scheduler = pending.preemptor.pod.spec.scheduler_name
            condition = Condition(
                type=DISRUPTION_TARGET,
                status="True",
                reason=PREEMPTION_BY_SCHEDULER,
                message=f"{scheduler}: preempting to accommodate a higher priority {pending.kind}",
                observed_generation=victim.pod.metadata.generation,
            )
            is_nominated = pending.group is None and not pending.preemptor.pod.spec.node_name
            nominated = pending.preemptor.pod if is_nominated else None
            if not await self._evictor.evict(victim.pod, condition, nominated=nominated):
                log.debug("victim was gone", extra={"pod": victim.key, "node": pending.node})
                return False
            pending.deleted.append(victim)
        if log.isEnabledFor(logging.DEBUG):  # as kube-scheduler, which tells of each victim at 2
            preemptor = pending.preemptor.key
            fields = {"pod": victim.key, "node": pending.node, "preemptor": preemptor}
            log.debug("pod preempted", extra=fields)
        self._reporter.event(
            victim.pod,
            profile=pending.profile,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by {pending.kind} {pending.uid} on node {pending.node}{suffix}",
            related=pending.group,
        )
        return True
