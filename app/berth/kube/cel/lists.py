"""Lists and regular expressions in CEL, as Kubernetes offers them beside CEL's own.

Patterns are RE2's. Lists have no ``indexOf``: the library takes no second declaration beside that
of strings.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import re2
from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

from berth.kube.cel.overloads import function, overload
from berth.kube.cel.selector_error import COST_EXCEEDED

MAX_READ: Final = 10_000_000
"""How many characters one ``findAll`` may read, over and over, in all its searches."""

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False


def _is_sorted(items: Sequence[Any]) -> bool:
    return all(one <= other for one, other in pairwise(items))


def _most(name: str, items: Sequence[Any]) -> Any:
    if not items:
        raise ValueError(f"{name} called on empty list")
    return min(items) if name == "min" else max(items)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as exc:
        text = exc.args[0] if exc.args else exc
        reason = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        raise ValueError(f"Illegal regex: {reason}") from exc


def _find(text: str, pattern: str) -> str:
    match = _compiled(pattern).search(text)
    return "" if match is None else str(match[0])


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return what matches, as Go does it: no empty match where one that was found has ended.

    Each search may read the text to its end, so the lengths of what is left count.
    """
    matches: list[str] = []
    end, read = -1, 0
    for match in _compiled(pattern).finditer(text):
        read += len(text) - match.start()
        if read > MAX_READ:
            raise ValueError(COST_EXCEEDED)
        if len(matches) == limit:
            break
        if match.start() == match.end() == end:
            continue
        end = match.end()
        matches.append(match[0])
    return matches


def declarations() -> list[cel.FunctionDecl]:
    """Return the functions, for an environment."""
    text, integer, items, anything = cel.Type.STRING, cel.Type.INT, cel.Type.LIST, cel.Type.DYN

    return [
        function(
            "isSorted", overload("list_is_sorted", cel.Type.BOOL, items, is_member=True)(_is_sorted)
        ),
        function("sum", overload("list_sum", anything, items, is_member=True)(sum)),
        *(
            function(
                name,
                overload(f"list_{name}", anything, items, is_member=True)(
                    lambda found, name=name: _most(name, found)
                ),
            )
            for name in ("min", "max")
        ),
        function("find", overload("string_find", text, text, text, is_member=True)(_find)),
        function(
            "findAll",
            overload("string_find_all", items, text, text, is_member=True)(_find_all),
            overload("string_find_all_limit", items, text, text, integer, is_member=True)(
                _find_all
            ),
        ),
    ]
