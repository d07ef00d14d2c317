"""How long the turns of a scheduler's event loop are, and what runs in them.

``python -m berth.tools.bench.turns FILE run ...`` is ``berth run ...`` on asyncio's own event loop
instead of uvloop, which does not show where a turn begins. It writes a JSON line to *FILE* for each
long turn. Time is CPU time of the loop's thread, so that it does not matter what else the machine
does.
"""

import asyncio
import gc
import runpy
import selectors
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, thread_time
from typing import Any, Final, TextIO

import msgspec
import uvloop

from berth.runtime.tasks import awaited_frames

LONG: Final = 0.005
"""Seconds of CPU from which on a turn is written down."""
WORTH_NAMING: Final = 0.001
"""Seconds of CPU from which on a part of a turn is named."""
MOST_NAMED: Final = 3


class Part(msgspec.Struct, frozen=True):
    """One callback of a turn."""

    name: str
    cpu: float


class Turn(msgspec.Struct, frozen=True):
    """All that a loop did between two waits for I/O, in seconds of CPU."""

    end: float
    """On the monotonic clock, which all processes of a machine share."""
    cpu: float
    collecting: float
    """How much of it the garbage collector took."""
    parts: tuple[Part, ...]
    """The longest, the longest first."""

    def __str__(self) -> str:
        named = [f"{part.name} {part.cpu * 1e3:.0f}" for part in self.parts]
        if self.collecting >= WORTH_NAMING:
            named.append(f"garbage collector {self.collecting * 1e3:.0f}")
        return ", ".join(named)


def read_turns(file: Path) -> list[Turn]:
    """Read what the process has written so far."""
    whole, _, _ = file.read_bytes().rpartition(b"\n")
    return [msgspec.json.decode(line, type=Turn) for line in whole.splitlines()]


class TurnSelector(selectors.DefaultSelector):
    """A selector that measures what its loop does between two of its waits."""

    def __init__(self, file: TextIO) -> None:
        """Write long turns to *file*. To be made in the thread of the loop."""
        super().__init__()
        self._file = file
        self._thread = threading.get_ident()
        self._parts: list[Part] = []
        self._collecting = 0.0
        self._began: float | None = None
        self._collection_began = 0.0
        gc.callbacks.append(self._collected)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._began is not None:
            self._end_turn(thread_time() - self._began)
        ready = super().select(timeout)
        self._began = thread_time()
        return ready

    def run(self, handle: asyncio.Handle, run: Any) -> None:
        """Call *run*, which runs a part of the turn."""
        began = thread_time()
        run(handle)
        cpu = thread_time() - began
        if cpu >= WORTH_NAMING:
            self._parts.append(Part(_name(handle), cpu))

    def end(self) -> None:
        """Hear no more of the garbage collector."""
        gc.callbacks.remove(self._collected)

    def _end_turn(self, cpu: float) -> None:
        if cpu >= LONG:
            longest = sorted(self._parts, key=lambda part: -part.cpu)[:MOST_NAMED]
            turn = Turn(monotonic(), cpu, self._collecting, tuple(longest))
            self._file.write(msgspec.json.encode(turn).decode() + "\n")
            self._file.flush()
        self._parts.clear()
        self._collecting = 0.0

    def _collected(self, phase: str, _info: Mapping[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collection_began = thread_time()
        else:
            self._collecting += thread_time() - self._collection_began


def _name(handle: asyncio.Handle) -> str:
    """Name what a callback has run: a task, and where it waits now, or a function."""
    callback: Any = handle._callback  # type: ignore[attr-defined]  # as asyncio logs slow ones
    task = getattr(callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return str(getattr(callback, "__qualname__", type(callback).__name__))
    coroutine: Any = task.get_coro()
    frames = [*awaited_frames(coroutine)]
    at = f" at {frames[-1].f_code.co_qualname}" if frames else ""
    return f"{task.get_name().rstrip('-0123456789')} {coroutine.__qualname__}{at}"


@contextmanager
def measured_loop(output: TextIO) -> Iterator[asyncio.AbstractEventLoop]:
    """Yield a loop whose long turns are written to *output* until the end of the block."""
    selector = TurnSelector(output)
    loop, run = asyncio.SelectorEventLoop(selector), asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        if handle._loop is loop:  # type: ignore[attr-defined]  # others are in other threads
            selector.run(handle, run)
        else:
            run(handle)

    asyncio.Handle._run = measured  # type: ignore[assignment]  # all that a loop calls
    try:
        yield loop
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
        selector.end()


def main(argv: Sequence[str]) -> None:
    file, *command = argv
    with Path(file).open("w", encoding="utf-8") as output, measured_loop(output) as loop:
        uvloop.new_event_loop = lambda: loop  # type: ignore[assignment, return-value]  # what commands run on
        sys.argv[1:] = command
        runpy.run_module("berth", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
