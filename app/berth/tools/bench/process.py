"""A process that is measured from outside: what it has used, as the kernel counts it (Linux)."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from berth.runtime.clock import Clock
from berth.tools.bench.instructions import Counter, counter_of
from berth.tools.bench.usage import Usage

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
LOOK_SECONDS: Final = 0.05
END_SECONDS: Final = 10.0
"""How long a process may take to end before it is killed."""


class BenchError(Exception):
    """The measurement could not be made; the message says why."""


class Measured:
    """A process that runs. Its output goes to the file *output*, read when something is wrong."""

    def __init__(
        self, process: asyncio.subprocess.Process, output: Path, counter: Counter | None = None
    ) -> None:
        self._process = process
        self._output = output
        self._counter = counter

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Have the process stand still until :meth:`go_on`."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def used(self) -> Usage:
        """What the process and its descendants have used so far."""
        instructions = None if self._counter is None else self._counter.read()
        return Usage(self.cpu_seconds(), instructions)

    def cpu_seconds(self) -> float:
        """CPU time so far, user and system, of the process and its descendants.

        Those that have ended count once they were waited for. Resolution: a tick of 10 ms.
        """
        return sum(_cpu_ticks(pid) for pid in _family(self._process.pid)) / TICKS_PER_SECOND

    def memory(self) -> int:
        """Bytes that are resident, of the process itself."""
        return self._status("VmRSS")

    def peak_memory(self) -> int:
        """Most bytes that were ever resident, of the process itself."""
        return self._status("VmHWM")

    def _status(self, field: str) -> int:
        """Return a size of proc_pid_status(5), in bytes; 0 when the process is gone."""
        for line in _read(self._process.pid, "status").splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
        return 0

    def check(self) -> None:
        """Raise BenchError if the process has ended."""
        if self._process.returncode is not None:
            raise BenchError(
                f"{self._output.stem} ended with status {self._process.returncode};"
                f" it said:\n{self.last_words()}"
            )

    async def until_said(self, text: str, *, seconds: float, clock: Clock) -> None:
        """Return when the end of its output has *text*; BenchError if it has not in time."""
        deadline = clock.monotonic() + seconds
        while text not in self.last_words():
            self.check()
            if clock.monotonic() > deadline:
                raise BenchError(f"no {text!r} within {seconds:.0f} s:\n{self.last_words()}")
            await clock.sleep(LOOK_SECONDS)

    def last_words(self) -> str:
        """The end of its output."""
        return self._output.read_text(encoding="utf-8", errors="replace").strip()[-2000:]


@asynccontextmanager
async def running(command: Sequence[str], *, output: Path) -> AsyncIterator[Measured]:
    """Start *command*, and end it on the way out; BenchError if it cannot be started."""
    with output.open("wb") as file:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=asyncio.subprocess.STDOUT,
            )
        except OSError as exc:
            raise BenchError(f"{command[0]}: {exc.strerror}") from exc
    counter = counter_of(process.pid)
    try:
        yield Measured(process, output, counter)
    finally:
        if counter is not None:
            counter.close()
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGCONT)  # it may stand still
            try:
                await asyncio.wait_for(process.wait(), END_SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()


def _family(pid: int) -> list[int]:
    """List a process and all that descend from it."""
    family = [pid]
    for parent in family:  # grows while it is walked
        threads = Path(f"/proc/{parent}/task")
        for thread in sorted(os.listdir(threads)) if threads.is_dir() else ():
            family += map(int, _read(parent, f"task/{thread}/children").split())
    return family


def _cpu_ticks(pid: int) -> int:
    """Sum utime, stime, cutime and cstime (proc_pid_stat(5)); 0 for a process that is gone."""
    # The command's name stands in parentheses and may hold anything.
    _, _, rest = _read(pid, "stat").rpartition(") ")
    return sum(map(int, rest.split()[11:15]))


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # it has just ended
