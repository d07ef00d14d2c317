"""A recorded cluster, brought to the moment that is asked about."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from berth.insight.explain.explainer import Explainer
from berth.insight.recording import lines
from berth.insight.recording.files import RecordingError, RecordingFile
from berth.insight.recording.replay import Replay
from berth.insight.recording.runs import RecordedRun
from berth.scheduler.core.scheduler_core import SchedulerCore
from berth.scheduler.core.view import view_of
from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.outcome import Outcome
from berth.scheduler.profile.build import Registry

Until: TypeAlias = Callable[[lines.Step], bool]
"""Whether a step comes after a moment."""


class PastCluster:
    """The state of one recording at a moment, which only moves on.

    Whoever looks at it between two steps changes nothing: the steps that follow come to the same.
    """

    def __init__(self, run: RecordedRun, registry: Registry) -> None:
        """Begin before the first step. Raises ConfigError when the profiles cannot be made."""
        self.run = run
        self.replay = _ObservedReplay(run.header, registry, ranks_nodes=True)
        self.view = view_of(self.replay.core)
        self.explainer = Explainer(self.view)
        self.attempt = 0
        """The number of the last attempt that was made."""
        self._steps = run.read()
        self._next: tuple[RecordingFile, lines.Step] | None = next(self._steps, None)

    @property
    def next_step(self) -> lines.Step | None:
        """What comes next; None at the end."""
        return None if self._next is None else self._next[1]

    @property
    def core(self) -> SchedulerCore:
        """The scheduler; to be looked at only."""
        return self.replay.core

    @property
    def outcomes(self) -> dict[str, Outcome | None]:
        """What the last attempt came to, by pod; of the pods of a group, each."""
        return self.replay.outcomes

    async def step(self) -> None:
        """Make the next step. Raises RecordingError."""
        assert self._next is not None
        file, line = self._next
        if isinstance(line, lines.Attempt):
            self.attempt = line.number
            self.replay.outcomes.clear()
        with file.naming_line():
            await self.replay.step(line)
        self._next = next(self._steps, None)

    async def advance(self, until: Until) -> None:
        """Make the steps before the first one of which *until* is true, or all there are.

        Raises RecordingError.
        """
        while self._next is not None and not until(self._next[1]):
            await self.step()

    def set_clock(self, t: float | None) -> float:
        """Let it be *t*, or by default the time of the next step, and return that; no step is made.

        It is never before the last step, nor after the next one.
        """
        clock = self.replay.clock
        then = getattr(self.next_step, "t", clock.moment if t is None else t)
        clock.moment = max(clock.moment, then if t is None else min(t, then))
        return clock.moment

    async def end(self) -> None:
        """Give up what has not ended."""
        await self.replay.end()


def at_attempt(number: int) -> Until:
    """Return what is true of an attempt: the *number*-th one, or one after it."""
    return lambda line: isinstance(line, lines.Attempt) and line.number >= number


def after_time(t: float) -> Until:
    """Return what is true of steps after *t*, in seconds since 1970."""
    return lambda line: getattr(line, "t", t) > t


def run_at(recorded: list[RecordedRun], t: float) -> RecordedRun:
    """Return the last of the recordings that had begun at *t*. Raises RecordingError."""
    begun = [run for run in recorded if run.header.t <= t]
    if not begun:
        first = recorded[0]
        raise RecordingError(f"{first.files[0].path}: begins after that time")
    return begun[-1]


def attempts(run: RecordedRun) -> Iterator[lines.Attempt]:
    """Yield the attempts of *run*, without making them. Raises RecordingError."""
    return (line for _, line in run.read() if isinstance(line, lines.Attempt))


class _ObservedReplay(Replay):
    """Keeps what the last attempt came to."""

    def begins(self, core: SchedulerCore) -> None:
        self.outcomes: dict[str, Outcome | None] = {}
        super().begins(core)

    def decided(self, record: DecisionRecord, outcome: Outcome | None) -> None:
        super().decided(record, outcome)
        self.outcomes[record.pod] = outcome
