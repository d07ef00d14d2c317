"""Terminal screenshots: captured output, with its colours, as SVG.

``docs/pictures/terminal/`` has what commands printed; :mod:`docs.generate.capture` writes it. The
first line of a capture is the command. Nothing but what ``rich`` prints is understood: text, and
escape sequences that select colours and bold.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

CAPTURES: Final = Path(__file__).parents[1] / "pictures" / "terminal"

COLUMNS: Final = 92
COLUMN: Final = 8.0
LINE: Final = 18
MARGIN: Final = 16
BAR: Final = 30
"""Height of the title bar, in pixels like the others."""

_SGR: Final = re.compile(r"\x1b\[([\d;]*)m")
_STYLES: Final = {
    "1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "34": "blue",
    "35": "magenta", "36": "cyan",
}  # fmt: skip
_STYLE_SHEET: Final = """\
    .screen { fill: #161b22; stroke: #3d444d }
    text { font: 13px "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d1d7e0 }
    .prompt { fill: #ffffff; font-weight: bold }
    .bold { font-weight: bold; fill: #ffffff }
    .dim { fill: #9198a1 }
    .red { fill: #ff7b72 }
    .green { fill: #56d364 }
    .yellow { fill: #e3b341 }
    .blue { fill: #79c0ff }
    .magenta { fill: #d2a8ff }
    .cyan { fill: #76e3ea }
    .one { fill: #ff5f57 }
    .two { fill: #febc2e }
    .three { fill: #28c840 }"""


class Piece(NamedTuple):
    text: str
    styles: tuple[str, ...]


class Screenshot(NamedTuple):
    title: str
    description: str


SCREENSHOTS: Final[Mapping[str, Screenshot]] = {
    "up": Screenshot(
        "The live view of berth up",
        "Counts of pods, the pods that fit nowhere with the reasons, and a table of nodes with "
        "bars for the CPU and memory that their pods request.",
    ),
    "explain": Screenshot(
        "berth explain for a pending pod",
        "A summary sentence, the state of the pod in the queue, the events that would wake it, "
        "the message of the event, the nearest miss, and a table with the reason for each node.",
    ),
    "simulate": Screenshot(
        "berth simulate for 40 more pods",
        "13 pods have a node. Tables show resources before and after, zones, the nodes that got "
        "pods, and the pods without a node with the reason.",
    ),
    "upgrade": Screenshot(
        "berth replay of a recorded day, as the next release of Kubernetes",
        "Of 16 decisions 12 are the same and 4 differ. A table names the pods that would go to "
        "another node, and the plugin that makes the difference.",
    ),
    "plugin-list": Screenshot(
        "berth plugin list",
        "A table of plugins with their extension points, the profiles that enable them, and "
        "where each comes from.",
    ),
}


def screenshots() -> Mapping[str, Callable[[], str]]:
    """Return the pictures: file in ``docs/``, function that returns its text."""
    return {f"pictures/{name}.svg": partial(picture, name) for name in SCREENSHOTS}


def picture(name: str) -> str:
    """Return the capture called *name* as SVG."""
    command, *lines = (CAPTURES / f"{name}.ansi").read_text("utf-8").splitlines()
    lines = [part for line in lines for part in folded(line)]
    shown = [[Piece(f"$ {command}", ("prompt",))], *(list(pieces(line)) for line in lines)]
    columns = max(sum(len(piece.text) for piece in line) for line in shown)
    width = round(columns * COLUMN + 2 * MARGIN)
    height = BAR + len(shown) * LINE + MARGIN
    title, description = SCREENSHOTS[name]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="title desc">',
        f'  <title id="title">{escape(title)}</title>',
        f'  <desc id="desc">{escape(description)}</desc>',
        f"  <style>\n{_STYLE_SHEET}\n  </style>",
        f'  <rect class="screen" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" '
        'rx="8"/>',
    ]
    parts += [
        f'  <circle class="{name}" cx="{18 + 18 * index}" cy="16" r="5.5"/>'
        for index, name in enumerate(("one", "two", "three"))
    ]
    for row, line in enumerate(shown):
        parts += [f"  {text}" for text in _texts(line, y=BAR + (row + 1) * LINE - 5)]
    return "\n".join([*parts, "</svg>", ""])


def folded(line: str) -> list[str]:
    """Break a plain line that is wider than the terminal, as the terminal does."""
    if len(line) <= COLUMNS or "\x1b" in line:
        return [line]
    return [line[start : start + COLUMNS] for start in range(0, len(line), COLUMNS)]


def pieces(line: str) -> Iterator[Piece]:
    """Split a line of terminal output where its style changes."""
    styles: tuple[str, ...] = ()
    found = _SGR.split(line.rstrip())
    for index, part in enumerate(found):
        if index % 2 == 0:
            if part:
                yield Piece(part, styles)
        else:
            for code in part.split(";"):
                styles = () if code in ("", "0") else (*styles, _STYLES[code])


def _texts(line: list[Piece], *, y: int) -> Iterator[str]:
    """Yield the words of *line*, each at its column: fonts differ in how wide they are."""
    column = 0
    for piece in line:
        for run in re.finditer(r"\S+(?: \S+)*", piece.text):
            x = MARGIN + (column + run.start()) * COLUMN
            styles = f' class="{" ".join(piece.styles)}"' if piece.styles else ""
            length = len(run[0]) * COLUMN
            yield (
                f'<text{styles} x="{x:g}" y="{y}" textLength="{length:g}" '
                f'lengthAdjust="spacingAndGlyphs">{escape(run[0])}</text>'
            )
        column += len(piece.text)
