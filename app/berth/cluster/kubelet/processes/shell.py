"""A shell that runs scripts step by step: each step says for how long it sleeps.

The rules are those of the POSIX shell (XCU 2), with ``[[`` and ``$RANDOM`` as BusyBox has them.
Commands of a pipeline run one after the other, so that one without an end gives nothing to the
next.
"""

import ast
from collections.abc import Callable, Generator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from math import inf
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from random import Random
from typing import Any, Final, NamedTuple

from berth.cluster.kubelet.processes import syntax
from berth.cluster.kubelet.processes.files import Files

Steps = Generator[float, None, int]
"""Yields seconds to sleep, infinity until something happens; returns an exit code."""

Sink = Callable[[str], None]
"""Takes text that is written."""

NOT_FOUND: Final = 127
MOST_AT_ONCE: Final = 1_000
"""Commands without a sleep; then a process rests, so that a busy loop takes time."""
REST_SECONDS: Final = 1.0
LONGEST_VALUE: Final = 2**20
"""Characters of a variable."""


@dataclass(slots=True)
class Input:
    """What a process reads: what has come so far, and whether more may come."""

    text: str = ""
    is_open: bool = False

    def read(self) -> Generator[float, None, str]:
        """Wait for the end, and return all."""
        while self.is_open:
            yield inf
        text, self.text = self.text, ""
        return text


@dataclass(frozen=True, slots=True)
class Streams:
    stdin: Input
    out: Sink
    err: Sink
    is_condition: bool = False
    """Whether ``set -e`` does not count here."""


class HttpRequest(NamedTuple):
    """A request to a server in a container."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes = b""


class HttpAnswer(NamedTuple):
    body: str
    code: int = 200
    content_type: str = "text/plain; charset=utf-8"


Server = Callable[[HttpRequest], HttpAnswer]


class ShellExit(Exception):  # noqa: N818
    """The end of a process."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code & 255


class Leave(Exception):  # noqa: N818
    """``break`` or ``continue``; outside of a loop it ends the process."""

    def __init__(self, how: str, count: int) -> None:
        super().__init__(how)
        self.how = how
        self.count = count


@dataclass(slots=True)
class Job:
    """A command in the background, or a handler of a signal."""

    steps: Steps
    due: float
    exit_code: int | None = None


@dataclass
class Shell:
    """The state of one shell. *commands* are what it can run, beside its own functions."""

    files: Files
    commands: "dict[str, Callable[[Shell, list[str], Streams], int | Steps]]"
    clock: Callable[[], float]
    """Unix seconds."""
    rng: Random
    variables: dict[str, str]
    exported: set[str]
    folder: str = "/"
    traps: "dict[str, tuple[Shell, str]]" = field(default_factory=dict)
    """By signal: which shell does what; nothing at all for an empty text."""
    jobs: list[Job] = field(default_factory=list)
    servers: "dict[int, Server]" = field(default_factory=dict)
    """By port: what listens there."""
    status: int = 0
    exits_on_error: bool = False
    _ran: int = 0
    _ran_at: float = 0.0

    def path(self, name: str) -> str:
        """Return the absolute path of *name*."""
        parts: list[str] = []
        for part in (name if name.startswith("/") else f"{self.folder}/{name}").split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        return "/" + "/".join(parts)

    def assign(self, name: str, value: str) -> None:
        if len(value) > LONGEST_VALUE:
            raise ShellExit(2)
        self.variables[name] = value

    def run_text(self, text: str, streams: Streams) -> Steps:
        """Run a script, as ``sh -c`` does."""
        try:
            script, _ = syntax.parse(text)
        except SyntaxError as exc:
            streams.err(f"sh: syntax error: {exc.msg}\n")
            return 2
        return (yield from self.script(script, streams))

    def script(self, script: syntax.Script, streams: Streams) -> Steps:
        for statement in script:
            if statement.in_background:
                background = copy(self)
                background.variables, background.jobs = dict(self.variables), []
                only = replace(statement, in_background=False)
                self.jobs.append(Job(background.script((only,), streams), self.clock()))
                self.status = 0
                continue
            for number, (operator, pipeline) in enumerate(statement.pipelines, 1):
                if (operator == "&&" and self.status) or (operator == "||" and not self.status):
                    continue
                is_last = number == len(statement.pipelines) and not pipeline.negated
                inner = streams if is_last else replace(streams, is_condition=True)
                self.status = yield from self._pipeline(pipeline, inner)
                if self.status and self.exits_on_error and not inner.is_condition:
                    raise ShellExit(self.status)
        return self.status

    def _pipeline(self, pipeline: syntax.Pipeline, streams: Streams) -> Steps:
        status, given = 0, streams.stdin
        for number, command in enumerate(pipeline.commands, 1):
            shell = self if len(pipeline.commands) == 1 else self._subshell()
            written: list[str] = []
            out = streams.out if number == len(pipeline.commands) else written.append
            inner = replace(streams, stdin=given, out=out)
            try:
                status = yield from shell._command(command, inner)
            except ShellExit as exc:
                if shell is self:
                    raise
                status = exc.code
            given = Input("".join(written))
        return int(not status) if pipeline.negated else status

    def _subshell(self) -> "Shell":
        shell = copy(self)
        shell.variables, shell.traps, shell.jobs = dict(self.variables), {}, []
        return shell

    def _command(self, command: syntax.Command, streams: Streams) -> Steps:
        try:
            for redirect in command.redirects:
                streams = yield from self._redirected(redirect, streams)
        except OSError as exc:
            streams.err(f"sh: can't open it: {exc}\n")
            return 1
        what = command.what
        match what:
            case syntax.Simple():
                return (yield from self._simple(what, streams))
            case syntax.If(branches):
                for condition, body in branches:
                    if not condition or not (yield from self._holds(condition, streams)):
                        return (yield from self._nested(body, streams))
                return 0
            case syntax.Loop():
                return (yield from self._loop(what, streams))
            case syntax.For(name, words, body):
                for value in (yield from self._expanded(words, streams)):
                    self.assign(name, value)
                    if (yield from self._iteration(body, streams)):
                        break
                return self.status
            case syntax.Group(body, is_subshell):
                if not is_subshell:
                    return (yield from self._nested(body, streams))
                try:
                    return (yield from self._subshell().script(body, streams))
                except ShellExit as exc:
                    return exc.code

    def _nested(self, body: syntax.Script, streams: Streams) -> Steps:
        self.status = 0
        return (yield from self.script(body, streams))

    def _holds(self, condition: syntax.Script, streams: Streams) -> Steps:
        return (yield from self.script(condition, replace(streams, is_condition=True)))

    def _loop(self, loop: syntax.Loop, streams: Streams) -> Steps:
        status = 0
        while True:
            yield from self._rest()
            holds = not (yield from self._holds(loop.condition, streams))
            if holds is loop.until or (yield from self._iteration(loop.body, streams)):
                return status
            status = self.status

    def _iteration(self, body: syntax.Script, streams: Streams) -> Generator[float, None, bool]:
        """Run the body of a loop once; return whether the loop ends."""
        try:
            yield from self.script(body, streams)
        except Leave as exc:
            self.status = 0
            if exc.count > 1:
                raise Leave(exc.how, exc.count - 1) from None
            return exc.how == "break"
        return False

    def _rest(self) -> Generator[float, None, None]:
        """Sleep for a while if much was run without."""
        now = self.clock()
        if now != self._ran_at:
            self._ran, self._ran_at = 0, now
        self._ran += 1
        if self._ran > MOST_AT_ONCE:
            yield REST_SECONDS

    def _simple(self, simple: syntax.Simple, streams: Streams) -> Steps:
        yield from self._rest()
        self.variables["?"], self.status = str(self.status), 0
        values = {}
        for name, word in simple.assignments:
            values[name] = yield from self._joined(word, streams)
        words = yield from self._expanded(simple.words, streams)
        if not words:
            for name, value in values.items():
                self.assign(name, value)
            return self.status
        if not values:
            return (yield from self.execute(words, streams))
        kept = self.variables, self.exported
        self.variables, self.exported = {**kept[0], **values}, kept[1] | values.keys()
        try:
            return (yield from self.execute(words, streams))
        finally:
            self.variables, self.exported = kept

    def execute(self, words: list[str], streams: Streams) -> Steps:
        """Run a command by its name or path."""
        name = words[0]
        if name in ("break", "continue"):
            count = words[1] if len(words) > 1 else ""
            raise Leave(name, int(count) if count.isdigit() else 1)
        command = self.commands.get(name.rpartition("/")[2])
        if command is None:
            streams.err(f"sh: {name}: not found\n")
            return NOT_FOUND
        try:
            result = command(self, words, streams)
            return result if isinstance(result, int) else (yield from result)
        except (OSError, ValueError, LookupError, ArithmeticError, TypeError) as exc:
            why = str(exc) if isinstance(exc, OSError) else "invalid argument"
            streams.err(f"{name}: {why}\n")
            return 1

    def _redirected(
        self, redirect: syntax.Redirect, streams: Streams
    ) -> Generator[float, None, Streams]:
        target = yield from self._joined(redirect.word, streams)
        path = self.path(target)
        if redirect.operator == "<":
            return replace(streams, stdin=Input(self.files.read(path)))
        sinks = {"1": streams.out, "2": streams.err} if redirect.operator == ">&" else {
            "/dev/stdout": streams.out, "/dev/stderr": streams.err,
            "/proc/1/fd/1": streams.out, "/proc/1/fd/2": streams.err,
        }  # fmt: skip
        sink = sinks.get(target)
        if sink is None:
            self.files.write(path, "", append=redirect.operator == ">>")
            sink = partial(self.files.write, path, append=True)
        if redirect.descriptor == 2:
            return replace(streams, err=sink)
        return replace(streams, out=sink)

    # Expansions.

    def _joined(self, word: syntax.Word, streams: Streams) -> Generator[float, None, str]:
        """Expand a word to one text."""
        text = ""
        for part in word:
            text += yield from self._part(part, streams)
        return text

    def _expanded(
        self, words: Sequence[syntax.Word], streams: Streams
    ) -> Generator[float, None, list[str]]:
        """Expand words to fields: split where nothing is quoted, and matched with files."""
        fields: list[str] = []
        for word in words:
            current, is_field, has_pattern = "", False, False
            for part in word:
                text = yield from self._part(part, streams)
                if isinstance(part, syntax.Text) or getattr(part, "quoted", True):
                    current += text
                    is_field = True
                    has_pattern |= (
                        isinstance(part, syntax.Text) and not part.quoted and text in "*?"
                    )
                    continue
                pieces = text.split()
                if text[:1].isspace() and is_field:
                    fields.append(current)
                    current, is_field = "", False
                for number, piece in enumerate(pieces):
                    if number:
                        fields.append(current)
                        current = ""
                    current += piece
                    is_field = True
                if pieces and text[-1:].isspace():
                    fields.append(current)
                    current, is_field = "", False
            if is_field:
                fields += (has_pattern and self._matching(current)) or [current]
        return fields

    def _matching(self, pattern: str) -> list[str]:
        """Return the files in one folder that match."""
        folder, slash, name = pattern.rpartition("/")
        path = self.path(folder or slash or ".")
        names = self.files.names_in(path) if self.files.is_folder(path) else []
        return [
            f"{folder}{slash}{each}"
            for each in names
            if fnmatchcase(each, name) and not each.startswith(".")
        ]

    def _part(self, part: object, streams: Streams) -> Generator[float, None, str]:
        match part:
            case syntax.Text(text, _):
                return text
            case syntax.Arithmetic(expression):
                return str(self.calculate((yield from self._joined(expression, streams))))
            case syntax.Substitution(script, _):
                written: list[str] = []
                shell = self._subshell()
                try:
                    self.status = yield from shell.script(
                        script, replace(streams, out=written.append)
                    )
                except ShellExit as exc:
                    self.status = exc.code
                return "".join(written).rstrip("\n")
            case syntax.Parameter():
                return (yield from self._parameter(part, streams))
        raise TypeError(part)

    def _parameter(self, part: syntax.Parameter, streams: Streams) -> Generator[float, None, str]:
        value = self._value(part.name)
        operator = part.operator
        is_missing = value is None or (operator.startswith(":") and not value)
        match operator[-1:]:
            case "-" | "=" if is_missing:
                default = yield from self._joined(part.word, streams)
                if operator[-1] == "=":
                    self.assign(part.name, default)
                return default
            case "+":
                return "" if is_missing else (yield from self._joined(part.word, streams))
        return value or ""

    def _value(self, name: str) -> str | None:
        match name:
            case "RANDOM":
                return str(self.rng.randrange(32768))
            case "PWD":
                return self.folder
            case "$":
                return "1"
        return self.variables.get(name)

    def calculate(self, expression: str) -> int:
        """Return the value of an integer expression, in 64 bits; ValueError if it is none."""
        if len(expression) > 1_000:
            raise ValueError("too long")
        try:
            tree = ast.parse(expression.strip() or "0", mode="eval")
        except SyntaxError:
            raise ValueError("arithmetic syntax error") from None
        value = self._number(tree.body)
        return (value + 2**63) % 2**64 - 2**63

    def _number(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(int(value)):
                return int(value)
            case ast.Name(name):
                return int(self._value(name) or "0")
            case ast.UnaryOp(ast.USub(), operand):
                return -self._number(operand)
            case ast.BinOp(left, operator, right) if type(operator) in _BINARY:
                return _BINARY[type(operator)](self._number(left), self._number(right))
            case ast.Compare(left, [operator], [right]) if type(operator) in _COMPARISONS:
                return int(_COMPARISONS[type(operator)](self._number(left), self._number(right)))
        raise ValueError("arithmetic syntax error")


def _quotient(left: int, right: int) -> int:
    """Divide as C does, towards zero."""
    if not right:
        raise ValueError("divide by zero")
    whole = abs(left) // abs(right)
    return whole if (left < 0) is (right < 0) else -whole


_BINARY: Final[dict[type, Callable[[int, int], int]]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: lambda left, right: mul(left, right) % 2**64,
    ast.Div: _quotient,
    ast.FloorDiv: _quotient,
    ast.Mod: lambda left, right: left - right * _quotient(left, right),
}
_COMPARISONS: Final[dict[type, Callable[[Any, Any], bool]]] = {
    ast.Eq: eq, ast.NotEq: ne, ast.Lt: lt, ast.LtE: le, ast.Gt: gt, ast.GtE: ge,
}  # fmt: skip
