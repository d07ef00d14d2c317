"""Carries preemption out: victims are told and deleted, while the preemptor waits (spec §6.7).

::

    PostFilter chose a node --order--> [orders] --run--> clear lower nominations
                                                         evict all victims but the last, together
                                                         evict the last
    preemptor gated by PreEnqueue  <---------------------- until then

What was decided in the scheduling cycle is done here beside it. The preemptor is not bound: it
goes through a cycle of its own once its victims are gone, and until then its nomination keeps the
room from pods of equal or lower priority.

Decision (2026-11): victims that cannot be evicted are tried again, with pauses, before the
preemptor may look elsewhere. kube-scheduler lets it try another node at once, which evicts other
pods while the first ones leave; when the API server fails, that repeats as fast as it can.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from berth.client.errors import ApiError, log_failure
from berth.clock import Clock
from berth.framework.pod_info import PodInfo
from berth.framework.preemption.candidate import Candidate
from berth.framework.preemption.eligibility import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from berth.metrics.scheduler_metrics import SchedulerMetrics
from berth.objects.meta import Condition
from berth.objects.pod import Pod
from berth.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.binding import Bindings
from berth.scheduler.reporter import Reporter

log = logging.getLogger(__name__)

PodLookup = Callable[[str], Pod | None]

IN_MEMORY: Final = " (in kube-scheduler memory)."

PAUSES: Final = (1.0, 2.0, 4.0)
"""Seconds before evictions that failed are tried again; then the preemption is given up."""


class Evictor(Protocol):
    """The API, as far as victims are concerned."""

    async def evict(self, pod: Pod, condition: Condition) -> bool:
        """Give *pod* the condition, then delete it; False if it was gone.

        Raises the API's errors.
        """
        ...


@dataclass(slots=True, eq=False)
class Gate:
    """Keeps a preemptor from being tried while its victims are evicted."""

    last: PodInfo | None = None
    """The victim that alone remains to be evicted; None while there are others."""


@dataclass(frozen=True, slots=True)
class Order:
    """Some victims to evict, none of which was leaving already."""

    preemptor: PodInfo
    profile: str
    node: str
    victims: tuple[PodInfo, ...]
    gate: Gate


class PreemptionsUnderWay:
    """For which pods victims are being evicted. The handle asks it on behalf of PreEnqueue."""

    def __init__(self, pod_lookup: PodLookup) -> None:
        self._pod_lookup = pod_lookup
        self._gates: dict[str, Gate] = {}

    def begin(self, uid: str) -> Gate:
        """Gate the preemptor until :meth:`end`, in place of an earlier gate of its own."""
        gate = self._gates[uid] = Gate()
        return gate

    def end(self, uid: str, gate: Gate) -> None:
        """Take *gate* away, unless another is in its place."""
        if self._gates.get(uid) is gate:
            del self._gates[uid]

    def __len__(self) -> int:
        """The number of pods that victims are being evicted for."""
        return len(self._gates)

    def is_preempting(self, uid: str) -> bool:
        """Whether it is too early to try the preemptor.

        It is not when the last victim is seen to go: that may well be heard of before the answer
        to our own request, and nothing wakes the preemptor later.
        """
        gate = self._gates.get(uid)
        return gate is not None and (gate.last is None or self.stays(gate.last))

    def stays(self, victim: PodInfo) -> bool:
        """Whether *victim* is neither gone nor leaving, as far as the watch has told."""
        current = self._current(victim)
        return current is not None and current.metadata.deletion_timestamp is None

    def waits(self, preemptor: PodInfo) -> bool:
        """Whether *preemptor* still waits for a node."""
        current = self._current(preemptor)
        return current is not None and not current.spec.node_name

    def _current(self, pod: PodInfo) -> Pod | None:
        found = self._pod_lookup(pod.key)
        return found if found is not None and found.metadata.uid == pod.uid else None


class Preemptions:
    """Takes orders without waiting; :meth:`run`, which somebody must own, carries them out."""

    def __init__(
        self,
        *,
        under_way: PreemptionsUnderWay,
        queue: SchedulingQueue,
        bindings: Bindings,
        reporter: Reporter,
        evictor: Evictor,
        metrics: SchedulerMetrics,
        clock: Clock,
    ) -> None:
        self._under_way = under_way
        self._queue = queue
        self._bindings = bindings
        self._reporter = reporter
        self._evictor = evictor
        self._metrics = metrics
        self._clock = clock
        self._orders: deque[Order] = deque()
        self._ordered = asyncio.Event()

    def order(self, preemptor: PodInfo, *, profile: str, chosen: Candidate) -> None:
        """Have the victims of *chosen* evicted, but for those that are leaving already."""
        staying = tuple(v for v in chosen.victims if v.pod.metadata.deletion_timestamp is None)
        if staying:
            self._metrics.victims_chosen(len(chosen.victims))
            gate = self._under_way.begin(preemptor.uid)
            self._orders.append(Order(preemptor, profile, chosen.node, staying, gate))
            self._ordered.set()

    @property
    def is_idle(self) -> bool:
        return not len(self._under_way)

    def take(self) -> Order | None:
        """Take the oldest order, for :meth:`carry_out`; None if there is none."""
        return self._orders.popleft() if self._orders else None

    async def run(self) -> None:
        """Carry orders out as they come, for ever."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._ordered.wait()
                self._ordered.clear()
                while order := self.take():
                    tasks.create_task(
                        self.carry_out(order), name=f"preempt for {order.preemptor.key}"
                    )

    async def carry_out(self, order: Order) -> None:
        """Evict the victims of *order*; if that fails, let the preemptor try something else.

        What fails is tried again first, unless the preemptor is gone or has a node by then.
        """
        preemptor = order.preemptor
        started = self._clock.monotonic()
        self._clear_lower_nominations(order)
        left: Sequence[PodInfo] = order.victims
        told = False
        try:
            for pause in (*PAUSES, None):
                left, told = await self._evict_all(order, left)
                if not left or pause is None:
                    break
                await self._clock.sleep(pause)
                if not self._under_way.waits(preemptor):
                    break
                left = [victim for victim in left if self._under_way.stays(victim)]
                if not left:
                    break
        except Exception:  # whatever failed, the preemptor must not stay gated
            log.exception("preemption failed", extra={"pod": preemptor.key, "node": order.node})
        finally:
            self._under_way.end(preemptor.uid, order.gate)
            seconds = self._clock.monotonic() - started
            self._metrics.preempted(seconds=seconds, failed=bool(left))
        if left:
            self._metrics.evicted_for_nothing(len(order.victims) - len(left))
        if not told:
            self._queue.activate([preemptor.pod])

    async def _evict_all(
        self, order: Order, victims: Sequence[PodInfo]
    ) -> tuple[Sequence[PodInfo], bool]:
        """Try to evict *victims*, the last one when the others are; return those that remain.

        Also return whether the deletion of the last one will wake the preemptor. If it was gone,
        that may have been told too early to wake anybody. Raises what is no error of the API.
        """
        *others, last = victims
        answers = await asyncio.gather(*(self._try_to_evict(order, victim) for victim in others))
        left = self._failed(order, others, answers)
        if left:
            return [*left, last], False
        order.gate.last = last
        answer = await self._try_to_evict(order, last)
        return self._failed(order, [last], [answer]), answer is True

    async def _try_to_evict(self, order: Order, victim: PodInfo) -> bool | Exception:
        """Return what :meth:`_evict` does, or its error."""
        try:
            return await self._evict(order, victim)
        except Exception as exc:  # noqa: BLE001 - looked at when the others have ended, too
            return exc

    def _failed(
        self, order: Order, victims: Sequence[PodInfo], answers: Sequence[bool | Exception]
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
            told = {"pod": order.preemptor.key, "node": order.node, "victim": victim.key}
            log_failure(log, "eviction failed", error, {**told, "failed": len(failed)})
        return [victim for victim, _ in failed]

    def _clear_lower_nominations(self, order: Order) -> None:
        """Let pods that the preemptor takes the node from look for another one."""
        for other in self._queue.nominator.nominated_pods_for_node(order.node):
            if other.priority < order.preemptor.priority:
                self._reporter.status(other.pod, condition=None, nominated_node_name="")

    async def _evict(self, order: Order, victim: PodInfo) -> bool:
        """Evict one pod and tell it why; False if it was gone already."""
        suffix = IN_MEMORY
        if not self._bindings.preempt(victim.uid):
            suffix = ""
            scheduler = order.preemptor.pod.spec.scheduler_name
            condition = Condition(
                type=DISRUPTION_TARGET,
                status="True",
                reason=PREEMPTION_BY_SCHEDULER,
                message=f"{scheduler}: preempting to accommodate a higher priority pod",
                observed_generation=victim.pod.metadata.generation,
            )
            if not await self._evictor.evict(victim.pod, condition):
                log.info("victim was gone", extra={"pod": victim.key, "node": order.node})
                return False
        log.info(
            "pod preempted",
            extra={"pod": victim.key, "node": order.node, "preemptor": order.preemptor.key},
        )
        self._reporter.event(
            victim.pod,
            profile=order.profile,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by pod {order.preemptor.uid} on node {order.node}{suffix}",
        )
        return True
