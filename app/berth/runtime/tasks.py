"""Every task has a name and an owner, and none keeps the event loop for long."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType
from typing import Any, Final, TypeAlias, TypeVar

from berth.runtime.clock import Clock

log = logging.getLogger(__name__)

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""Work that can be interrupted after each step, and what it comes to."""

Start: TypeAlias = Callable[[str, Callable[[], Awaitable[None]]], asyncio.Task[None]]
"""Begins a task of that name, which runs :func:`forever`."""

TURN_SECONDS: Final = 0.005
"""After which others have their turn, however little was done."""

PIECE: Final = 2048
"""Items that cost one or two microseconds each are looked at in one turn of the event loop."""


async def forever(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run *run*, which must only ever end by cancellation.

    Any other ending is a bug: it is raised to the owning TaskGroup, which stops the process.
    Takes a function, not a coroutine: a coroutine cancelled before its first step would warn.
    """
    try:
        await run()
    except Exception:
        log.exception("task failed", extra={"task": name})
        raise
    raise RuntimeError(f"task {name!r} returned")


@asynccontextmanager
async def background() -> AsyncIterator[Start]:
    """Yield what begins tasks that run until the end of the block.

    When one of them ends by itself, the block is cancelled, and raises what the task died of in an
    ExceptionGroup.
    """
    tasks: list[asyncio.Task[None]] = []
    failure: Exception | None = None  # the block's own, which is to leave it as it is
    async with asyncio.TaskGroup() as group:

        def start(name: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
            task = group.create_task(forever(name, run), name=name)
            tasks.append(task)
            return task

        try:
            yield start
        except Exception as exc:  # noqa: BLE001 - raised below
            failure = exc
        finally:
            for task in tasks:
                task.cancel()
    if failure is not None:
        raise failure


def awaited_frames(coroutine: Any) -> Iterator[FrameType]:
    """Yield the frames of a coroutine and of what it awaits, outermost first, if Python's."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            yield frame
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)


class Turn:
    """The turn of a task that does one thing after the other: so many, and TURN_SECONDS at most."""

    __slots__ = ("_clock", "_end", "_items", "_left")

    def __init__(self, clock: Clock, *, items: int) -> None:
        self._clock = clock
        self._items = items
        self._begin()

    def _begin(self) -> None:
        self._left = self._items
        self._end = self._clock.monotonic() + TURN_SECONDS

    def is_over(self) -> bool:
        """Count what was done, and tell whether others should have their turn now."""
        self._left -= 1
        return self._left <= 0 or self._clock.monotonic() >= self._end

    async def next(self) -> None:
        """Let others on the event loop have theirs, and begin another."""
        await asyncio.sleep(0)
        self._begin()


async def in_turns(items: Sequence[T], *, piece: int = PIECE) -> AsyncIterator[Sequence[T]]:
    """Yield all *items*, piece by piece; between two pieces others on the event loop get a turn."""
    for begin in range(0, len(items), piece):
        if begin:
            await asyncio.sleep(0)
        yield items[begin : begin + piece]


def at_once(steps: Steps[T]) -> T:
    """Do all *steps*, and return what they come to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


_PAUSE: Final = partial(asyncio.sleep, 0)


async def step_by_step(
    steps: Steps[T],
    *,
    per_turn: int,
    pause: Callable[[], Awaitable[None]] = _PAUSE,
) -> T:
    """Do the same, so many of them in one turn; *pause* lets others on the event loop have one."""
    while True:
        try:
            for _ in range(per_turn):
                next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await pause()
