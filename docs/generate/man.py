"""``python -m docs.generate.man FOLDER``: man pages of all commands, from what argparse knows."""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from berth import cli
from berth.runtime.release import version
from docs.generate.cli import STATUS, expanded, is_help, parser_of, value


def pages() -> dict[str, str]:
    """Return the pages by their names: ``berth.1`` and one for each command."""
    commands = [f".TP\n.BR berth-{name} (1)\n{text(does)}" for name, does in cli.COMMANDS.items()]
    overview = [*_head("berth", "a Kubernetes pod scheduler"), ".SH SYNOPSIS"]
    overview += [".B berth", ".I COMMAND", "[flags]", ".SH COMMANDS", *commands, *_status()]
    return {
        "berth.1": "\n".join(overview) + "\n",
        **{f"berth-{name}.1": _page(name, does) for name, does in cli.COMMANDS.items()},
    }


def _page(command: str, does: str) -> str:
    parser = parser_of(command)
    lines = [*_head(f"berth-{command}", does), ".SH SYNOPSIS", f".B berth {command}", "[flags]"]
    lines += _sections(parser)
    lines += [*_status(), ".SH SEE ALSO", ".BR berth (1)"]
    return "\n".join(lines) + "\n"


def _head(name: str, does: str) -> list[str]:
    return [
        f'.TH {name.upper()} 1 "" "berth {version()}" "User Commands"',
        ".SH NAME",
        f"{text(name)} \\- {text(does)}",
    ]


def _status() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for status, meaning in STATUS:
        yield f".TP\n.B {status}\n{text(meaning)}"


def _sections(parser: argparse.ArgumentParser) -> Iterator[str]:
    if parser.description:
        yield ".SH DESCRIPTION"
        yield text(parser.description)
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        commands = [a for a in actions if isinstance(a, argparse._SubParsersAction)]
        flags = [action for action in actions if action not in commands and not is_help(action)]
        if flags:
            yield f".SH {text((group.title or '').upper())}"
            if group.description:
                yield text(group.description)
        for action in flags:
            names = ", ".join(action.option_strings)
            given = "" if action.nargs == 0 else value(action)
            yield f".TP\n.B {text(f'{names} {given}'.strip())}"
            yield text(expanded(action, action.help or "")) or "\\&"
        for action in commands:
            for inner in action.choices.values():
                yield f".SH {text(inner.prog.upper())}"
                yield from (line.replace(".SH ", ".SS ", 1) for line in _sections(inner))


def text(words: str) -> str:
    """Return *words* as roff reads them: backslashes and hyphens escaped, no line a request."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", " ".join(escaped.split()))


if __name__ == "__main__":
    for name, page in pages().items():
        (Path(sys.argv[1]) / name).write_text(page, encoding="utf-8")
