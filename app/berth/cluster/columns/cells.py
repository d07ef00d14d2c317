"""The cells that many kinds share, and how selectors and ages are written in a cell."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from berth.cluster.resources import Object

Cell = Callable[[Object], Any]
"""Returns what a cell says: a text, a number, a truth, or :class:`Since` a time."""
Cells = dict[str, Cell]
"""By the name of the column, which the API describes (``schemas``)."""

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


@dataclass(frozen=True, slots=True)
class Since:
    """A cell whose text depends on the time of the answer."""

    timestamp: str | None
    """RFC 3339; None or empty: nobody knows."""
    text: str = "{}"
    """What the cell says, with the age in place of the braces."""


def dig(obj: Any, path: str) -> Any:
    """Return what *obj* has at the dotted *path*; None when any step is missing."""
    for step in _steps(path):
        if not isinstance(obj, dict):  # of JSON: to ask for any Mapping costs ten times as much
            return None
        obj = obj.get(step)
    return obj


@lru_cache(maxsize=1_000)
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def listed(obj: Object, path: str) -> list[Any]:
    """Return the list that *obj* has at the dotted *path*; empty when it has none."""
    return dig(obj, path) or []


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Write a label selector as kubectl does: ``app=web,tier in (a,b)``; "" when it is empty."""
    selector = selector or {}
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or ():
        key, values = term["key"], ",".join(sorted(term.get("values") or ()))
        texts = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        terms.append((key, texts[term["operator"]]))
    return ",".join(text for _, text in sorted(terms))


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Write a plain map of labels: ``app=web,tier=a``; "" when it is empty."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def text(path: str, *, empty: str = "") -> Cell:
    """Return a cell of what the object has at *path*."""
    return lambda obj: str(dig(obj, path) or empty)


def flag(path: str) -> Cell:
    """Return a cell that is true or false."""
    return lambda obj: bool(dig(obj, path))


def count(path: str) -> Cell:
    """Return a cell of the number at *path*; what nobody reported is zero."""
    return lambda obj: dig(obj, path) or 0


def length(path: str) -> Cell:
    """Return a cell of how many items the list at *path* has."""
    return lambda obj: len(listed(obj, path))


COMMON: Cells = {
    "Name": lambda obj: obj["metadata"].get("name") or "",
    "Age": lambda obj: Since(obj["metadata"].get("creationTimestamp")),
    "Created At": lambda obj: obj["metadata"].get("creationTimestamp") or "",
}
"""Those that say the same of every kind."""
