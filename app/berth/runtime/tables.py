"""Tables for people, on a terminal or in a pipe. The only place that knows rich.

rich reads markup and names of emojis in strings and passes control characters on. Here every string
becomes printable text that is taken literally; there is no way to put markup in.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import IO, Final, TypeAlias

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from berth.runtime.printable import printable

Content: TypeAlias = "Table | Styled | Clipped | Stack | str"
"""What can be shown. A string is one line."""

GAP: Final = 2
"""Between two columns of a table."""
_PADDING: Final = (0, GAP, 0, 0)


class Styled:
    """A line of pieces, each with a style of its own: text and style, ``""`` for none."""

    def __init__(self, *pieces: tuple[str, str]) -> None:
        self._text = Text.assemble(*((printable(text), style) for text, style in pieces))

    def __rich__(self) -> Text:
        return self._text


class Clipped:
    """The first few lines of a text that would take more; ``…`` says so."""

    def __init__(self, content: Styled | str, *, lines: int) -> None:
        self._text = (content if isinstance(content, Styled) else Styled((content, ""))).__rich__()
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = list(self._text.wrap(console, options.max_width))
        shown = lines[: self._lines]
        if len(lines) > len(shown):
            shown[-1].truncate(options.max_width - 1)
            shown[-1].append("…")
        yield from shown


class Table:
    """Rows of cells below a header, without lines between them. Text that is too wide goes on
    in the next line.
    """

    def __init__(self, *columns: str, right: Sequence[int] = ()) -> None:
        """Begin a table; the columns at the indexes *right* are aligned there."""
        self._table = RichTable(box=None, pad_edge=False, padding=_PADDING)
        for index, name in enumerate(columns):
            self.add_column(name, right=index in right)

    @classmethod
    def of_facts(cls, facts: Iterable[tuple[str, str]]) -> "Table":
        """Return names with their values, without a header."""
        table = cls()
        table._table = RichTable.grid(padding=(0, 2))
        for _ in range(2):
            table.add_column("")
        for name, value in facts:
            table.add_row(name, value)
        return table

    def add_column(self, name: str, *, right: bool = False, width: int | None = None) -> None:
        """Add a column; of *width*, with ``…`` in place of what is too long for it, if given."""
        self._table.add_column(
            _line(name),
            justify="right" if right else "left",
            overflow="fold" if width is None else "ellipsis",
            no_wrap=width is not None,
            width=width,
        )

    def add_row(self, *cells: str | Styled) -> None:
        self._table.add_row(*(_line(cell) for cell in cells))

    def __rich__(self) -> RichTable:
        return self._table


class Stack:
    """One below the other."""

    def __init__(self, parts: Iterable[Content]) -> None:
        self._group = Group(*(_line(part) for part in parts))

    def __rich__(self) -> Group:
        return self._group


def as_text(content: Content, *, width: int) -> str:
    """Return *content* as plain lines of at most *width* columns, for a pipe or a file."""
    out = StringIO()
    _console(out, width=width, color_system=None).print(_line(content))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def height_of(content: Content, *, width: int) -> int:
    """Return how many lines *content* takes on a terminal of *width* columns."""
    return len(as_text(content, width=width).splitlines())


def show(content: Content, *, pipe_width: int) -> None:
    """Print *content*, in colours on a terminal; of *pipe_width* columns where there is none."""
    console = _console(sys.stdout)
    if console.is_terminal:
        console.print(_line(content))
    else:
        print(as_text(content, width=pipe_width), flush=True)


class Screen:
    """Content on a terminal that takes the place of what was there before."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console = console
        self._live = live
        self._last = console.size

    @property
    def width(self) -> int:
        return self._console.width

    @property
    def height(self) -> int:
        return self._console.height

    def show(self, content: Content) -> None:
        """Show *content*; on a terminal that has another size now, on a clear screen.

        What it showed before is folded by the terminal as it likes then, so that nobody knows how
        many lines there are to be taken away.
        """
        size = self._console.size
        if size != self._last:
            self._console.clear()
            self._last = size
        self._live.update(_line(content), refresh=True)


@contextmanager
def shown_live(file: IO[str] | None = None) -> Iterator[Screen | None]:
    """Yield a screen in *file*, by default standard output; None without a terminal, or on one
    that can only print line after line (``TERM=dumb``).

    What is printed meanwhile appears above the content. So does what is written to standard error,
    if that is a terminal, too.
    """
    console = _console(file or sys.stdout)
    if not console.is_terminal or console.is_dumb_terminal:
        yield None
        return
    with Live(
        console=console,
        auto_refresh=False,
        transient=False,
        redirect_stderr=sys.stderr.isatty(),
    ) as live:
        yield Screen(console, live)


def _line(content: Content) -> RenderableType:
    return Text(printable(content)) if isinstance(content, str) else content


def _console(
    file: IO[str], *, width: int | None = None, color_system: str | None = "auto"
) -> Console:
    return Console(
        file=file, width=width, markup=False, emoji=False, highlight=False,
        color_system=color_system,  # type: ignore[arg-type] # its literals are not exported
    )  # fmt: skip
