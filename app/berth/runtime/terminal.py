"""Common parts of commands: printing, types of arguments, errors."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from berth.runtime.errors import UserError
from berth.runtime.printable import printable, printable_json, printable_lines

INTERRUPTED: Final = 130
"""The exit status after Ctrl-C, as shells have it."""
TERMINATED: Final = 143
"""The same after SIGTERM."""
QUIET_SECONDS: Final = 2.0
"""For so long nobody asks how far it is."""
TELL_SECONDS: Final = 1.0
YAML: Final = "yaml"
DOCUMENTS: Final = ("json", YAML)
"""Values of ``--output`` for programs."""


def program(command: str = "") -> str:
    """Return how berth, or one of its commands, was called: ``berth run``, ``kubectl berth run``.

    kubectl calls ``kubectl-berth`` when it is asked for ``kubectl berth``.
    """
    name = "kubectl berth" if Path(sys.argv[0]).stem == "kubectl-berth" else "berth"
    return f"{name} {command}".rstrip()


def typed(command: str = "") -> str:
    """Return what a person types in this folder to call berth, or one of its commands, again.

    That is ``.venv/bin/berth`` where another ``berth`` or none is on the path.
    """
    called = Path(sys.argv[0])
    if called.stem == "berth" and os.sep in sys.argv[0]:
        there = shutil.which("berth")
        if there is None or not called.exists() or not called.samefile(there):
            return f"{shown_path(called)} {command}".rstrip()
    return program(command)


def shown_path(path: Path) -> str:
    """Return *path* from the current folder on, if it is below that."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def show_cursor() -> None:
    """Have the terminal show its cursor again, which what is shown live hides."""
    with suppress(OSError):
        if sys.stdout.isatty():
            os.write(sys.stdout.fileno(), b"\x1b[?25h")


class UsageError(UserError):
    """What the user asked for cannot be done."""


class CommandError(Exception):
    """A command could not do its work though it was asked rightly. Ends it with status 1."""


def say(line: str) -> None:
    """Print one line, whatever is in it."""
    print(printable(line), flush=True)


def note(line: str) -> None:
    """Print one line on standard error, apart from what a program may read."""
    print(printable(line), file=sys.stderr, flush=True)


class Progress:
    """Tells people on standard error how far it is: after two seconds, and then every second."""

    def __init__(self, now: float, *, is_terminal: bool | None = None) -> None:
        """*now* is the time in monotonic seconds, as of all calls."""
        self._next = now + QUIET_SECONDS
        self._is_terminal = sys.stderr.isatty() if is_terminal is None else is_terminal

    def tell(self, now: float, words: str) -> None:
        """Tell *words*, if it is time for it and somebody looks."""
        if self._is_terminal and now >= self._next:
            self._next = now + TELL_SECONDS
            note(words)


def say_lines(text: str) -> None:
    """Print text of several lines that berth has written."""
    print(printable_lines(text), flush=True)


def say_document(document: str, output: str) -> None:
    """Print a JSON document, as YAML if *output* is that, so that a terminal shows all of it.

    YAML is a document of a stream, in ASCII; nothing in either is obeyed by a terminal.
    """
    if output == YAML:
        import yaml

        content = yaml.safe_dump(json.loads(document), sort_keys=False)
        print(f"---\n{content}", end="", flush=True)
    else:
        print(printable_json(document), flush=True)


def positive(text: str) -> int:
    """Read an argument that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return number


def port(text: str) -> int:
    """Read the number of a port; 0 lets the system choose."""
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} must be between 0 and 65535")
    return number


def http_url(text: str) -> str:
    """Read the URL of a server."""
    try:
        url = urlsplit(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{text!r}: {exc}") from exc
    if url.scheme not in ("http", "https") or not url.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} must begin with http:// or https://")
    return text


@contextmanager
def naming_port(number: int, *, flag: str) -> Iterator[None]:
    """Say of an OSError that it is about the port that *flag* gave."""
    try:
        yield
    except OSError as exc:
        # A file that cannot be written names itself; a port does not.
        raise UsageError(f"{exc.filename or f'{flag} {number}'}: {exc.strerror}") from exc


@contextmanager
def naming_file(flag: str, path: str) -> Iterator[None]:
    """Say of an OSError that it is about the file that *flag* named."""
    try:
        yield
    except OSError as exc:
        raise UsageError(f"{flag} {path}: {exc.strerror}") from exc
