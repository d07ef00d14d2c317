"""Logging: formats and levels, ``-v``, ``--vmodule`` and ``--logging-format``.

klog's verbosities are levels of Python here: warnings and errors are always written, ``info`` from
0 on (what changed in the process or the cluster), ``debug`` from 2 on (what became of each pod, as
kube-scheduler tells at 2). Higher ones, which klog has up to 10, add nothing.

Whatever a line says, credentials in it are blotted out last of all
(:mod:`berth.runtime.redaction`). And a line is one line that no terminal obeys, as text and as JSON
(:mod:`berth.runtime.printable`): what is in it may come from whoever may create an object.
"""

import io
import logging
import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from textwrap import indent
from typing import Any, Final, TextIO

import msgspec

from berth.runtime.printable import printable, printable_json, printable_lines
from berth.runtime.redaction import BLOT, is_secret, redacted

DEBUG_FROM: Final = 2
"""The verbosity from which debug lines are written."""
NOISY: Final = ("uvicorn", "asyncio", "kubernetes_asyncio", "httpx", "httpcore")
"""Libraries whose lines below a warning nobody asked for."""
TRACE_INDENT: Final = "    "
_OUR_PREFIX: Final = "berth."
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _clean(value: Any) -> Any:
    """Return *value* as JSON knows it, without credentials."""
    match value:
        case bool() | int() | float() | None:
            return value
        case dict():
            return {
                _encodable(str(key)): _clean_field(str(key), field) for key, field in value.items()
            }
        case list() | tuple():
            return [_clean(item) for item in value]
        case _:
            return _encodable(redacted(str(value)))


def _encodable(text: str) -> str:
    """Return *text* as UTF-8 can hold it, with escapes for unpaired surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()


def _clean_field(key: str, value: Any) -> Any:
    """Return a clean *value*, or none at all where *key* says that it is a secret."""
    return BLOT if isinstance(value, str) and is_secret(key) else _clean(value)


class TextFormatter(logging.Formatter):
    """``14:03:07.120 INFO berth.scheduler: pod bound pod=default/web node=node-1``.

    Stack traces follow in lines of their own. They are indented, so that no text in an exception
    can look like another log line.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        fields = [f"{key}={_quoted(value)}" for key, value in _fields(record).items()]
        return printable(redacted(" ".join([super().formatMessage(record), *fields])))

    def format(self, record: logging.LogRecord) -> str:
        line, newline, trace = super().format(record).partition("\n")
        return line + newline + indent(printable_lines(redacted(trace)), TRACE_INDENT)


class JsonFormatter(logging.Formatter):
    """One object per line, with klog's keys: ts (Unix milliseconds), caller, msg, v, err.

    Errors have no ``v``. ``logger`` is the module; the other keys are the fields of the line.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            line["v"] = 0 if record.levelno >= logging.INFO else DEBUG_FROM
        for key, value in _fields(record).items():
            line["err" if key == "error" else key] = value
        if record.exc_info is not None and record.exc_info[1] is not None:
            line["err"] = str(record.exc_info[1]) or type(record.exc_info[1]).__name__
            line["stacktrace"] = self.formatException(record.exc_info)
        # Before encoding: quotes that JSON escapes would hide what the pattern looks for.
        return printable_json(msgspec.json.encode(_clean(line)).decode())


class Verbosity(logging.Filter):
    """Lets lines through by the verbosity of their module; it can be changed at any time."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self._level = level
        self._modules: tuple[tuple[str, int], ...] = ()
        self._known: dict[str, int] = {}

    def set(self, level: int, modules: Iterable[tuple[str, int]] | None = None) -> None:
        """Write lines of *level* and above; of modules that match a pattern, the first of
        *modules*, also those of its level. Without *modules* they stay as they are.
        """
        self._level = level
        if modules is not None:
            self._modules = tuple(modules)
        self._known.clear()
        lowest = min((level, *(module_level for _, module_level in self._modules)))
        logging.getLogger().setLevel(lowest)
        for noisy in NOISY:
            logging.getLogger(noisy).setLevel(max(lowest, logging.WARNING))

    def filter(self, record: logging.LogRecord) -> bool:
        level = self._known.get(record.name)
        if level is None:
            level = self._known[record.name] = self._level_of(record.name)
        return record.levelno >= level

    def _level_of(self, name: str) -> int:
        path = name.removeprefix(_OUR_PREFIX).replace(".", "/")
        for pattern, level in self._modules:
            if fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern):
                return min(self._level, level)
        return self._level


_verbosity: Final = Verbosity(logging.WARNING)
"""That of the process, as its root logger is."""


class _Stderr(io.TextIOBase):
    """Standard error as it is when something is written: a live table puts itself in between."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def setup(
    level: int, stream: TextIO | None = None, *, by_module: Iterable[tuple[str, int]] = ()
) -> None:
    """Send all log lines of *level* and above to *stream*, standard error by default, as text.

    *by_module* are lower levels for some modules, as :func:`modules` returns them.
    """
    _install([_handler(stream or _Stderr(), TextFormatter())])
    _verbosity.set(level, by_module)


def setup_by_flags(
    v: int,
    *,
    format: str = "text",
    vmodule: Sequence[str] = (),
    split_stream: bool = False,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> None:
    """Log as the flags of Kubernetes components say: *format* is text or json.

    With *split_stream* only errors go to stderr, other lines to stdout. Raises ValueError as
    :func:`modules` does.
    """
    errors = _handler(
        stderr or sys.stderr, JsonFormatter() if format == "json" else TextFormatter()
    )
    handlers = [errors]
    if split_stream:
        errors.setLevel(logging.ERROR)
        others = _handler(stdout or sys.stdout, errors.formatter)
        others.addFilter(lambda record: record.levelno < logging.ERROR)
        handlers.append(others)
    by_module = modules(vmodule)
    _install(handlers)
    _verbosity.set(_level(v), by_module)


def set_verbosity(v: int) -> None:
    """Change ``-v`` of the running process; what ``--vmodule`` said stays."""
    _verbosity.set(_level(v))


def modules(vmodule: Iterable[str]) -> list[tuple[str, int]]:
    """Read ``pattern=N``: a pattern with a slash is of the module's path below app, else of the
    last part of it. Returns levels of logging. Raises ValueError for anything else.
    """
    levels = []
    for item in vmodule:
        pattern, equals, number = item.partition("=")
        if not (pattern and equals and number.isdecimal()):
            raise ValueError(
                f"syntax error: expect comma-separated list of filename=N, got {item!r}"
            )
        levels.append((pattern, _level(int(number))))
    return levels


def _level(v: int) -> int:
    return logging.DEBUG if v >= DEBUG_FROM else logging.INFO


def _handler(
    stream: TextIO | io.TextIOBase, formatter: logging.Formatter | None
) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    handler.addFilter(_verbosity)
    return handler


def _install(handlers: Sequence[logging.Handler]) -> None:
    logging.basicConfig(handlers=handlers, force=True)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _quoted(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text and text else repr(text)
