"""Sets of fields as plain sets of paths, and a schema with a list or map of every kind.

The functions here are an oracle: they know nothing of trees and nodes.
"""

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Path = tuple[str, ...]

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "size": {"type": "integer"},
        "inner": {
            "type": "object",
            "properties": {"on": {"type": "boolean"}, "text": {"type": "string"}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "whole": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        },
        "sequence": {"type": "array", "items": {"type": "string"}},
        "tags": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "items": {"type": "string"},
        },
        "items": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "kind"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "kind": {"type": "string", "default": "A"},
                    "value": {"type": "string"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            },
        },
    },
}
"""A structural schema (apiextensions.k8s.io/v1)."""


def paths(tree: dict[str, Any]) -> set[Path]:
    """Return the members of a tree of ``fieldsV1``."""
    return set(_members(tree, ()))


def _members(tree: dict[str, Any], prefix: Path) -> Iterator[Path]:
    for element, below in tree.items():
        if element != ".":
            here = (*prefix, element)
            if below == {} or "." in below:
                yield here
            yield from _members(below, here)


def tree_of(members: set[Path]) -> dict[str, Any]:
    """Return the tree with these members, as ``fieldsV1`` writes it."""
    tree: dict[str, Any] = {}
    for path in members:
        below = tree
        for element in path:
            below = below.setdefault(element, {})
        below["."] = {}
    return _normal(tree)


def _normal(tree: dict[str, Any]) -> dict[str, Any]:
    if set(tree) == {"."}:
        return {}
    return {element: _normal(below) if element != "." else {} for element, below in tree.items()}


PRESENT = "present"


def flat(value: dict[str, Any]) -> dict[Path, Any]:
    """Return every path in a value of :data:`SCHEMA` with what is there."""
    found: dict[Path, Any] = {}
    for name, child in value.items():
        at = (f"f:{name}",)
        match name:
            case "inner" | "labels":
                found[at] = PRESENT
                found |= {(*at, f"f:{key}"): each for key, each in child.items()}
            case "open":
                found |= _open(at, child)
            case "tags":
                found[at] = PRESENT
                found |= {(*at, f'v:"{each}"'): each for each in child}
            case "items":
                found[at] = PRESENT
                for item in child:
                    found |= _item(at, item)
            case _:
                found[at] = child
    return found


def _open(at: Path, value: Any) -> dict[Path, Any]:
    if not isinstance(value, dict):
        return {at: value}
    found: dict[Path, Any] = {at: PRESENT}
    for key, child in value.items():
        found |= _open((*at, f"f:{key}"), child)
    return found


def _item(at: Path, item: dict[str, Any]) -> dict[Path, Any]:
    here = (*at, f'k:{{"kind":"{item.get("kind", "A")}","name":"{item["name"]}"}}')
    found: dict[Path, Any] = {here: PRESENT}
    for key, child in item.items():
        if key == "labels":
            found[*here, "f:labels"] = PRESENT
            found |= {(*here, "f:labels", f"f:{each}"): text for each, text in child.items()}
        else:
            found[*here, f"f:{key}"] = child
    return found


words = st.sampled_from(["a", "b", "c"])
maps = st.dictionaries(words, words, max_size=3)
items = st.fixed_dictionaries(
    {"name": words}, optional={"kind": st.sampled_from(["A", "B"]), "value": words, "labels": maps}
)
open_values = st.recursive(
    words | st.lists(words, max_size=2), lambda inner: st.dictionaries(words, inner, max_size=2)
)
values = st.fixed_dictionaries(
    {},
    optional={
        "text": words,
        "size": st.integers(0, 2),
        "inner": st.fixed_dictionaries({}, optional={"on": st.booleans(), "text": words}),
        "labels": maps,
        "open": st.dictionaries(words, open_values, max_size=2),
        "whole": st.fixed_dictionaries({}, optional={"a": words, "b": words}),
        "sequence": st.lists(words, max_size=2),
        "tags": st.lists(words, max_size=3, unique=True),
        "items": st.lists(
            items, max_size=3, unique_by=lambda each: (each["name"], each.get("kind", "A"))
        ),
    },
)
"""Values of :data:`SCHEMA`, without nulls."""

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"a"}', 'v:"a"'])
path_sets = st.sets(st.lists(elements, min_size=1, max_size=3).map(tuple), max_size=6)
