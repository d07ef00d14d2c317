"""Has simulations done in processes of their own, where they cannot keep the scheduler waiting."""

import asyncio
import logging
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

log = logging.getLogger(__name__)

MOST_SECONDS: Final = 30.0
"""How long one simulation may take, the start of its process included."""
MOST_AT_ONCE: Final = 2
UNANSWERABLE: Final = 2
"""The worker's exit status when it is the question that is wrong."""


class SimulationError(Exception):
    """There is no answer; the message says why."""


class TooManySimulationsError(SimulationError):
    """As many as may be are being done already."""


class SimulationFailedError(SimulationError):
    """The worker has failed, which is not the asker's fault."""


class SimulationProcesses:
    """Starts a process for each question, and ends it when it takes too long or nobody waits.

    A process, not a thread: it does not share the interpreter's lock with the scheduler, and its
    memory is gone with it. Its start is a good part of a second, which what-if can wait.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        more: Callable[[], Sequence[str]] = tuple,
        most_seconds: float = MOST_SECONDS,
        most_at_once: int = MOST_AT_ONCE,
    ) -> None:
        """*command* reads and writes as :mod:`app.commands.simulation_worker` does.

        *more* gives the arguments that may differ from one simulation to the next.
        """
        self._command = command
        self._more = more
        self._most_seconds = most_seconds
        self._most_at_once = most_at_once
        self._running = 0

    async def simulate(self, question: bytes, snapshot: Iterable[bytes]) -> bytes:
        """Return the JSON of the answer; *question* is one line of JSON.

        *snapshot* is gone through in turns with everybody else on the event loop. Raises
        SimulationError.
        """
        if self._running >= self._most_at_once:
            raise TooManySimulationsError(f"{self._running} simulations are being done already")
        self._running += 1
        try:
            async with asyncio.timeout(self._most_seconds):
                return await self._ask(question, snapshot)
        except TimeoutError as exc:
            raise SimulationError(
                f"not done within {self._most_seconds:g} s: ask for fewer pods or nodes"
            ) from exc
        finally:
            self._running -= 1

    async def _ask(self, question: bytes, snapshot: Iterable[bytes]) -> bytes:
        command = (*self._command, *self._more())
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        try:
            await _tell(process, question, snapshot)
            assert process.stdout is not None
            said = await process.stdout.read()
            status = await process.wait()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if status == UNANSWERABLE:
            raise SimulationError(said.decode())
        if status:
            log.error("a simulation failed", extra={"status": status})
            raise SimulationFailedError(f"the simulation failed with status {status}")
        return said


async def _tell(process: Process, question: bytes, snapshot: Iterable[bytes]) -> None:
    pipe = process.stdin
    assert pipe is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it has ended: its status says why
        pipe.write(question + b"\n")
        for piece in snapshot:
            pipe.write(piece)
            await pipe.drain()
            await asyncio.sleep(0)
        pipe.close()
        await pipe.wait_closed()
