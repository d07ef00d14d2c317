"""Shows the progress of ``berth up``: live on a terminal, else line by line."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from berth.runtime.tables import Screen, shown_live
from berth.tools.up.progress import Progress, Told
from berth.tools.up.view import render

LINES_EVERY: Final = 8
"""Without a terminal, what changed is written every so many looks."""

Title = Callable[[], Sequence[str]]


class Display:
    """Made by :func:`display`."""

    def __init__(self, screen: Screen | None, *, title: Title, say: Callable[[str], None]) -> None:
        self._screen = screen
        self._title = title
        self._say = say
        self._told = Told()
        self._looks = 0
        self._last: Progress | None = None

    @property
    def rows(self) -> int:
        """How many lines there is room for; 0 without a terminal."""
        return self._screen.height if self._screen else 0

    def show(self, progress: Progress) -> None:
        """Show the next look."""
        if self._screen is not None:
            width, height = self._screen.width, self._screen.height
            self._screen.show(render(progress, title=self._title(), width=width, height=height))
        elif self._looks % LINES_EVERY == 0:
            self._write(progress)
        self._looks += 1
        self._last = progress

    def finish(self) -> None:
        """Without a terminal, write what changed since the last line."""
        if self._screen is None and self._last is not None:
            self._write(self._last)

    def _write(self, progress: Progress) -> None:
        for line in self._told.lines(progress):
            self._say(line)


@contextmanager
def display(*, title: Title, say: Callable[[str], None]) -> Iterator[Display]:
    """Yield a display on standard output; *say* prints a line where that is no terminal.

    *title* is asked for the first lines at each look.
    """
    with shown_live() as screen:
        made = Display(screen, title=title, say=say)
        yield made
    made.finish()
