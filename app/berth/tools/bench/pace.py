"""Doing things at a given rate, however long each takes."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from random import Random
from typing import Any, Final

from berth.runtime.clock import Clock
from berth.tools.bench.process import BenchError


def arrivals(rate: float, seconds: float, *, rng: Random | None = None) -> Iterator[float]:
    """Yield moments, in seconds from 0 to *seconds*, *rate* a second: evenly, or with *rng* as
    a Poisson process has them.
    """
    if rng is None:
        yield from (number / rate for number in range(int(rate * seconds)))
        return
    moment = rng.expovariate(rate)
    while moment < seconds:
        yield moment
        moment += rng.expovariate(rate)


MOST: Final = 500
"""Acts that have begun and not ended. An API server lets in about a thousand connections."""

Act = Callable[[], Coroutine[Any, Any, object]]


async def paced(acts: Iterable[tuple[float, Act]], *, clock: Clock) -> float:
    """Begin each act at its moment, in seconds from now on, and wait for all to end.

    They are in the order of their moments. One that takes long holds up no other. Return by how
    many seconds the latest began late. The first error is raised; BenchError if too many acts
    wait for their ends.
    """
    start, latest = clock.monotonic(), 0.0
    doing: set[asyncio.Task[object]] = set()
    try:
        async with asyncio.TaskGroup() as group:
            for moment, act in acts:
                if (delay := start + moment - clock.monotonic()) > 0:
                    await clock.sleep(delay)
                latest = max(latest, clock.monotonic() - start - moment)
                if len(doing) >= MOST:
                    raise BenchError(f"{MOST} requests wait for answers: this rate is too high")
                task = group.create_task(act(), name="paced")
                doing.add(task)
                task.add_done_callback(doing.discard)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return latest
