"""Transcripts: commands, what they print, and how they end.

::

    $ kubectl get pod nosuch
    Error from server (NotFound): pods "nosuch" not found
    [exit 1]

A command may be given its input by ``<<EOF``. In what it prints, ``...`` stands for any text on a
line, and alone on a line for any lines; spaces count as one, because columns are as wide as ages.
Lines that begin with ``#`` are remarks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "transcripts"
PROMPT = "$ "
INPUT = " <<EOF"


@dataclass(slots=True)
class Command:
    """One command of a transcript."""

    line: int
    text: str
    stdin: str = ""
    printed: list[str] = field(default_factory=list)
    exit: int = 0

    def is_answered_by(self, output: str) -> bool:
        """Tell whether *output* is what the transcript shows."""
        expected = _squeezed("".join(f"{each}\n" for each in self.printed))
        parts = re.split(r"(?m)^\.\.\.\n", expected)
        pattern = r"(?:.*\n)*?".join(_on_lines(part) for part in parts)
        if output and not output.endswith("\n"):
            output += "\n"
        return re.fullmatch(pattern, _squeezed(output)) is not None


def _squeezed(text: str) -> str:
    return re.sub(r" *(\n)| +", lambda found: found[1] or " ", text)


def _on_lines(text: str) -> str:
    return ".*".join(re.escape(part) for part in text.split("..."))


def read(path: Path) -> list[Command]:
    """Return the commands of a transcript in their order."""
    return list(_commands(path.read_text(encoding="utf-8").splitlines()))


def _commands(lines: list[str]) -> Iterator[Command]:
    command: Command | None = None
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        if line.startswith("#"):
            continue
        if line.startswith(PROMPT):
            if command is not None:
                yield command
            text = line.removeprefix(PROMPT)
            command = Command(number, text.removesuffix(INPUT))
            if text.endswith(INPUT):
                given = []
                for _, each in numbered:
                    if each == "EOF":
                        break
                    given.append(f"{each}\n")
                command.stdin = "".join(given)
        elif command is None:
            raise ValueError(f"line {number} is before the first command: {line}")
        elif ended := re.fullmatch(r"\[exit (\d+)\]", line):
            command.exit = int(ended[1])
        else:
            command.printed.append(line)
    if command is not None:
        yield command
