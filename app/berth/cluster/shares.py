"""Everybody's share of the event loop: a request is one step, and a large one is a long step.

The API server has threads, and queues for users (priority and fairness). Here it is enough that
who had a long step lets as much time pass before his next: others have half of the time at least,
and wait for one such step at most.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Final, Generic, TypeVar

from berth.clock import Clock
from berth.cluster.access.users import User

NOTICED: Final = 0.02
"""Seconds of a step that is long; an ordinary one takes a hundredth of that."""

REMEMBERED: Final = 1_000
"""Users whose pause is remembered, before those whose pause is over are looked for."""


T = TypeVar("T")


class Step(Generic[T]):
    """A coroutine to be awaited once. What it waits for (a webhook) is nobody's loss of time."""

    __slots__ = ("_clock", "_coroutine", "seconds")

    def __init__(self, coroutine: Coroutine[Any, Any, T], clock: Clock) -> None:
        self._coroutine = coroutine
        self._clock = clock
        self.seconds = 0.0
        """How long it had the event loop for itself."""

    def __await__(self) -> Generator[Any, Any, T]:
        error: asyncio.CancelledError | None = None
        while True:
            started = self._clock.monotonic()
            try:
                if error is None:
                    waited_for = self._coroutine.send(None)
                else:
                    waited_for = self._coroutine.throw(error)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                self.seconds += self._clock.monotonic() - started
            error = None
            try:
                yield waited_for
            except asyncio.CancelledError as exc:
                error = exc


class Shares:
    """Who has to wait for his next step. Whoever may do everything never has to."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pauses: dict[str, float] = {}
        """By user: until when."""

    async def turn(self, user: User) -> None:
        """Return when *user* may have a step."""
        while (until := self._pauses.get(user.name)) is not None:
            left = until - self._clock.monotonic()
            if left <= 0:
                return
            await self._clock.sleep(left)

    def took(self, user: User, seconds: float) -> None:
        """Note how long a step of *user* was."""
        if seconds < NOTICED or user.is_master:
            return
        now = self._clock.monotonic()
        if len(self._pauses) >= REMEMBERED:
            self._pauses = {name: until for name, until in self._pauses.items() if until > now}
        self._pauses[user.name] = now + seconds
