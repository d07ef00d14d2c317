"""Reads which metrics and labels a PromQL expression uses. What it does not know, it refuses.

No parser: parentheses may be wrong, and types. Names may not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

FUNCTIONS: Final = frozenset(
    {
        "absent", "group", "histogram_quantile", "increase", "last_over_time", "max", "rate",
        "sum", "topk",
    }
)  # fmt: skip
OPERATORS: Final = frozenset({"and", "or", "unless"})
GROUPING: Final = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<range>\[(?:\d+[smhdwy]|\$__rate_interval)\])
    | (?P<number>\d+(?:\.\d+)?)
    | (?P<name>[a-zA-Z_:][\w:]*)
    | (?P<operator>=~|!~|!=|==|>=|<=|[-+*/%^=<>(){},])
    )""",
    re.VERBOSE,
)


class PromQLError(Exception):
    """An expression that is not understood."""


@dataclass(frozen=True)
class Used:
    """What an expression uses."""

    selectors: dict[str, set[str]] = field(default_factory=dict)
    """Metric to the labels it is selected by."""
    grouped_by: set[str] = field(default_factory=set)
    """Labels that are named outside of selectors."""


def used(expression: str) -> Used:
    """Return what *expression* uses. Raises PromQLError."""
    tokens = [*_tokens(expression), ("end", ""), ("end", "")]
    found = Used()
    at = 0
    while tokens[at][0] != "end":
        kind, text = tokens[at]
        at += 1
        if kind != "name" or text in OPERATORS:
            continue
        opens = tokens[at][1]
        if text in GROUPING:
            names, at = _names(tokens, at, "(", ")")
            found.grouped_by.update(names)
        elif text in FUNCTIONS:
            if opens != "(" and opens not in GROUPING:
                raise PromQLError(f"{text!r} is not called in {expression!r}")
        elif opens == "(":
            raise PromQLError(f"{text!r} is no known function in {expression!r}")
        else:
            labels = found.selectors.setdefault(text, set())
            if opens == "{":
                names, at = _names(tokens, at, "{", "}")
                labels.update(names)
    if not found.selectors:
        raise PromQLError(f"{expression!r} selects nothing")
    return found


def _names(
    tokens: list[tuple[str, str]], at: int, opening: str, closing: str
) -> tuple[list[str], int]:
    """Read names between brackets; return them and what is behind."""
    if tokens[at][1] != opening:
        raise PromQLError(f"{opening!r} is missing before {tokens[at][1]!r}")
    names = []
    while tokens[at][1] != closing:
        at += 1
        kind, text = tokens[at]
        if kind == "end":
            raise PromQLError(f"{closing!r} is missing")
        if kind == "name":
            names.append(text)
    return names, at + 1


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(expression.rstrip())
    while at < end:
        match = _TOKEN.match(expression, at)
        if match is None or match.lastgroup is None:
            raise PromQLError(f"{expression[at:]!r} is not understood")
        yield match.lastgroup, match[match.lastgroup]
        at = match.end()
