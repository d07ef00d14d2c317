"""Types and values of CEL for a structural schema and values of it.

An object is a map, which CEL does not check the fields of. So the fields that a rule names by a
path, ``self.spec.replicas``, become variables of their own with the types that the schema says:
wrong types and fields that are not there are found when the rule is compiled. What a rule reaches
in another way, through a list or with ``?``, is of any type.

Source: ``apiextensions-apiserver/pkg/apiserver/schema/cel/model``.
"""

import base64
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

from berth.cluster.custom.validation import ABSENT
from berth.cluster.custom.walk import EMBEDDED, INT_OR_STRING, Schema, items, properties, values
from berth.cluster.times import seconds_of

SCALARS: Final = {"boolean": "bool", "integer": "int", "number": "double", "string": "string"}
TIMESTAMPS: Final = frozenset({"date", "date-time", "datetime"})

RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in"}
    | {"let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"}
)
_ESCAPES: Final = (
    ("__", "__underscores__"),
    (".", "__dot__"),
    ("-", "__dash__"),
    ("/", "__slash__"),
)
_LITERAL: Final = re.compile(
    r"\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)"
    r"|\"(?:\\.|[^\"\\])*(?:\"|\\?\Z)|'(?:\\.|[^'\\])*(?:'|\\?\Z)",
    re.DOTALL,
)
"""A text, to its end; one that does not end is for the compiler to complain about."""
_PATH: Final = re.compile(r"(?<![\w.)\]])(self|oldSelf)((?:\.[A-Za-z_]\w*)+)(\s*\()?")
_HAS: Final = re.compile(r"\bhas\(\s*\Z")
MOST_SPACE: Final = 32
"""Characters before a path that are searched for the macro that it is the argument of."""
_DURATION: Final = re.compile(r"(?<![\d.])(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "m": 60,
    "h": 3600,
}

METADATA: Final[Schema] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}
"""What a rule can see of an object's metadata."""


class UndefinedFieldError(Exception):
    """A path in a rule leads to a field that its schema does not have."""

    def __init__(self, field: str, position: int) -> None:
        super().__init__(field)
        self.field = field
        self.position = position
        """Of the dot before it, in characters."""


class Variable(NamedTuple):
    """A field that a rule names by its path."""

    name: str
    """As long as the path, so that positions in messages stay right: ``self_spec_replicas``."""
    text: str
    root: str
    """``self`` or ``oldSelf``."""
    path: tuple[str, ...]
    """Names as in JSON."""
    schema: Schema
    type: str
    read: Callable[[Any], Any]


def with_object_fields(schema: Schema) -> Schema:
    """Return the schema of a whole object, or of one in another, with what all objects have."""
    every: Schema = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": METADATA,
    }
    return {**schema, "properties": {**properties(schema), **every}}


def _fields(schema: Schema) -> dict[str, Schema]:
    """Return the fields that a rule can name."""
    return properties(with_object_fields(schema) if schema.get(EMBEDDED) else schema)


@lru_cache(maxsize=4096)
def escaped(name: str) -> str | None:
    """Return how a rule writes the name of a property; None when it cannot."""
    if name in RESERVED:
        return f"__{name}__"
    for plain, escape in _ESCAPES:
        name = name.replace(plain, escape)
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else None


def type_of(schema: Schema, *, is_variable: bool = True) -> str:
    """Return the type in CEL; only in variables there are times."""
    if schema.get(INT_OR_STRING) or schema.get("nullable"):
        return "dyn"
    kind, form = schema.get("type"), schema.get("format")
    match kind:
        case "array":
            return f"list<{type_of(items(schema) or {}, is_variable=False)}>"
        case "object":
            below = values(schema)
            inner = "dyn" if below is None else type_of(below, is_variable=False)
            return f"map<string, {inner}>"
        case "string" if form in TIMESTAMPS:
            return "timestamp" if is_variable else "dyn"
        case "string" if form == "duration":
            return "duration" if is_variable else "dyn"
        case "string" if form == "byte":
            return "bytes" if is_variable else "dyn"
        case None:
            return "dyn"
        case _:
            return SCALARS.get(kind, "dyn")


def value_of(schema: Schema, value: Any) -> Any:
    """Return a JSON value as CEL has it: names escaped, numbers of their types."""
    match value:
        case dict():
            specified, others = _fields(schema), values(schema)
            if not specified:
                return {key: value_of(others or {}, each) for key, each in value.items()}
            return {
                name: value_of(specified[key], each)
                for key, each in value.items()
                if key in specified and (name := escaped(key)) is not None
            }
        case list():
            below = items(schema) or {}
            return [value_of(below, each) for each in value]
        case int() if schema.get("type") == "number" and not isinstance(value, bool):
            return float(value)
        case float() if schema.get("type") == "integer":
            return int(value)
        case _:
            return value


class Named(NamedTuple):
    """A variable where a rule names it."""

    variable: Variable
    start: int
    """In characters of the rule."""


def named(schema: Schema, source: str) -> list[Named]:
    """Return the fields that *source* names by paths; UndefinedFieldError for one that is not."""
    blank = _LITERAL.sub(lambda found: " " * len(found[0]), source)
    known: dict[str, Variable | None] = {}
    result = []
    for found in _PATH.finditer(blank):
        if found[0] not in known:
            known[found[0]] = _variable(schema, found)
        variable = known[found[0]]
        if variable is not None:
            result.append(Named(variable, found.start()))
    return result


def renamed(source: str, names: list[Named]) -> str:
    """Return *source* with variables in the place of their paths, but for those in ``has()``."""
    result = list(source)
    for variable, start in names:
        if _HAS.search(source, max(0, start - MOST_SPACE), start) is None:
            result[start : start + len(variable.text)] = variable.name
    return "".join(result)


def _variable(schema: Schema, found: re.Match[str]) -> Variable | None:
    names = found[2][1:].split(".")
    here, path = schema, list[str]()
    position = found.start(2)
    for index, name in enumerate(names):
        specified = _fields(here)
        if not specified:
            break
        real = next((key for key in specified if escaped(key) == name), None)
        if real is None:
            if found[3] is not None and index == len(names) - 1:
                break  # a method
            raise UndefinedFieldError(name, position)
        here = specified[real]
        path.append(real)
        position += len(name) + 1
    if not path:
        return None
    text = ".".join([found[1], *names[: len(path)]])
    kind = type_of(here)
    return Variable(
        text.replace(".", "_"), text, found[1], tuple(path), here, kind, _reader(here, kind)
    )


def _reader(schema: Schema, kind: str) -> Callable[[Any], Any]:
    match kind:
        case "timestamp":
            return lambda value: datetime.fromtimestamp(seconds_of(value), UTC)
        case "duration":
            return _duration
        case "bytes":
            return base64.b64decode
        case _:
            return lambda value: value_of(schema, value)


def _duration(text: str) -> timedelta:
    sign = -1 if text.startswith("-") else 1
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))
    return timedelta(seconds=sign * seconds)


def bound(named: list[Variable], roots: dict[str, Any]) -> dict[str, Any]:
    """Return the values of variables that are there."""
    found: dict[str, Any] = {}
    for each in named:
        value: Any = roots
        for key in (each.root, *each.path):
            value = value.get(key, ABSENT) if isinstance(value, dict) else ABSENT
        if value is not ABSENT:
            found[each.name] = None if value is None else each.read(value)
    return found
