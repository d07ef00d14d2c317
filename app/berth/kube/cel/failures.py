"""Failures of expressions; without the library, so that they can always be imported."""

import re
from typing import Final

_CHAIN: Final = re.compile(
    r"(ERROR: <input>:\d+:)(\d+)(: undeclared reference to ')([^'.]+)\.[^'.]+('.*\n \| .*\n \| )\.*"
)


class CompileError(Exception):
    """An expression that is wrong, or gives something else than it must; in CEL's words."""


class EvaluationError(Exception):
    """An expression that failed on what it was evaluated with; in CEL's words."""


def errors_of(text: str, source: str) -> str:
    """Return what the library says of *source*, as cel-go says it: with the lines of each error.

    It blames ``a`` of ``a.b`` where the library blames all of it, and counts the columns of an
    empty expression from 0.
    """
    text = text.removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
    if not source:
        return text.replace("<input>:1:1:", "<input>:1:0:")
    return _CHAIN.sub(_first_name, text)


def _first_name(found: re.Match[str]) -> str:
    head, column, says, name, lines = found.groups()
    start = max(int(column) - len(name), 1)
    return f"{head}{start}{says}{name}{lines}{'.' * (start - 1)}"
