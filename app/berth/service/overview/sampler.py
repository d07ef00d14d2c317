"""Measures once a second what the overview shows."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from berth.kube.client.writes.lanes import Lane, WriteLanes
from berth.runtime.clock import rfc3339
from berth.scheduler.core.live_configuration import LiveConfiguration
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.framework.node_table import CPU, MEMORY
from berth.scheduler.metrics.loop_lag import PERIOD, each_period
from berth.scheduler.metrics.overview import Numbers, PendingPod, Problem, Rings, Sample, Series
from berth.scheduler.queue.sub_queues import SubQueue
from berth.service.overview.oldest_pending import LONG, OldestPending

SHORTEST: Final = PERIOD / 2
"""Seconds over which a rate is taken at least: after a late sample the next may come at once."""
RECENT: Final = 60
"""Samples in which errors count as recent."""


class State(msgspec.Struct, frozen=True):
    """What there is to know about a process beside its scheduler."""

    is_synced: Callable[[], bool]
    is_leading: Callable[[], bool]
    leader: Callable[[], str]
    """Who holds the lease; "" if nobody does."""
    stale: Callable[[], str]
    """In which way the caches are not up to date; "" if they are."""


class Sampler:
    """Takes a sample each second while :meth:`run` runs, and keeps those of the last hour.

    A sample costs 0.04 ms at 5,000 nodes and 0.1 ms at 50,000, no matter how many ask.
    """

    def __init__(
        self,
        view: SchedulerView,
        *,
        lanes: WriteLanes,
        live: LiveConfiguration,
        attempts: Callable[[], Mapping[str, float]],
        state: State,
    ) -> None:
        """*attempts* counts them by result."""
        self._view, self._clock = view, view.clock
        self._lanes = lanes
        self._live = live
        self._attempts = attempts
        self._state = state
        self._oldest = OldestPending(view.queue.sub_queues, clock=view.clock)
        self._counted = dict(attempts())
        self._counted_at = view.clock.monotonic()
        self._per_second: Mapping[str, float] = {}
        self._rings = Rings()
        self._latest: Sample | None = None
        self._changed = asyncio.Event()
        """Set with the next sample, which then waits for another."""
        self.has_ended = False

    async def run(self) -> None:
        """Take samples, for ever."""
        try:
            async for lag in each_period(self._clock):
                await self.measure(lag)
        finally:
            self.end()

    async def measure(self, lag: float) -> Sample:
        """Look who waits, and take a sample, of a loop that is late by *lag* seconds."""
        await self._oldest.look()
        return self.take(lag)

    def latest(self) -> Sample:
        """Return the newest sample; the first one is taken now if need be."""
        return self._latest or self.take(0.0)

    def take(self, lag: float) -> Sample:
        """Take a sample, of a loop that is late by *lag* seconds."""
        time, oldest = self._clock.now(), self._oldest.oldest()
        numbers = self._numbers(lag, oldest)
        self._rings.add(time, numbers)
        state = self._state
        number = 1 if self._latest is None else self._latest.number + 1
        self._latest = taken = Sample(
            number=number,
            time=time,
            numbers=numbers,
            oldest=oldest,
            leader=state.leader(),
            configuration_loaded_at=rfc3339(self._live.loaded_at),
            problems=tuple(
                problems(
                    numbers,
                    oldest,
                    is_synced=state.is_synced(),
                    leader=state.leader(),
                    stale=state.stale(),
                    recent_errors=self._rings.sum("error_per_second", samples=RECENT),
                )
            ),
        )
        self._wake()
        return taken

    def end(self) -> None:
        """Let those who wait for a sample know that none will come."""
        self.has_ended = True
        self._wake()

    def series(self, seconds: int) -> Series:
        """Return the numbers of the last *seconds*."""
        return self._rings.series(seconds)

    async def after(self, number: int) -> Sample | None:
        """Return the newest sample, once it is not that of *number*; None: none will come.

        Who is slow misses those between.
        """
        while not self.has_ended:
            if self._latest is not None and self._latest.number != number:
                return self._latest
            await self._changed.wait()
        return None

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _numbers(self, lag: float, oldest: tuple[PendingPod, ...]) -> Numbers:
        view, lanes = self._view, self._lanes.stats
        pending, cached = view.queue.sub_queues.pending_counts(), view.cache.counts()
        waiting = sum(binding.waiting is not None for binding in view.bindings)
        rates = self._rates()
        table = view.cache.table
        allocatable, requested = (
            [int(column[index].sum(where=table.exists)) for index in (CPU, MEMORY)]
            for column in (table.allocatable, table.requested)
        )
        return Numbers(
            active=pending[SubQueue.ACTIVE],
            backoff=pending[SubQueue.BACKOFF],
            unschedulable=pending[SubQueue.UNSCHEDULABLE],
            gated=pending[SubQueue.GATED],
            waiting=waiting,
            binding=len(view.bindings) - waiting,
            bound=cached["pods"] - cached["assumed_pods"],
            long_pending=self._oldest.long_pending,
            oldest_pending_seconds=oldest[0].age_seconds if oldest else 0.0,
            scheduled_per_second=rates.get("scheduled", 0.0),
            unschedulable_per_second=rates.get("unschedulable", 0.0),
            error_per_second=rates.get("error", 0.0),
            loop_lag_seconds=lag,
            bind_in_flight=lanes[Lane.BIND].in_flight,
            bind_depth=lanes[Lane.BIND].depth,
            status_in_flight=lanes[Lane.STATUS].in_flight,
            status_depth=lanes[Lane.STATUS].depth,
            event_in_flight=lanes[Lane.EVENT].in_flight,
            event_depth=lanes[Lane.EVENT].depth,
            leading=int(self._state.is_leading()),
            configuration_generation=self._live.generation,
            nodes=len(table),
            cpu_allocatable=allocatable[0],
            cpu_requested=requested[0],
            memory_allocatable=allocatable[1],
            memory_requested=requested[1],
        )

    def _rates(self) -> Mapping[str, float]:
        """Return the attempts per second by result, since they were last counted."""
        now = self._clock.monotonic()
        elapsed = now - self._counted_at
        if elapsed >= SHORTEST:
            counted, before = dict(self._attempts()), self._counted
            self._counted, self._counted_at = counted, now
            self._per_second = {
                result: _more(count, before.get(result, 0)) / elapsed
                for result, count in counted.items()
            }
        return self._per_second


def _more(count: float, before: float) -> float:
    """Return how much was counted since; a reset of the metrics begins anew."""
    return count - before if count >= before else count


# Problems of a scheduler, in words for people.


LAG_BOUND: Final = 0.1
"""Seconds of loop lag above which the process is near its limit (docs/operations.md)."""
PODS_NAMED: Final = 3


def problems(
    numbers: Numbers,
    oldest: Sequence[PendingPod],
    *,
    is_synced: bool,
    leader: str,
    stale: str,
    recent_errors: float,
) -> Iterator[Problem]:
    """Yield what is wrong, what matters most first.

    *stale* says in which way the caches are not up to date, "" if they are. *recent_errors* is how
    many attempts ended in an error within the last minute.
    """
    if not is_synced:
        yield Problem("The state of the cluster is not known yet")
    if not numbers.leading:
        yield Problem(f"Not leading: standby. {leader or 'Nobody'} leads")
    if stale:
        yield Problem(stale[0].upper() + stale[1:])
    if numbers.leading and numbers.long_pending:
        named = [pending.pod for pending in oldest if pending.age_seconds > LONG][:PODS_NAMED]
        pods = "1 pod has" if numbers.long_pending == 1 else f"{numbers.long_pending} pods have"
        yield Problem(f"{pods} been pending for more than {LONG / 60:.0f} minutes", tuple(named))
    if errors := round(recent_errors):
        attempts = "1 attempt" if errors == 1 else f"{errors} attempts"
        yield Problem(f"{attempts} failed with an error within the last minute")
    if numbers.loop_lag_seconds > LAG_BOUND:
        lag, bound = f"{numbers.loop_lag_seconds * 1e3:.0f} ms", f"{LAG_BOUND * 1e3:.0f} ms"
        yield Problem(f"The event loop is {lag} late; above {bound} the process is near its limit")
