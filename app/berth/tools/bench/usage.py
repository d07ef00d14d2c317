"""Use of a process: CPU time, and instructions where the kernel counts them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from berth.runtime.clock import Clock
from berth.tools.bench.instructions import Counter, counter_of


class Usage(NamedTuple):
    """What a process has used, in all or between two moments."""

    cpu: float
    """Seconds, user and system."""
    instructions: int | None
    """In user mode; None if the kernel does not count them."""

    def since(self, before: "Usage") -> "Usage":
        if self.instructions is None or before.instructions is None:
            return Usage(self.cpu - before.cpu, None)
        return Usage(self.cpu - before.cpu, self.instructions - before.instructions)

    def instructions_per(self, count: int) -> float | None:
        return None if self.instructions is None else self.instructions / max(count, 1)


class Meter:
    """Measures this process."""

    def __init__(self, clock: Clock, counter: Counter | None) -> None:
        """*clock* is best one that counts CPU time."""
        self._clock = clock
        self._counter = counter

    def used(self) -> Usage:
        """Return what the process has used so far."""
        instructions = None if self._counter is None else self._counter.read()
        return Usage(self._clock.monotonic(), instructions)


@contextmanager
def metered(clock: Clock) -> Iterator[Meter]:
    """Yield a meter that counts instructions where the kernel does."""
    counter = counter_of()
    try:
        yield Meter(clock, counter)
    finally:
        if counter is not None:
            counter.close()
