"""The event loop of a command: how it is run and ended, and what its process does about memory."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import uvloop

from berth.clock import Clock
from berth.memory import Survivors, keep_heap
from berth.open_files import raise_limit
from berth.terminal import INTERRUPTED, TERMINATED

T = TypeVar("T")


async def sparing_survivors(work: Awaitable[T], clock: Clock) -> T:
    """Do *work*, and keep the pauses of the garbage collector short meanwhile."""
    later = asyncio.get_running_loop().call_soon_threadsafe
    with Survivors(clock, later).spared():
        return await work


def in_loop(
    work: Coroutine[Any, Any, int],
    *,
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> int:
    """Run *work* on a fast event loop, or on another; Ctrl-C and SIGTERM end it cleanly.

    A second SIGTERM, while it cleans up, ends the process at once.
    """
    keep_heap()
    raise_limit()
    terminated = False

    async def until_terminated() -> int:
        nonlocal terminated
        working, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert working is not None

        def terminate() -> None:
            nonlocal terminated
            terminated = True
            loop.remove_signal_handler(signal.SIGTERM)
            working.cancel()

        loop.add_signal_handler(signal.SIGTERM, terminate)
        try:
            return await work
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    with (
        suppress(asyncio.CancelledError),
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        return runner.run(until_terminated())
    return TERMINATED if terminated else INTERRUPTED
