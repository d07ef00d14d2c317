"""Tables for people, on a terminal or in a pipe. The only place that knows rich.

rich reads markup and names of emojis in strings and passes control characters on. Here every string
becomes printable text that is taken literally; there is no way to put markup in.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import IO, Final, TypeAlias

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from app.printable import printable

Content: TypeAlias = "Table | Styled | Stack | str"
"""What can be shown. A string is one line."""

_PADDING: Final = (0, 2, 0, 0)


class Styled:
    """A line of pieces, each with a style of its own: text and style, ``""`` for none."""

    def __init__(self, *pieces: tuple[str, str]) -> None:
        self._text = Text.assemble(*((printable(text), style) for text, style in pieces))

    def __rich__(self) -> Text:
        return self._text


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

    def add_column(self, name: str, *, right: bool = False) -> None:
        self._table.add_column(_line(name), justify="right" if right else "left", overflow="fold")

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


def show(content: Content, *, pipe_width: int) -> None:
    """Print *content*, in colours on a terminal; of *pipe_width* columns where there is none."""
    console = _console(sys.stdout)
    if console.is_terminal:
        console.print(_line(content))
    else:
        print(as_text(content, width=pipe_width), flush=True)


@contextmanager
def shown_live(file: IO[str] | None = None) -> Iterator[Callable[[Content], None] | None]:
    """Yield what shows content in place of what it showed before; None without a terminal.

    It is shown in *file*, by default standard output.
    """
    console = _console(file or sys.stdout)
    if not console.is_terminal:
        yield None
        return
    with Live(console=console, auto_refresh=False, transient=False) as live:
        yield lambda content: live.update(_line(content), refresh=True)


def _line(content: Content) -> RenderableType:
    return Text(printable(content)) if isinstance(content, str) else content


def _console(
    file: IO[str], *, width: int | None = None, color_system: str | None = "auto"
) -> Console:
    return Console(
        file=file, width=width, markup=False, emoji=False, highlight=False,
        color_system=color_system,  # type: ignore[arg-type] # its literals are not exported
    )  # fmt: skip
