"""Markdown that reads the same on GitHub and on the Sphinx site."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Final

DOCS: Final = Path(__file__).parents[1]

_FLAG: Final = re.compile(r"(?<![\w`/-])(--[a-z][\w-]*)")
_MODULE: Final = re.compile(r":mod:`([^`]+)`")
_ROLE: Final = re.compile(r":(?:class|func|meth|attr|data|exc):`~?([^`]+)`")
_CODE: Final = re.compile(r"(`[^`]*`)")
_LITERAL: Final = re.compile(r"::\n\n((?:(?:    .*)?\n)+)(?=\S|\Z)")
_SPEC: Final = re.compile(r"\bspec §(\d+(?:\.\d+)*)")


def page(title: str, *parts: str, source: str) -> str:
    """Return a page with *parts* as paragraphs; *source* says what it is generated from."""
    note = (
        f"<!-- Generated from {source}. Do not edit: change the source, run `make reference`. -->"
    )
    return "\n\n".join([note, f"# {title}", *filter(None, parts)]) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells are Markdown, in which a bar is escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def code(text: str) -> str:
    """Return *text* set as code; nothing for nothing."""
    return f"`{text}`" if text else ""


def plain(text: str) -> str:
    """Return plain text, as of ``--help``, as Markdown: one line, flags set as code."""
    parts = _CODE.split(" ".join(text.split()))
    for index in range(0, len(parts), 2):
        escaped = re.sub(r"([*<>])", r"\\\1", parts[index])
        parts[index] = _FLAG.sub(r"`\1`", escaped)
    return "".join(parts)


def prose(docstring: str, *, specification: str) -> str:
    """Return a docstring as Markdown: roles, double backticks and literal blocks become code.

    Citations such as ``spec §6.3`` become links to *specification*, the page with the rules.
    """
    parts = _LITERAL.split(docstring)
    for index in range(0, len(parts), 2):
        text = _MODULE.sub(r"``\1``", parts[index])
        text = _ROLE.sub(lambda role: f"``{role[1].rpartition('.')[2]}``", text)
        parts[index] = _cited(text.replace("``", "`"), specification)
    for index in range(1, len(parts), 2):
        parts[index] = f":\n\n```python\n{dedent(parts[index]).strip()}\n```\n\n"
    return "".join(parts).strip()


def _cited(text: str, specification: str) -> str:
    """Link citations of the specification to its sections."""
    return _SPEC.sub(lambda cited: f"[{cited[0]}]({specification}#{_anchors()[cited[1]]})", text)


@cache
def _anchors() -> Mapping[str, str]:
    """Return the anchors of the sections of the specification, by number."""
    text = (DOCS / "specification.md").read_text(encoding="utf-8")
    return {
        heading.split()[0]: re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#{2,3} (\d.*)$", text, re.MULTILINE)
    }
