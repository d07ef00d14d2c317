"""JSONPath in printer columns and subresources: ``.spec.conditions[?(@.type=="Ready")].status``.

The part of ``client-go/util/jsonpath`` that a CustomResourceDefinition may use: fields, quoted
names, indices, slices, wildcards, descent and filters that compare a field with a constant.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

Step = Callable[[Any], Iterator[Any]]

_NAME: Final = re.compile(r"((?:\\.|[^.\[\]\s\\'\"])+)")
_QUOTED: Final = re.compile(
    r"\[\s*(?:'(?P<single>(?:\\.|[^'\\])*)'|\"(?P<double>(?:\\.|[^\"\\])*)\")\s*\]"
)
_INDEX: Final = re.compile(r"\[\s*(-?\d+)\s*\]")
_SLICE: Final = re.compile(r"\[\s*(?:(-?\d+)\s*)?:\s*(?:(-?\d+)\s*)?(?::\s*(?:(-?\d+)\s*)?)?\]")
_FILTER: Final = re.compile(
    r"\[\?\(\s*@((?:\.(?:\\.|[^.\[\]\s\\'\"=!<>()])+|\[['\"][^'\"]*['\"]\])*)\s*"
    r"(?:(==|!=|<=|>=|<|>)\s*('(?:\\.|[^'])*'|\"(?:\\.|[^\"])*\"|[^\s()]+)\s*)?\)\]"
)
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class JsonPath:
    """A compiled path; ValueError when it cannot be read."""

    def __init__(self, text: str) -> None:
        """*text* begins with a dot or a bracket."""
        self.text = text
        self._steps = tuple(_steps(text))

    def find(self, value: Any) -> list[Any]:
        """Return everything that the path leads to."""
        found = [value]
        for step in self._steps:
            found = [each for one in found for each in step(one)]
        return found

    def first(self, value: Any) -> Any:
        """Return the first that the path leads to; None when there is nothing."""
        return next(iter(self.find(value)), None)


def simple_steps(text: str) -> list[str] | None:
    """Return the fields of a path that has nothing else; None when it has."""
    names, at = [], 0
    while at < len(text):
        if (found := _QUOTED.match(text, at)) is not None:
            names.append(_quoted(found))
        elif text[at] == "." and (found := _NAME.match(text, at + 1)) is not None:
            names.append(_unescaped(found[1]))
        else:
            return None
        at = found.end()
    return names


def _steps(text: str) -> Iterator[Step]:
    at = 0
    while at < len(text):
        if text.startswith("..", at):
            found = _NAME.match(text, at + 2)
            if found is None:
                raise ValueError(f"unexpected end of {text!r}")
            yield _descent(_unescaped(found[1]))
        elif text.startswith("[*]", at) or text.startswith(".*", at):
            yield _all
            at += 3 if text[at] == "[" else 2
            continue
        elif text[at] == ".":
            found = _NAME.match(text, at + 1)
            if found is None:
                if at + 1 == len(text) or text[at + 1] == "[":
                    at += 1
                    continue
                raise ValueError(f"unrecognized character in {text!r}")
            yield _field(_unescaped(found[1]))
        elif (found := _QUOTED.match(text, at)) is not None:
            yield _field(_quoted(found))
        elif (found := _INDEX.match(text, at)) is not None:
            yield _index(int(found[1]))
        elif (found := _SLICE.match(text, at)) is not None:
            yield _slice(*(int(group) if group else None for group in found.groups()))
        elif (found := _FILTER.match(text, at)) is not None:
            yield _filter(found[1], found[2], found[3])
        else:
            raise ValueError(f"unterminated array or invalid array index in {text!r}")
        at = found.end()


def _quoted(found: re.Match[str]) -> str:
    """Return the name in brackets and quotes."""
    return _unescaped(found["double"] if found["single"] is None else found["single"])


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice(first: int | None, last: int | None, stride: int | None) -> Step:
    if stride is not None and stride <= 0:
        raise ValueError("step must be > 0")

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[first:last:stride]

    return step


def _all(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descent(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]
        for below in _all(value):
            yield from step(below)

    return step


def _filter(path: str, compare: str | None, constant: str | None) -> Step:
    wanted = JsonPath(path)
    if compare is None or constant is None:
        return lambda value: (each for each in _listed(value) if wanted.find(each))
    right, holds = _constant(constant), _COMPARE[compare]

    def step(value: Any) -> Iterator[Any]:
        for each in _listed(value):
            found = wanted.find(each)
            if found and _same_kind(found[0], right) and holds(found[0], right):
                yield each

    return step


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _same_kind(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool)
    numbers = int | float
    return (isinstance(left, numbers) and isinstance(right, numbers)) or type(left) is type(right)


def _constant(text: str) -> Any:
    if text[0] in "'\"":
        return _unescaped(text[1:-1])
    try:
        return json.loads(text)
    except ValueError as exc:
        raise ValueError(f"unrecognized character in filter: {text}") from exc
