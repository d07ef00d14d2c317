"""Ends the call of a plugin that holds the event loop.

A signal to the main thread does it: its handler runs between two instructions of whatever that
thread does, also of ``while True: pass``, and raises there if a plugin by others was called. What
waits in a system call is woken; only a long computation in C goes on.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from berth.scheduler.profile import guard

SIGNAL: Final = signal.SIGURG
"""Nothing else sends it, and where no handler is installed it does nothing."""


def interrupter() -> Callable[[], None]:
    """Return what ends the call of a plugin by others in which the main thread is, if in any.

    It may be called in any thread. Called itself in another than the main one, where no handler can
    be installed, this returns what does nothing.
    """
    main = threading.main_thread()
    if threading.current_thread() is not main:
        return lambda: None
    signal.signal(SIGNAL, _interrupt)

    def interrupt() -> None:
        if main.ident is not None:
            signal.pthread_kill(main.ident, SIGNAL)

    return interrupt


def _interrupt(_signal: int, frame: FrameType | None) -> None:
    if is_in_plugin(frame):
        raise guard.PluginInterruptedError("it held the event loop for too long")


def is_in_plugin(innermost: FrameType | None) -> bool:
    """Whether a stack is in a plugin that a guard has called, so that the guard will catch."""
    inner, frame = None, innermost
    while frame is not None:
        if guard.is_call(frame):
            return inner is not None and inner.f_globals is not frame.f_globals
        inner, frame = frame, frame.f_back
    return False
