"""The asynchronous shell of a controller: asks for plans and carries them out."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from berth.client.api import Api
from berth.client.errors import ApiError
from berth.clock import Clock
from berth.cluster.actions import Action, perform
from berth.cluster.controllers.controller import Controller, Outcome
from berth.cluster.delay_queue import DelayQueue

log = logging.getLogger(__name__)

T = TypeVar("T")

INTERVAL: Final = 0.05
"""Seconds between two plans for one object: thousands of changes of its pods cost one plan."""

FIRST_RETRY: Final = 0.1
LONGEST_RETRY: Final = 60.0
"""Seconds before an object whose plan failed is looked at again; doubled with every failure."""


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
            self._queue.add(key, delay=INTERVAL)

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
                # Not sooner than the backoff after a failure: our own retries cause changes too.
                delay = max(delay or 0.0, INTERVAL) if key in self._failures else INTERVAL
            if delay is not None:
                self._queue.add(key, delay=delay)

    async def _reconcile(self, key: str) -> float | None:
        """Plan and do; return the seconds after which *key* is due again, None for not."""
        plan = self._controller.plan(key)
        failed = False
        for batch in slow_start(plan.actions):
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
