"""The event loop of a command: how it is run and ended, and what its process does about memory."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import uvloop

from berth.runtime.clock import Clock
from berth.runtime.loop_errors import log_loop_error
from berth.runtime.memory import Survivors, keep_heap
from berth.runtime.open_files import raise_limit
from berth.runtime.tasks import background
from berth.runtime.terminal import INTERRUPTED, TERMINATED, show_cursor

T = TypeVar("T")

ENDED_BY: Final[Mapping[int, int]] = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
"""The exit status of a command by the signal that ended it."""


async def sparing_survivors(work: Awaitable[T], clock: Clock) -> T:
    """Do *work*, and keep the pauses of the garbage collector short meanwhile."""
    later = asyncio.get_running_loop().call_soon_threadsafe
    survivors = Survivors(clock, later)
    with survivors.spared():
        async with background() as start:
            start("young objects", survivors.look)
            return await work


def in_loop(
    work: Coroutine[Any, Any, int],
    *,
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> int:
    """Run *work* on a fast event loop, or on another; Ctrl-C and SIGTERM end it cleanly.

    A second one, while it cleans up or the loop is stuck, ends the process at once.
    """
    keep_heap()
    raise_limit()
    status = 0

    async def until_terminated() -> int:
        working, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert working is not None
        loop.set_exception_handler(log_loop_error)

        # Handlers of the loop would wait until it turns; these run at once.
        def terminate(received: int, _frame: object) -> None:
            nonlocal status
            if status:
                show_cursor()
                os._exit(status)
            status = ENDED_BY[received]
            loop.call_soon_threadsafe(working.cancel)

        before = {number: signal.signal(number, terminate) for number in ENDED_BY}
        try:
            return await work
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    with (
        suppress(asyncio.CancelledError),
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        return runner.run(until_terminated())
    return status
