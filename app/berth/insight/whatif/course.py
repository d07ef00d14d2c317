"""The course of a simulation: how far it has come, and whether it goes on."""

from collections.abc import Callable
from typing import Any, Final, Literal

from berth.runtime.clock import Clock

Stage = Literal["placing", "comparing", "findNodes", "findRemovable"]


TELL_SECONDS: Final = 1.0


class CutShortError(Exception):
    """The time is over, and what was being found out is not known."""


class Course:
    """The course of one simulation, which has a budget. Its stages are those of the question."""

    def __init__(
        self,
        used: Callable[[], float] = lambda: 0.0,
        tell: Callable[["Course"], None] = lambda _course: None,
    ) -> None:
        """*used* returns which share of the budget is used up, 1.0 is all of it; it may raise.

        *tell* hears of each attempt to place a pod.
        """
        self._used = used
        self._tell = tell
        self.stage: Stage = "placing"
        self.done = 0
        self.of = 0
        """Pods, or nodes for ``findRemovable``."""
        self.is_cut = False
        """Whether the budget was used up before the end."""
        self.is_halved = False
        """Whether something was left out for lack of time, so that the rest could be finished."""
        self._counts_attempts = True

    def begin(self, stage: Stage, of: int, *, counts_attempts: bool = True) -> None:
        """Begin a stage; without *counts_attempts*, :meth:`advance` tells of what is done."""
        self.stage, self.done, self.of, self._counts_attempts = stage, 0, of, counts_attempts

    @property
    def progress(self) -> dict[str, Any]:
        """How far it is, as JSON has it."""
        return {"stage": self.stage, "done": self.done, "of": self.of}

    def advance(self) -> None:
        self.done = min(self.done + 1, self.of)

    def goes_on(self) -> bool:
        """Return whether there is time for another attempt to place a pod."""
        self.is_cut = self.is_cut or self._used() >= 1
        if self._counts_attempts:
            self.advance()
        self._tell(self)
        return not self.is_cut

    def has_half(self) -> bool:
        """Return whether half of the budget is left; once it is not, :attr:`is_halved`."""
        self.is_halved = self.is_halved or self._used() >= 0.5
        return not self.is_halved


def each_second(tell: Callable[[dict[str, Any]], None], clock: Clock) -> Callable[[Course], None]:
    """Return what tells the progress of a course, but not each time that it hears of it."""
    told_at = clock.monotonic()

    def hear(course: Course) -> None:
        nonlocal told_at
        now = clock.monotonic()
        if now - told_at >= TELL_SECONDS:
            told_at = now
            tell(course.progress)

    return hear
