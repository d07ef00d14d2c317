"""Notices, from a thread of its own, that the event loop is stuck, and logs where.

A plugin that loops for ever stops everything that the event loop does: attempts, watches, probes,
signals, logs. Only another thread can still say so.
"""

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Final

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo

log = logging.getLogger(__name__)

INTERVAL: Final = 0.5
"""Seconds between two beats of the loop, and between two looks at it."""

PATIENCE: Final = 10
"""How many looks in a row must find no beat for the loop to be stuck: five seconds of them.

Looks are counted, not seconds: a process that was stopped, or a machine that slept, is not stuck.
"""

INTERRUPTED: Final = 2 * PATIENCE
"""After how many such looks what the loop does is interrupted, and again after so many more."""

Pause = Callable[[float], object]


class StuckLoopError(Exception):
    """What the log shows as the error of a stuck loop; its traceback is where the loop is."""


class Watchdog:
    """Watches over an event loop while :meth:`run` runs in it. To be made in the loop's thread."""

    def __init__(
        self, *, pause: Pause | None = None, interrupt: Callable[[], object] = lambda: None
    ) -> None:
        """While the loop is stuck, *pause* passes the time between looks, in seconds.

        It runs in the watchdog's thread, and may do something useful there. So does *interrupt*,
        which is called after every :data:`INTERRUPTED` looks.
        """
        self._interrupt = interrupt
        self._ended = threading.Event()
        self._pause_when_stuck: Pause = pause or self._ended.wait
        self._loop_thread = threading.get_ident()
        self._beats = 0
        self._seen = 0
        self._looks = 0
        """How many looks have found no beat since the last one."""
        self._told = 0
        """At how many such looks it was last logged."""
        self.stalls = 0
        """How often the loop was found stuck."""
        self.failures = 0
        """How often this itself failed, and went on."""

    @property
    def stuck_seconds(self) -> float:
        """For how long the loop has been stuck, 0 while it turns."""
        return self._looks * INTERVAL if self.is_stuck else 0.0

    @property
    def is_stuck(self) -> bool:
        return self._looks >= PATIENCE

    async def run(self) -> None:
        """Beat for ever, with a thread that looks whether this still happens."""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
        try:
            while True:
                self.beat()
                await asyncio.sleep(INTERVAL)
        finally:
            self._ended.set()

    def beat(self) -> None:
        """Show that the loop turns."""
        self._beats += 1

    def _watch(self) -> None:
        """Look until the end, whatever goes wrong with telling what is seen.

        The thread that has to say that nothing works must not end by an error of its own.
        """
        while not self._ended.is_set():
            try:
                self.look()
                if self.is_stuck:
                    self._pause_when_stuck(INTERVAL)
                    continue
            except Exception as exc:  # noqa: BLE001 - see above
                self._tell_of_failure(exc)
            self._ended.wait(INTERVAL)

    def _tell_of_failure(self, error: Exception) -> None:
        """Log that a look failed: the first time, and then ever more rarely."""
        self.failures += 1
        if self.failures & (self.failures - 1) == 0:
            with suppress(Exception):
                log.error(
                    "watchdog failed, goes on", extra={"failures": self.failures}, exc_info=error
                )

    def look(self) -> None:
        """See whether the loop has turned since the last look; log if it has been too long."""
        if self._beats != self._seen:
            if self.is_stuck:
                log.warning("event loop turns again", extra={"seconds": self.stuck_seconds})
            self._seen, self._looks, self._told = self._beats, 0, 0
            return
        self._looks += 1
        if self._looks == PATIENCE:
            self.stalls += 1
        if self.is_stuck and self._looks >= 2 * self._told:
            self._told = self._looks
            self._tell()
        if self._looks % INTERRUPTED == 0:
            self._interrupt()

    def _tell(self) -> None:
        innermost = sys._current_frames().get(self._loop_thread)
        if innermost is None:
            return
        error = StuckLoopError(f"no turn for {self.stuck_seconds:.0f} s")
        try:
            found = whereabouts(innermost)
        except Exception as exc:  # noqa: BLE001 - the frames run on, and their objects are anybody's
            found = {"whereabouts": f"unknown: {exc!r}"}
        log.error(
            "event loop is stuck",
            extra=found,
            exc_info=(StuckLoopError, error, traceback_of(innermost)),
        )


def whereabouts(innermost: FrameType) -> dict[str, str]:
    """Return the ``pod`` and the ``plugin`` that a stack is busy with, those that can be found.

    The innermost call decides: its arguments, and those of its callers, are looked at.
    """
    found: dict[str, str] = {}
    for frame in _outwards(innermost):
        for value in [*frame.f_locals.values()]:  # the thread goes on, and may add to them
            for kind, name in _named(value):
                found.setdefault(kind, name)
        if len(found) == 2:
            break
    return found


def _named(value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case Plugin():
            yield "plugin", value.NAME
        case PodInfo() | QueuedPodInfo():
            yield "pod", value.key
        case Pod():
            yield "pod", value.metadata.key


def traceback_of(innermost: FrameType) -> TracebackType | None:
    """Return the stack of a frame in the form that the log prints."""
    trace = None
    for frame in _outwards(innermost):
        trace = TracebackType(trace, frame, frame.f_lasti, frame.f_lineno or 0)
    return trace


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
