"""The pages of ``docs/`` taken apart: headings, links, code, and the blocks between fences.

The information after a fence says what a test does with the block. ``console``: a line that begins
with ``$ `` is a command (one that ends with a backslash goes on in the next line), what follows is
its output, in which ``...`` stands for anything. The commands of a page are run one after the other
in one folder; each has to end with status 0. ``status=1``: the last of the block ends with 1.
``background until="words"``: its one command keeps running until the page ends or another such
block has ``instead``; what comes next waits until it has said these words. ``no-run reason="..."``:
not run, for this reason.

A block whose first line is a comment with nothing but a file's name is written to that file. A
``yaml`` block has Kubernetes objects; with ``foreign-plugins`` a configuration of plugins that are
not berth's own; with ``values`` values of the chart. ``python`` is executed, ``json`` decoded,
``text`` only read.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"

_FENCE: Final = re.compile(r"^(`{3,})(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_FILE: Final = re.compile(r"^# (?:file: )?([\w./-]+\.(?:yaml|py|toml|csv))$")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a console block, with the output that the page shows."""

    line: str
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences."""

    page: str
    line: int
    language: str
    options: dict[str, str] = field(default_factory=dict)
    text: str = ""

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that the reader is to write this to."""
        found = _FILE.match(self.text.partition("\n")[0])
        return found[1] if found else None

    def commands(self) -> list[Command]:
        commands: list[Command] = []
        lines = iter(self.text.splitlines())
        for line in lines:
            if line.startswith("$ "):
                said = line[2:]
                while said.endswith("\\"):
                    said = f"{said}\n{next(lines)}"
                commands.append(Command(said))
            elif commands:
                last = commands[-1]
                commands[-1] = Command(last.line, (*last.output, line))
            else:
                raise ValueError(f"{self.where}: output without a command: {line!r}")
        return commands


@dataclass(frozen=True, slots=True)
class Page:
    """One file of ``docs/``."""

    path: Path

    @property
    def name(self) -> str:
        """The path below ``docs/``."""
        return self.path.relative_to(DOCS).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The page without its blocks."""
        return _FENCE.sub("", self.text)

    def anchors(self) -> set[str]:
        return {slug(heading) for heading in _HEADING.findall(self.prose)}

    def links(self) -> list[str]:
        return _LINK.findall(self.prose)

    def code(self) -> list[str]:
        """Return what is set as code within the prose."""
        return [" ".join(found.split()) for found in _CODE.findall(self.prose)]

    def blocks(self) -> Iterator[Block]:
        text = self.text
        for found in _FENCE.finditer(text):
            info, _, body = found[2].partition("\n")
            language, *words = shlex.split(info) or [""]
            options = dict(word.partition("=")[::2] for word in words)
            line = text.count("\n", 0, found.start()) + 1
            yield Block(self.name, line, language, options, body)


@cache
def pages() -> tuple[Page, ...]:
    found = (path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts)
    return tuple(map(Page, found))


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages that are in one of *languages*."""
    return [block for page in pages() for block in page.blocks() if block.language in languages]


def slug(heading: str) -> str:
    """Return the anchor of *heading*, as GitHub has it and Sphinx is told to have it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
