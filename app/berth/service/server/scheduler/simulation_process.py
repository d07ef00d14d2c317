"""Has simulations done in processes of their own, where they cannot keep the scheduler waiting."""

import asyncio
import logging
import signal
import struct
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from berth.runtime.memory import room_in_container

log = logging.getLogger(__name__)

MOST_CPU_SECONDS: Final = 30.0
"""CPU time of one simulation, the start of its process included. Then its answer is partial."""
MOST_SECONDS: Final = 300.0
"""How long one simulation may take on a machine that has no CPU time for it."""
MOST_AT_ONCE: Final = 2
MOST_MEMORY: Final = 2**30
"""Bytes that one simulation may take beside its code."""
MOST_ANSWER_BYTES: Final = 64 * 2**20
PIECE: Final = 2**18
UNANSWERABLE, OUT_OF_MEMORY = 2, 3
"""Exit statuses of the worker when it is the question that is wrong, or too large."""
PROGRESS: Final = b"\2"
"""What begins a line of JSON about how far the worker is; no answer begins so."""
WANTS_SNAPSHOT: Final = b"?"
"""What the worker writes first if the question brings no snapshot; no answer begins so."""
SIZE: Final = struct.Struct(">Q")
"""How many bytes the question has, in front of it."""
MEMORY_STATUS: Final = 507
_WITHOUT_MEMORY: Final = (OUT_OF_MEMORY, -signal.SIGKILL, -signal.SIGABRT, -signal.SIGSEGV)
"""Out of memory, the kernel kills the process, libraries in C++ abort it, and those in C that use
what they did not get end it, too."""


class SimulationError(Exception):
    """There is no answer; the message says why."""


class TooManySimulationsError(SimulationError):
    """As many as may be are being done already."""


class SimulationTooLargeError(SimulationError):
    """It takes more memory than one simulation may have, or its answer is too long."""


class SimulationFailedError(SimulationError):
    """The worker has failed, which is not the asker's fault."""


class SimulationProcesses:
    """Starts a process per question, and ends it when it takes too long or the client has gone.

    A process, not a thread: it does not share the interpreter's lock with the scheduler, and its
    memory, of which it may have *most_memory* bytes, is gone with it. Its start is a good part of
    a second, which what-if can wait.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        more: Callable[[], Sequence[str]] = tuple,
        most_cpu_seconds: float = MOST_CPU_SECONDS,
        most_seconds: float = MOST_SECONDS,
        most_at_once: int = MOST_AT_ONCE,
        most_memory: int = MOST_MEMORY,
    ) -> None:
        """*command* reads and writes as :mod:`berth.service.simulation_worker` does.

        *more* gives the arguments that may differ from one simulation to the next.
        """
        self._command = command
        self._more = more
        self._most_cpu_seconds = most_cpu_seconds
        self._most_seconds = most_seconds
        self._most_at_once = most_at_once
        self._most_memory = most_memory
        self._running = 0

    async def simulate(
        self,
        ask: Callable[[], Awaitable[bytes]],
        live: Callable[[], Awaitable[Iterable[bytes]]],
        tell: Callable[[bytes], None] = lambda _progress: None,
    ) -> bytes:
        """Return the JSON of the answer to the JSON that *ask* returns once it is its turn.

        If that brings no snapshot, it is about what *live* returns, which is gone through in turns
        with everybody else on the event loop. Meanwhile *tell* hears how far it is, in JSON. Raises
        SimulationError, and what the two raise.
        """
        if self._running >= self._most_at_once:
            raise TooManySimulationsError(f"{self._running} simulations are being done already")
        self._running += 1
        try:
            async with asyncio.timeout(self._most_seconds):
                return await self._answer(await ask(), live, tell)
        except TimeoutError as exc:
            raise SimulationError(
                f"not done within {self._most_seconds:g} s, and it has not taken"
                f" {self._most_cpu_seconds:g} s of CPU: the machine is too busy, or a plugin waits"
                " for something"
            ) from exc
        finally:
            self._running -= 1

    async def _answer(
        self,
        question: bytes,
        live: Callable[[], Awaitable[Iterable[bytes]]],
        tell: Callable[[bytes], None],
    ) -> bytes:
        memory = min(self._most_memory, room_in_container() // self._most_at_once)
        command = (*self._command, *self._more(), "--most-memory", str(memory))
        command += ("--most-cpu", str(self._most_cpu_seconds))
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        try:
            said = await _converse(process, question, live, tell)
            status = await process.wait()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        match status:
            case 0:
                return said
            case _ if status == UNANSWERABLE:
                raise SimulationError(said.decode())
            case _ if status == -signal.SIGXCPU:
                raise SimulationError(
                    f"{self._most_cpu_seconds:g} s of CPU are over before a pod was decided about:"
                    " the cluster is too large to be read, or a plugin takes that long for one pod;"
                    " `berth simulate --snapshot` has no limit"
                )
            case _ if status in _WITHOUT_MEMORY:
                raise SimulationTooLargeError(
                    f"it takes more than {memory >> 20} MiB of memory: ask for fewer pods or nodes"
                )
        log.error("a simulation failed", extra={"status": status})
        raise SimulationFailedError(f"the simulation failed with status {status}")


async def _converse(
    process: Process,
    question: bytes,
    live: Callable[[], Awaitable[Iterable[bytes]]],
    tell: Callable[[bytes], None],
) -> bytes:
    """Tell a worker what it wants to know, and return what it says then but for its progress."""
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    said = b""
    with suppress(BrokenPipeError, ConnectionResetError):  # it has ended: its status says why
        for piece in (SIZE.pack(len(question)), *_pieces(question)):
            await _write(stdin, piece)
        said = await stdout.read(1)
        if said == WANTS_SNAPSHOT:
            said = b""
            for piece in await live():
                await _write(stdin, piece)
        stdin.close()
        await stdin.wait_closed()
        said = said or await stdout.read(1)
    with suppress(asyncio.IncompleteReadError):  # it has ended in the middle of a line
        while said == PROGRESS:
            said = b""
            tell(await stdout.readuntil(b"\n"))
            said = await stdout.read(1)
    pieces, size = [said], 0
    while piece := await stdout.read(PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_ANSWER_BYTES:
            raise SimulationTooLargeError(
                f"its answer has more than {MOST_ANSWER_BYTES >> 20} MiB: ask for fewer pods"
            )
    return b"".join(pieces)


async def _write(pipe: asyncio.StreamWriter, piece: bytes) -> None:
    pipe.write(piece)
    await pipe.drain()
    await asyncio.sleep(0)


def _pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]
