"""The asynchronous shell of a controller: asks for plans and carries them out."""

import asyncio
import itertools
import logging
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from berth.cluster.actions import Action, perform
from berth.cluster.controllers.controller import Controller, Outcome
from berth.cluster.delay_queue import DelayQueue
from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError
from berth.runtime.clock import Clock

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_INTERVAL: Final = 0.01
LONGEST_INTERVAL: Final = 0.05
"""Seconds between two plans for one object. A change after a quiet time is answered at once; while
changes keep coming the interval grows, so thousands of changes of its pods cost few plans. The
first is long enough for what one plan created to be in the tables at the next."""

INTERVAL_GROWTH: Final = 5.0
QUIET: Final = 1.0
"""Seconds without a plan after which an object's interval is the first one again."""

MOST_PACES: Final = 1_000
"""Objects whose pace is remembered before those that have been quiet are forgotten."""

FIRST_RETRY: Final = 0.1
LONGEST_RETRY: Final = 60.0
"""Seconds before an object whose plan failed is looked at again; doubled with every failure."""


class Pace:
    """How soon each object may be looked at again, by key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looks: dict[str, tuple[float, float]] = {}
        """When it was last looked at, monotonic, and the interval after that; oldest first."""

    def delay(self, key: str) -> float:
        """Return the seconds until *key* may be looked at."""
        look = self._looks.get(key)
        return 0.0 if look is None else max(look[0] + look[1] - self._clock.monotonic(), 0.0)

    def note(self, key: str) -> None:
        """Note that *key* is looked at now."""
        now = self._clock.monotonic()
        last, interval = self._looks.pop(key, (now - QUIET, FIRST_INTERVAL))
        is_quiet = now - last >= QUIET
        grown = FIRST_INTERVAL if is_quiet else min(interval * INTERVAL_GROWTH, LONGEST_INTERVAL)
        self._looks[key] = now, grown
        if len(self._looks) > MOST_PACES:
            self._forget(before=now - QUIET)

    def _forget(self, *, before: float) -> None:
        quiet = itertools.takewhile(lambda item: item[1][0] <= before, self._looks.items())
        for key, _ in list(quiet):
            del self._looks[key]


class Loop:
    """Runs one controller. :meth:`enqueue` may be called from anywhere on the event loop.

    *slots* bounds the requests under way, and is shared by all loops of a process.
    """

    def __init__(
        self, controller: Controller, client: Api, *, clock: Clock, slots: asyncio.Semaphore
    ) -> None:
        self._controller = controller
        self._client = client
        self._slots = slots
        self._queue: DelayQueue[str] = DelayQueue(clock)
        self._pace = Pace(clock)
        self._busy: set[str] = set()
        self._changed: set[str] = set()
        self._failures: dict[str, int] = {}
        controller.subscribe(self.enqueue)

    @property
    def name(self) -> str:
        return self._controller.name

    def enqueue(self, key: str) -> None:
        """Have *key* looked at soon."""
        if key in self._busy:
            self._changed.add(key)
        else:
            self._queue.add(key, delay=self._pace.delay(key))

    async def run(self) -> None:
        """Look at what is due, for ever."""
        async with asyncio.TaskGroup() as group:
            while True:
                for key in await self._queue.take():
                    self._busy.add(key)
                    name = f"{self.name} {key}"
                    group.create_task(self._process(key), name=name)

    async def _process(self, key: str) -> None:
        delay: float | None = None
        self._pace.note(key)
        try:
            delay = await self._reconcile(key)
        except Exception:
            # One object must not stop the controller.
            log.exception("plan failed", extra={"controller": self.name, "key": key})
            delay = self._backoff(key)
        finally:
            self._busy.discard(key)
            if key in self._changed:
                self._changed.discard(key)
                pace = self._pace.delay(key)
                # Not sooner than the backoff after a failure: our own retries cause changes too.
                delay = max(delay or 0.0, pace) if key in self._failures else pace
            if delay is not None:
                self._queue.add(key, delay=delay)

    async def _reconcile(self, key: str) -> float | None:
        """Plan and do; return the seconds after which *key* is due again, None for not."""
        plan = self._controller.plan(key)
        failed = False
        batches = [plan.actions] if plan.is_independent else slow_start(plan.actions)
        for batch in batches:
            if failed:
                for action in batch:
                    self._controller.finished(key, Outcome(action, skipped=True))
                continue
            outcomes = await asyncio.gather(*(self._perform(action) for action in batch))
            for outcome in outcomes:
                self._controller.finished(key, outcome)
                failed = failed or outcome.error is not None
        if failed:
            return self._backoff(key)
        self._failures.pop(key, None)
        return plan.again

    async def _perform(self, action: Action) -> Outcome:
        async with self._slots:
            try:
                return Outcome(action, answer=await perform(self._client, action))
            except ApiError as exc:
                log.debug(
                    "action failed",
                    extra={"controller": self.name, "error": str(exc)},
                )
                return Outcome(action, error=exc)

    def _backoff(self, key: str) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return min(FIRST_RETRY * 2.0 ** min(failures - 1, 30), LONGEST_RETRY)


def slow_start(actions: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut *actions* into batches of 1, 2, 4...: what cannot work fails once, not in thousands."""
    start, size = 0, 1
    while start < len(actions):
        yield actions[start : start + size]
        start += size
        size *= 2
