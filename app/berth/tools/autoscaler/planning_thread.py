"""Plans beside the event loop, which goes on meanwhile."""

import asyncio
import threading
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

PAUSE_SECONDS: Final = 0.001
"""How long the thread lets go of the interpreter between two attempts, which take about as long."""


class GivenUpError(Exception):
    """Nobody waits for the plan any more."""


class Beside(Protocol):
    """Where plans are made."""

    async def run(self, work: Callable[[], T]) -> T:
        """Return what *work* returns."""
        ...

    def goes_on(self) -> bool:
        """Return whether *work* is wanted; to be called by it, often."""
        ...


class PlanningThread:
    """Has one plan at a time made in a thread.

    A simulation takes seconds on large clusters. The interpreter is shared: a turn of the event
    loop waits for it some milliseconds at most, and about half of it is left to the loop. When
    whoever waits is cancelled, the thread ends with the next attempt.
    """

    def __init__(self) -> None:
        self._given_up = threading.Event()

    async def run(self, work: Callable[[], T]) -> T:
        self._given_up = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(None, work)
        finally:
            self._given_up.set()

    def goes_on(self) -> bool:
        """Let the event loop have its turn. Raises GivenUpError."""
        if self._given_up.wait(PAUSE_SECONDS):
            raise GivenUpError
        return True


class InTurn:
    """Plans in a turn of the event loop: on a clock that stands still, nobody waits for it."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()

    def goes_on(self) -> bool:
        return True
