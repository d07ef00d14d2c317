"""Lists and regular expressions in CEL, as Kubernetes offers them beside CEL's own.

Patterns are Python's, not RE2's: the two agree on all but a few constructs, such as ``\\z``. Lists
have no ``indexOf``: the library takes no second declaration beside that of strings.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

from app.cel.overloads import function, overload


def _is_sorted(items: Sequence[Any]) -> bool:
    return all(one <= other for one, other in pairwise(items))


def _most(name: str, items: Sequence[Any]) -> Any:
    if not items:
        raise ValueError(f"{name} called on empty list")
    return min(items) if name == "min" else max(items)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as exc:
        raise ValueError(f"Illegal regex: {exc}") from exc


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in _compiled(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


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
