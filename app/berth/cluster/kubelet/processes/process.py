"""A process: a command that runs by the clock, with what it has written."""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final, NamedTuple

from berth.cluster.kubelet.processes.shell import (
    Input,
    Job,
    Leave,
    Shell,
    ShellExit,
    Steps,
    Streams,
)
from berth.runtime.clock import rfc3339_micro

MOST_LINES: Final = 10_000
MOST_CHARACTERS: Final = 2**20
"""Of all lines that are kept."""
LONGEST_LINE: Final = 16 * 1024
"""Characters; longer lines are split, as container runtimes do."""
MOST_TURNS: Final = 10_000
"""Done at once by all commands of a process together."""


class Line(NamedTuple):
    """A line of a log."""

    time: str
    """RFC 3339."""
    text: str


class Log:
    """The last lines that a process has written."""

    def __init__(self) -> None:
        self.lines: deque[Line] = deque()
        self.is_ended = False
        self.count = 0
        """Of all lines, also those that are not kept."""
        self.listeners: list[Callable[[str], None]] = []
        """Told of each text that is written, and of the end by an empty one."""
        self._rest = ""
        self._size = 0

    def write(self, now: float, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._add(now, line)
        while len(self._rest) > LONGEST_LINE:
            self._add(now, self._rest[:LONGEST_LINE])
            self._rest = self._rest[LONGEST_LINE:]
        for listener in list(self.listeners):
            listener(text)

    def end(self, now: float) -> None:
        """Take what is written so far for a line; nothing more comes."""
        if self._rest:
            self._add(now, self._rest)
            self._rest = ""
        self.is_ended = True
        for listener in list(self.listeners):
            listener("")

    def _add(self, now: float, line: str) -> None:
        self.lines.append(Line(rfc3339_micro(now), line))
        self.count += 1
        self._size += len(line)
        while self._size > MOST_CHARACTERS or len(self.lines) > MOST_LINES:
            self._size -= len(self.lines.popleft().text)


class Process:
    """A command of a container, from its start to its end. Times are unix times."""

    def __init__(
        self,
        shell: Shell,
        words: list[str],
        now: float,
        *,
        out: Callable[[float, str], None],
        err: Callable[[float, str], None],
        stdin: Input,
    ) -> None:
        """*shell* is its own; *out* and *err* are given the time and what is written."""
        self.exit_code: int | None = None
        self.stdin = stdin
        self._now = now
        self._shell = shell
        shell.clock = lambda: self._now
        self._streams = Streams(
            stdin, lambda text: out(self._now, text), lambda text: err(self._now, text)
        )
        self._main = Job(shell.execute(words, self._streams), now)
        self._handlers: list[Job] = []

    @property
    def due(self) -> float:
        """When it goes on; infinity: when something happens, or never."""
        if self.exit_code is not None:
            return inf
        return min(job.due for job in self._jobs())

    def advance(self, now: float) -> None:
        """Do what is due until *now*."""
        for _ in range(MOST_TURNS):
            due = self.due
            if due > now:
                return
            self._now = max(due, self._now)
            for job in self._jobs():
                if job.due <= self._now and self.exit_code is None:
                    self._step(job)
        self._main.due = now + 1.0

    def handles(self, signal: str) -> bool:
        return signal in self._shell.traps

    def interrupt(self, signal: str, at: float) -> None:
        """Have a signal handled, if something is to be done about it."""
        shell, action = self._shell.traps[signal]
        if action:
            self._handlers.append(Job(shell.run_text(action, self._streams), at))

    def feed(self, text: str, now: float, *, is_end: bool = False) -> None:
        """Have *text* read from the standard input."""
        self.stdin.text += text
        self.stdin.is_open = self.stdin.is_open and not is_end
        for job in self._jobs():
            if job.due == inf:
                job.due = now

    def kill(self, code: int) -> None:
        """End it, whatever it wanted."""
        self._shell.traps.pop("EXIT", None)
        self.end(code)

    def end(self, code: int) -> None:
        """End it; what it wanted to be done at its end is done without a pause."""
        self.exit_code = code
        if "EXIT" in self._shell.traps:
            shell, action = self._shell.traps.pop("EXIT")
            try:
                for _ in zip(
                    range(MOST_TURNS), shell.run_text(action, self._streams), strict=False
                ):
                    pass
            except ShellExit as exc:
                self.exit_code = exc.code
            except (RecursionError, Leave):
                self.exit_code = 2
        self._main.steps.close()

    def _jobs(self) -> list[Job]:
        """Return what still runs, what others may wait for first."""
        jobs = (*self._handlers, *self._shell.jobs, self._main)
        return [job for job in jobs if job.exit_code is None]

    def _step(self, job: Job) -> None:
        try:
            job.due = self._now + next(job.steps)
            return
        except StopIteration as exc:
            job.exit_code = int(exc.value)
            ends = job is self._main
        except ShellExit as exc:
            job.exit_code = exc.code
            ends = job is self._main or job in self._handlers
        except (RecursionError, Leave):
            job.exit_code, ends = 2, job is self._main
        if ends:
            self.end(job.exit_code)


def forever() -> Steps:
    """Run until the end of the process."""
    while True:
        yield inf
