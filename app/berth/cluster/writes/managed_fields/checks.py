"""Checks of an applied configuration, in the words of structured-merge-diff."""

from collections.abc import Iterator
from typing import Any

from berth.cluster.warnings import quoted
from berth.cluster.writes.managed_fields.field_sets import element_text
from berth.cluster.writes.managed_fields.nodes import Atomic, AtomicList, Items, Leaf, Node, Struct

ECHOED = 200
"""Characters of a wrong value that are told back."""

MOST_ERRORS = 100
"""Of one configuration that are told."""


def problems(node: Node, value: Any) -> str:
    """Return what is wrong with *value*; empty: nothing."""
    found = [text for text, _ in zip(_problems(node, value, ""), range(MOST_ERRORS), strict=False)]
    if len(found) < 2:
        return "".join(found)
    return "\n  ".join(["errors:", *found])


def _problems(node: Node | None, value: Any, path: str) -> Iterator[str]:
    if value is None:
        return
    match node:
        case AtomicList(inner=inner):
            if not isinstance(value, list):
                yield f"{path}: expected list, got &{{{_go(value)}}}"
                return
            for index, item in enumerate(value):
                yield from _problems(inner, item, f"{path}[{index}]")
        case Atomic(inner=inner):
            yield from _problems(inner, value, path)
        case Leaf(kind=kind):
            if why := _misfit(kind, value):
                yield f"{path}: expected {why}"
        case Struct():
            yield from _in_object(node, value, path)
        case Items():
            yield from _in_list(node, value, path)


def _in_object(node: Struct, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected map, got &{{{_go(value)}}}"
        return
    for name, child in value.items():
        known = node.known.get(name)
        if known is not None:
            yield from _problems(known[1], child, f"{path}.{name}")
        elif node.rest is not None:
            yield from _problems(node.rest, child, f"{path}.{name}")
        else:
            yield f"{path}.{name}: field not declared in schema"


def _in_list(node: Items, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got &{{{_go(value)}}}"
        return
    seen = set()
    for index, item in enumerate(value):
        if why := _unidentified(node, item):
            yield f"{path}: element {index}: {why}"
            return
        element = node.element_of(item) or ""
        place = f"{path}{element_text(element)}"
        if element in seen:
            yield f"{path}: duplicate entries for key {element_text(element)}"
        seen.add(element)
        yield from _problems(node.item, item, place)


def _unidentified(node: Items, item: Any) -> str:
    """Return why an item cannot be told apart from others; empty: it can."""
    if not node.keys:
        match item:
            case None:
                return "associative list without keys has an element that's an explicit null"
            case dict():
                return "associative list without keys has an element that's a map type"
            case list():
                return "not supported: associative list with lists as elements"
        return ""
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    if any(key in item or key in node.defaults for key in node.keys):
        return ""
    return (
        "associative list with keys has an element that omits all key fields "
        f"[{' '.join(map(quoted, node.keys))}] (and doesn't have default values for any key fields)"
    )


def _misfit(kind: str, value: Any) -> str:
    match kind, value:
        case ("boolean", bool()) | ("string", str()):
            return ""
        case ("" | "numeric", int() | float()) if kind == "" or not isinstance(value, bool):
            return ""
        case "", str():
            return ""
        case "numeric", _:
            return f"numeric (int or float), got {_go_type(value)}"
        case "string", _:
            return f"string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        case _:
            return f"{kind or 'any scalar'}, got &{{{_go(value)}}}"


def _go(value: Any) -> str:
    """Write a value as Go's ``%v``."""
    match value:
        case dict():
            said = " ".join(f"{key}:{_go(child)}" for key, child in sorted(value.items()))
            return f"map[{said}]"[:ECHOED]
        case list():
            return f"[{' '.join(map(_go, value))}]"[:ECHOED]
        case bool():
            return "true" if value else "false"
        case None:
            return "<nil>"
        case _:
            return str(value)[:ECHOED]


def _go_syntax(value: Any) -> str:
    """Write a value as Go's ``%#v``."""
    match value:
        case str():
            return quoted(value[:ECHOED])
        case dict() | list():
            said = _go(value).removeprefix("map")
            return f"{_go_type(value)}{{{said[1:-1]}}}"
        case _:
            return _go(value)


def _go_type(value: Any) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "bool"
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case _:
            return "int64" if isinstance(value, int) else "float64"
