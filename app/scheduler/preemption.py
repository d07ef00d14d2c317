"""Carries preemption out: victims are told and deleted, while the preemptor waits (spec §6.7).

::

    PostFilter chose a node --order--> [orders] --run--> clear lower nominations
                                                         evict all victims but the last, together
                                                         evict the last
    preemptor gated by PreEnqueue  <---------------------- until then

What was decided in the scheduling cycle is done here beside it. The preemptor is not bound: it
goes through a cycle of its own once its victims are gone, and until then its nomination keeps the
room from pods of equal or lower priority.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from app.clock import Clock
from app.framework.pod_info import PodInfo
from app.framework.preemption.candidate import Candidate
from app.framework.preemption.eligibility import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from app.metrics.scheduler_metrics import SchedulerMetrics
from app.objects.meta import Condition
from app.objects.pod import Pod
from app.queue.scheduling_queue import SchedulingQueue
from app.scheduler.claim import Claims
from app.scheduler.reporter import Reporter

log = logging.getLogger(__name__)

PodLookup = Callable[[str], Pod | None]

IN_MEMORY: Final = " (in kube-scheduler memory)."


class Evictor(Protocol):
    """The API, as far as victims are concerned."""

    async def evict(self, pod: Pod, condition: Condition) -> bool:
        """Give *pod* the condition, then delete it; False if it was gone.

        Raises the API's errors.
        """
        ...


@dataclass(frozen=True, slots=True)
class Order:
    """Some victims to evict, none of which was leaving already."""

    preemptor: PodInfo
    profile: str
    node: str
    victims: tuple[PodInfo, ...]


class PreemptionsUnderWay:
    """For which pods victims are being evicted. The handle asks it on behalf of PreEnqueue."""

    def __init__(self, pod_lookup: PodLookup) -> None:
        self._pod_lookup = pod_lookup
        self._last_victim: dict[str, PodInfo | None] = {}

    def begin(self, uid: str) -> None:
        self._last_victim[uid] = None

    def await_last(self, uid: str, victim: PodInfo) -> None:
        """Note that only *victim* remains to be evicted."""
        self._last_victim[uid] = victim

    def end(self, uid: str) -> None:
        self._last_victim.pop(uid, None)

    def __len__(self) -> int:
        """The number of pods that victims are being evicted for."""
        return len(self._last_victim)

    def is_preempting(self, uid: str) -> bool:
        """Whether it is too early to try the preemptor.

        It is not when the last victim is seen to go: that may well be heard of before the answer
        to our own request, and nothing wakes the preemptor later.
        """
        if uid not in self._last_victim:
            return False
        last = self._last_victim[uid]
        if last is None:
            return True
        current = self._pod_lookup(last.key)
        return current is not None and current.metadata.deletion_timestamp is None


class Preemptions:
    """Takes orders without waiting; :meth:`run`, which somebody must own, carries them out."""

    def __init__(
        self,
        *,
        under_way: PreemptionsUnderWay,
        queue: SchedulingQueue,
        claims: Claims,
        reporter: Reporter,
        evictor: Evictor,
        metrics: SchedulerMetrics,
        clock: Clock,
    ) -> None:
        self._under_way = under_way
        self._queue = queue
        self._claims = claims
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
            self._under_way.begin(preemptor.uid)
            self._orders.append(Order(preemptor, profile, chosen.node, staying))
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
        """Evict the victims of *order*; if that fails, let the preemptor try something else."""
        preemptor = order.preemptor
        *others, last = order.victims
        started, failed = self._clock.monotonic(), True
        self._clear_lower_nominations(order)
        must_wake = True
        try:
            async with asyncio.TaskGroup() as tasks:
                for victim in others:
                    tasks.create_task(self._evict(order, victim), name=f"evict {victim.key}")
            self._under_way.await_last(preemptor.uid, last)
            # If the last one was gone, its deletion may have been told too early to wake anybody.
            must_wake = not await self._evict(order, last)
            failed = False
        except Exception as exc:  # whatever failed, the preemptor must not stay gated
            log.exception(
                "preemption failed",
                extra={"pod": preemptor.key, "node": order.node, "error": str(exc)},
            )
        finally:
            self._under_way.end(preemptor.uid)
            self._metrics.preempted(seconds=self._clock.monotonic() - started, failed=failed)
        if must_wake:
            self._queue.activate([preemptor.pod])

    def _clear_lower_nominations(self, order: Order) -> None:
        """Let pods that the preemptor takes the node from look for another one."""
        for other in self._queue.nominator.nominated_pods(order.node):
            if other.priority < order.preemptor.priority:
                self._reporter.status(other.pod, condition=None, nominated_node_name="")

    async def _evict(self, order: Order, victim: PodInfo) -> bool:
        """Evict one pod and tell it why; False if it was gone already."""
        suffix = IN_MEMORY
        if not self._claims.preempt(victim.uid):
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
