"""The commands that a shell in a container has: those of BusyBox that scripts of tests use.

A command takes the shell, its words and its streams, and returns its exit code, at once or after
some time. OSError and ValueError become a message and exit code 1.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from math import inf
from typing import Final

from berth.cluster.kubelet.processes.shell import Shell, ShellExit, Steps, Streams

SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
CHUNK: Final = 512
"""Bytes that ``dd`` copies at a time, if it is not said."""


def _sleep(_shell: Shell, words: list[str], _streams: Streams) -> Steps:
    seconds = 0.0
    for word in words[1:]:
        unit = SECONDS.get(word[-1:])
        seconds += inf if word == "infinity" else float(word[:-1] if unit else word) * (unit or 1.0)
    yield seconds if seconds > 0 else 0.0
    while seconds == inf:
        yield inf
    return 0


def _exit(shell: Shell, words: list[str], _streams: Streams) -> int:
    raise ShellExit(int(words[1] if len(words) > 1 else shell.variables["?"]))


def _echo(_shell: Shell, words: list[str], streams: Streams) -> int:
    options = []
    while len(words) > 1 and re.fullmatch("-[neE]+", words[1]):
        options.append(words.pop(1))
    text, end = " ".join(words[1:]), "" if any("n" in each for each in options) else "\n"
    streams.out((_unescaped(text) if any("e" in each for each in options) else text) + end)
    return 0


def _printf(_shell: Shell, words: list[str], streams: Streams) -> int:
    arguments = words[2:]
    while True:
        taken = len(arguments)

        def directive(found: re.Match[str]) -> str:
            if found[0] == "%%":
                return "%"
            value = arguments.pop(0) if arguments else ""
            return found[0] % (value if found[2] == "s" else int(value or 0))

        streams.out(re.sub(r"%(-?\d{0,3})([sdixX])|%%", directive, _unescaped(words[1])))
        if not arguments or len(arguments) == taken:
            return 0


def _unescaped(text: str) -> str:
    escapes = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0", "a": "\a"}
    return re.sub(r"\\([ntr\\0a])", lambda found: escapes[found[1]], text)


def _cat(shell: Shell, words: list[str], streams: Streams) -> Steps:
    names = [word for word in words[1:] if word == "-" or not word.startswith("-")]
    status = 0
    for name in names or ["-"]:
        if name == "-":
            while streams.stdin.text or streams.stdin.is_open:
                text, streams.stdin.text = streams.stdin.text, ""
                if text:
                    streams.out(text)
                else:
                    yield inf
            continue
        try:
            streams.out(shell.files.read(shell.path(name)))
        except OSError as exc:
            streams.err(f"cat: can't open '{name}': {exc}\n")
            status = 1
    return status


def _each_file(words: list[str]) -> list[str]:
    return [word for word in words[1:] if not word.startswith("-")]


def _touch(shell: Shell, words: list[str], _streams: Streams) -> int:
    for name in _each_file(words):
        if not shell.files.is_folder(shell.path(name)):
            shell.files.write(shell.path(name), "", append=True)
    return 0


def _rm(shell: Shell, words: list[str], _streams: Streams) -> int:
    options = "".join(word for word in words[1:] if word.startswith("-"))
    for name in _each_file(words):
        path = shell.path(name)
        if "f" in options and not shell.files.is_there(path):
            continue
        if "r" not in options and "R" not in options and shell.files.is_folder(path):
            raise IsADirectoryError(f"'{name}' is a directory")
        shell.files.remove(path)
    return 0


def _mkdir(shell: Shell, words: list[str], _streams: Streams) -> int:
    for name in _each_file(words):
        path = shell.path(name)
        if "-p" not in words and shell.files.is_there(path):
            raise FileExistsError(f"can't create directory '{name}': File exists")
        shell.files.make_folder(path)
    return 0


def _ls(shell: Shell, words: list[str], streams: Streams) -> int:
    for name in _each_file(words) or ["."]:
        try:
            names = shell.files.names_in(shell.path(name))
        except OSError as exc:
            streams.err(f"ls: {name}: {exc}\n")
            return 1
        names = [name] if not shell.files.is_folder(shell.path(name)) else names
        streams.out("".join(f"{each}\n" for each in names))
    return 0


def _find(shell: Shell, words: list[str], streams: Streams) -> int:
    """``find FOLDER``: all that is in it."""
    names = [words[1] if len(words) > 1 else "."]
    while names:
        name = names.pop(0)
        streams.out(f"{name}\n")
        if shell.files.is_folder(shell.path(name)):
            inside = shell.files.names_in(shell.path(name))
            names[:0] = [f"{name.rstrip('/')}/{each}" for each in inside]
        elif not shell.files.is_there(shell.path(name)):
            raise FileNotFoundError("No such file or directory")
    return 0


def _copy(shell: Shell, words: list[str], streams: Streams) -> int:
    """``cp`` and ``mv`` of single files."""
    *sources, target = _each_file(words)
    for source in sources:
        path, goal = shell.path(source), shell.path(target)
        if not shell.files.is_there(path):
            streams.err(f"{words[0]}: can't stat '{source}': No such file or directory\n")
            return 1
        if shell.files.is_folder(goal):
            goal = f"{goal.rstrip('/')}/{path.rpartition('/')[2]}"
        shell.files.write(goal, shell.files.read(path))
        if words[0].endswith("mv"):
            shell.files.remove(path)
        if "-v" in words:
            streams.out(f"'{source}' -> '{goal}'\n")
    return 0


def _dd(shell: Shell, words: list[str], streams: Streams) -> int:
    given = dict(word.split("=", 1) for word in words[1:])
    size = int(given.get("bs", CHUNK)) * int(given.get("count", "1"))
    source = shell.path(given.get("if", "/dev/null"))
    text = "\0" * min(size, 2**20) if source == "/dev/zero" else shell.files.read(source)
    shell.files.write(shell.path(given["of"]), text)
    streams.err("1+0 records in\n1+0 records out\n")
    return 0


def _test(shell: Shell, words: list[str], streams: Streams) -> int:
    closing = {"[": "]", "[[": "]]"}.get(words[0])
    terms = words[1:]
    if closing is not None:
        if terms[-1:] != [closing]:
            streams.err(f"sh: {words[0]}: missing {closing}\n")
            return 2
        terms.pop()
    try:
        return int(not _holds(shell, terms, as_pattern=words[0] == "[["))
    except (ValueError, IndexError):
        streams.err(f"sh: {' '.join(terms)}: bad expression\n")
        return 2


def _holds(shell: Shell, terms: list[str], *, as_pattern: bool) -> bool:
    for operator, together in (("-o", any), ("-a", all)):
        if operator in terms[1:-1]:
            at = terms.index(operator, 1)
            return together(
                _holds(shell, part, as_pattern=as_pattern) for part in (terms[:at], terms[at + 1 :])
            )
    match terms:
        case []:
            return False
        case [text]:
            return bool(text)
        case ["!", *rest]:
            return not _holds(shell, rest, as_pattern=as_pattern)
        case [operator, operand]:
            return _UNARY[operator[1:]](shell, operand)
        case [left, "=" | "==", right]:
            return fnmatchcase(left, right) if as_pattern else left == right
        case [left, "!=", right]:
            return not (fnmatchcase(left, right) if as_pattern else left == right)
        case [left, "=~", right]:
            raise ValueError(right)
        case [left, operator, right]:
            one, other = int(left), int(right)
            return {
                "-eq": one == other, "-ne": one != other, "-lt": one < other,
                "-le": one <= other, "-gt": one > other, "-ge": one >= other,
            }[operator]  # fmt: skip
    raise ValueError(terms)


def _is_there(shell: Shell, name: str) -> bool:
    return shell.files.is_there(shell.path(name))


def _is_file(shell: Shell, name: str) -> bool:
    return _is_there(shell, name) and not shell.files.is_folder(shell.path(name))


_UNARY: Final[dict[str, Callable[[Shell, str], bool]]] = {
    **dict.fromkeys("erwx", _is_there),
    "f": _is_file,
    "d": lambda shell, name: shell.files.is_folder(shell.path(name)),
    "s": lambda shell, name: _is_file(shell, name) and bool(shell.files.read(shell.path(name))),
    "n": lambda _, text: bool(text),
    "z": lambda _, text: not text,
    "L": lambda _shell, _name: False,
}


def _expr(shell: Shell, words: list[str], streams: Streams) -> int:
    value = shell.calculate(" ".join(words[1:]))
    streams.out(f"{value}\n")
    return int(not value)


def _seq(_shell: Shell, words: list[str], streams: Streams) -> int:
    numbers = [int(word) for word in words[1:]]
    first, step, last = {1: (1, 1, *numbers), 2: (numbers[0], 1, numbers[-1])}.get(
        len(numbers), tuple(numbers)
    )
    values = range(first, last + (1 if step > 0 else -1), step)
    streams.out("".join(f"{value}\n" for value in values[:10_000]))
    return 0


def _date(shell: Shell, words: list[str], streams: Streams) -> int:
    now = shell.clock()
    form = next(
        (word[1:] for word in words[1:] if word.startswith("+")), "%a %b %e %H:%M:%S UTC %Y"
    )
    form = form.replace("%s", str(int(now)))
    streams.out(datetime.fromtimestamp(now, UTC).strftime(form) + "\n")
    return 0


def _env(shell: Shell, words: list[str], streams: Streams) -> Steps:
    rest = words[1:]
    while rest and "=" in rest[0]:
        name, _, value = rest.pop(0).partition("=")
        shell.assign(name, value)
        shell.exported.add(name)
    if rest:
        return (yield from shell.execute(rest, streams))
    for name, value in shell.variables.items():
        if name in shell.exported:
            streams.out(f"{name}={value}\n")
    return 0


def _export(shell: Shell, words: list[str], _streams: Streams) -> int:
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals:
            shell.assign(name, value)
        shell.exported = shell.exported | {name}
    return 0


def _set(shell: Shell, words: list[str], _streams: Streams) -> int:
    for word in words[1:]:
        if word[:1] in "-+" and "e" in word and "pipefail" not in word:
            shell.exits_on_error = word.startswith("-")
    return 0


def _cd(shell: Shell, words: list[str], _streams: Streams) -> int:
    path = shell.path(words[1] if len(words) > 1 else "/")
    if not shell.files.is_folder(path):
        raise FileNotFoundError(f"can't cd to {words[1]}: No such file or directory")
    shell.folder = path
    return 0


def _trap(shell: Shell, words: list[str], _streams: Streams) -> int:
    action, *signals = [word for word in words[1:] if word != "--"]
    for signal in signals:
        name = {"15": "TERM", "2": "INT", "0": "EXIT"}.get(signal, signal.removeprefix("SIG"))
        if action == "-":
            shell.traps.pop(name, None)
        else:
            shell.traps[name] = (shell, action)
    return 0


def _wait(shell: Shell, _words: list[str], _streams: Streams) -> Steps:
    while any(job.exit_code is None for job in shell.jobs):
        due = min(job.due for job in shell.jobs if job.exit_code is None)
        yield max(due - shell.clock(), 0.0)
    return shell.jobs[-1].exit_code or 0 if shell.jobs else 0


def _sh(shell: Shell, words: list[str], streams: Streams) -> Steps:
    """``sh -c SCRIPT NAME ARGUMENTS``, ``sh FILE``, or what comes in."""
    inner = Shell(
        shell.files, shell.commands, shell.clock, shell.rng,
        {name: value for name, value in shell.variables.items() if name in shell.exported},
        set(shell.exported), shell.folder, jobs=shell.jobs, traps=shell.traps,
        servers=shell.servers,
    )  # fmt: skip
    rest = words[1:]
    options = ""
    while rest and rest[0].startswith("-"):
        options += rest.pop(0)
    inner.exits_on_error = "e" in options
    if "c" in options:
        text, *arguments = rest
    elif rest:
        arguments, text = rest, shell.files.read(shell.path(rest[0]))
    else:
        arguments, text = [], (yield from streams.stdin.read())
    inner.variables |= {str(number): word for number, word in enumerate(arguments or ["sh"])}
    inner.variables["@"] = " ".join(arguments[1:])
    try:
        return (yield from inner.run_text(text, streams))
    except ShellExit as exc:
        return exc.code


def _exec(shell: Shell, words: list[str], streams: Streams) -> Steps:
    if len(words) > 1:
        raise ShellExit((yield from shell.execute(words[1:], streams)))
    return 0


def _tail(shell: Shell, words: list[str], streams: Streams) -> Steps:
    """``tail -n NUMBER -f FILE``; with ``-f`` it shows what is added, too."""
    options = [word for word in words[1:] if word.startswith("-")]
    numbers = [int(word.lstrip("-n")) for word in words[1:] if re.fullmatch(r"-?n?\d+", word)]
    path = shell.path(words[-1])
    text = shell.files.read(path)
    lines = text.splitlines(keepends=True)
    streams.out("".join(lines[max(len(lines) - (numbers or [10])[0], 0) :]))
    while "-f" in options or "-F" in options:
        yield inf if path == "/dev/null" else 1.0
        now = shell.files.read(path)
        streams.out(now[len(text) :])
        text = now
    return 0


def _says(make: Callable[[Shell, list[str]], str]) -> Callable[[Shell, list[str], Streams], int]:
    """Return a command that writes one line."""

    def command(shell: Shell, words: list[str], streams: Streams) -> int:
        streams.out(make(shell, words) + "\n")
        return 0

    return command


COMMANDS: Final[dict[str, Callable[[Shell, list[str], Streams], int | Steps]]] = {
    **dict.fromkeys(("true", ":", "sync"), lambda _shell, _words, _streams: 0),
    "false": lambda _shell, _words, _streams: 1,
    "sleep": _sleep,
    "exit": _exit,
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "touch": _touch,
    "rm": _rm,
    "mkdir": _mkdir,
    "ls": _ls,
    "find": _find,
    "cp": _copy,
    "mv": _copy,
    "dd": _dd,
    **dict.fromkeys(("test", "[", "[["), _test),
    "expr": _expr,
    "seq": _seq,
    "date": _date,
    "env": _env,
    "export": _export,
    "set": _set,
    "cd": _cd,
    "trap": _trap,
    "wait": _wait,
    **dict.fromkeys(("sh", "bash", "ash"), _sh),
    "exec": _exec,
    "tail": _tail,
    "pwd": _says(lambda shell, _: shell.folder),
    "hostname": _says(lambda shell, _: shell.variables.get("HOSTNAME", "")),
}
CONTROL: Final = ("break", "continue")
"""What the shell itself does."""
