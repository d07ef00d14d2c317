"""Signals of the operating system to a process that serves (spec §7.4)."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

log = logging.getLogger(__name__)

TERMINATION: Final = (signal.SIGTERM, signal.SIGINT)


async def until_terminated(
    work: Coroutine[Any, Any, None], *, on_request: Callable[[], None] = lambda: None
) -> bool:
    """Run *work* until it ends, or SIGTERM or SIGINT cancels it; return whether it was cancelled.

    *on_request* is called before it is cancelled. Another signal while it cleans up ends the
    process at once, with status 1.
    """
    loop = asyncio.get_running_loop()
    working = asyncio.create_task(work, name="service")
    requested = False

    def terminate(received: signal.Signals) -> None:
        nonlocal requested
        if requested:
            os._exit(1)
        requested = True
        log.info("terminating", extra={"signal": received.name})
        on_request()
        working.cancel()

    for number in TERMINATION:
        loop.add_signal_handler(number, terminate, number)
    try:
        await working
    except asyncio.CancelledError:
        if not requested:
            raise
    finally:
        for number in TERMINATION:
            loop.remove_signal_handler(number)
    return requested


@contextmanager
def on_signals(handlers: Mapping[signal.Signals, Callable[[], object]]) -> Iterator[None]:
    """Call a handler whenever its signal comes, between two steps of the running loop."""
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


def unless_hung_up(reload: Callable[[], object]) -> Callable[[], None]:
    """Return a handler of SIGHUP: *reload*, or the end where the terminal has gone.

    A terminal that is closed sends the same signal as whoever wants a file read again. A process
    that had one and has it no more ends as if it was told to by SIGTERM.
    """
    had_terminal = _has_terminal()

    def hung_up() -> None:
        if had_terminal and not _has_terminal():
            signal.raise_signal(signal.SIGTERM)
        else:
            reload()

    return hung_up


def _has_terminal() -> bool:
    """Whether this process has a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def exit_when_continued(is_overdue: Callable[[], bool]) -> None:
    """Have a process that was stopped end with status 1 when it goes on and *is_overdue* then.

    The handler runs before whatever the process was about to do when it was stopped, so that not
    even a request whose bytes were made already is sent.
    """

    def continued(_signal: int, _frame: object) -> None:
        if is_overdue():
            try:
                log.error("leader election lost: the lease expired while this process was stopped")
            finally:
                os._exit(1)

    signal.signal(signal.SIGCONT, continued)
