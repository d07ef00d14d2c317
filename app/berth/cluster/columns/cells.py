"""The cells that many kinds share, and how selectors and ages are written in a cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from berth.cluster.resources import Column, Object

NONE = "<none>"
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
    for step in path.split("."):
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(step)
    return obj


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


NAME = Column(
    "Name",
    "string",
    lambda obj: obj["metadata"]["name"],
    "Identifies the object; unique in its namespace, if its kind has namespaces.",
    format="name",
)

AGE = Column(
    "Age",
    "string",
    lambda obj: Since(obj["metadata"].get("creationTimestamp")),
    "How long ago the server stored the object for the first time.",
)
