"""Sets of fields, in the form in which ``fieldsV1`` has them.

A set is a tree of path elements: ``f:<name>`` is a field or the key of a map, ``k:<keys>`` an item
of a list by its keys, ``v:<value>`` an item of a set. ``{}`` below an element says that the set has
the element and nothing in it. If there is something in it, ``.`` says that the element itself is in
the set, too: ``{"f:labels": {".": {}, "f:app": {}}}`` has ``labels`` and ``labels.app``.

At the root, ``{}`` is the empty set. Trees are never changed, only made anew, and share parts.

The elements of what is stored are in structured-merge-diff's order (:func:`in_order`), as clients
compare bytes; all operations here keep it.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from berth.cluster.warnings import quoted

FieldSet = dict[str, Any]
Path = tuple[str, ...]
"""Elements as they are in the tree: ``("f:spec", "f:replicas")``."""

SELF: Final = "."
MEMBER: Final[FieldSet] = {}
"""What is below an element that is in the set, with nothing in it. Nobody may change it."""


def of_paths(*paths: Path) -> FieldSet:
    """Return the set of *paths*."""
    found: FieldSet = {}
    for path in paths:
        tree = MEMBER
        for element in reversed(path):
            tree = {element: tree}
        found = union(found, tree)
    return found


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in one of two sets, or in both."""
    if not one or one is other:
        return other
    if not other:
        return one
    merged = None
    for element, below in other.items():
        known = one.get(element)
        united = below if known is None else _united(known, below)
        if united is not known:
            merged = merged or one.copy()
            merged[element] = united
    if merged is None:
        return one
    return merged if len(merged) == len(one) else _level_in_order(merged)


def _united(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the union of what is below one element in both sets."""
    if one is other or not (one or other):
        return one
    if not one:
        return other if SELF in other else {SELF: MEMBER, **other}
    if not other:
        return one if SELF in one else {SELF: MEMBER, **one}
    return union(one, other)


def in_order(one: FieldSet) -> FieldSet:
    """Return a set with its elements in order, all the way down."""
    if not one:
        return one
    below = {element: in_order(child) if child else child for element, child in one.items()}
    return _level_in_order(below)


def _level_in_order(one: FieldSet) -> FieldSet:
    """Return a tree with the elements at its root in order."""
    if len(one) < 2:
        return one
    elements = sorted(one)
    if elements[-1] >= "g":  # there is more than fields and itself, which are sorted as texts
        elements.sort(key=_rank)
    return {element: one[element] for element in elements}


def _rank(element: str) -> tuple[Any, ...]:
    """Return what elements are sorted by: themselves, fields, items by key, by value, by index."""
    match element[:2]:
        case "f:":
            return 1, element
        case "k:":
            keys = msgspec.json.decode(element[2:])
            return 2, [(name, _value_rank(value)) for name, value in keys.items()]
        case "v:":
            return 3, _value_rank(msgspec.json.decode(element[2:]))
        case "i:":
            return 4, int(element[2:])
        case _:
            return 0, element


def _value_rank(value: Any) -> tuple[int, Any]:
    match value:
        case bool():
            return 2, value
        case int() | float():
            return 0, value
        case str():
            return 1, value
        case _:
            return 3, msgspec.json.encode(value)


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in *one* and not in *other*; of an element, what is in it stays."""
    if not one or not other:
        return one
    return _difference(one, other) or {}


def _difference(one: FieldSet, other: FieldSet) -> FieldSet | None:
    """Return what is left of two trees with something in them; None: nothing."""
    left: FieldSet = {}
    changed = False
    for element, below in one.items():
        known = other.get(element)
        if known is None:
            left[element] = below
            continue
        rest = _below_difference(below, known)
        changed = changed or rest is not below
        if rest is not None:
            left[element] = rest
    if not changed:
        return one
    if len(left) == 1 and SELF in left:
        return MEMBER
    return left or None


def _below_difference(one: FieldSet, other: FieldSet) -> FieldSet | None:
    """Return what is left below one element that is in both trees; None: nothing."""
    if not one:
        return one if other and SELF not in other else None
    if not other:  # the element, without what is in it
        if SELF not in one:
            return one
        return {element: below for element, below in one.items() if element != SELF} or None
    return _difference(one, other)


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in both sets."""
    found: FieldSet = {}
    for element, below in one.items():
        known = other.get(element)
        if known is not None:
            shared = _below_intersection(below, known)
            if shared is not None:
                found[element] = shared
    return found


def _below_intersection(one: FieldSet, other: FieldSet) -> FieldSet | None:
    if not one:
        return MEMBER if not other or SELF in other else None
    if not other:
        return MEMBER if SELF in one else None
    shared = intersection(one, other)
    if len(shared) == 1 and SELF in shared:
        return MEMBER
    return shared or None


def without(one: FieldSet, paths: FieldSet) -> FieldSet:
    """Return *one* without the members of *paths* and all that is in them."""
    if not one or not paths:
        return one
    left: FieldSet = {}
    for element, below in one.items():
        taken = paths.get(element)
        if taken is None:
            left[element] = below
        elif not taken or SELF in taken:
            continue
        elif not below:
            left[element] = below
        elif rest := without(below, taken):
            left[element] = MEMBER if len(rest) == 1 and SELF in rest else rest
    return left


def read(value: Any) -> FieldSet | None:
    """Return the set in ``fieldsV1`` as a client sent it; None: it is none.

    Elements of a kind that nobody knows are left out, as in structured-merge-diff.
    """
    try:
        return _read(value)
    except (ValueError, RecursionError):
        return None


def _read(value: Any) -> FieldSet:
    if not isinstance(value, dict):
        raise ValueError("a set of fields is an object")
    found: FieldSet = {}
    for element, child in value.items():
        if element != SELF and not _is_element(element):
            continue
        below = _read(child)
        found[element] = MEMBER if element == SELF or (len(below) == 1 and SELF in below) else below
    return _level_in_order(found) if found else found


def _is_element(element: str) -> bool:
    """Tell whether the kind of *element* is known; ValueError when it is malformed."""
    match element[:2]:
        case "f:":
            return True
        case "k:":
            if not isinstance(msgspec.json.decode(element[2:]), dict):
                raise ValueError("the keys of an item are an object")
            return True
        case "v:":
            msgspec.json.decode(element[2:])
            return True
        case "i:":
            int(element[2:])
            return True
        case _:
            return False


def has(one: FieldSet, path: Path) -> bool:
    """Tell whether the set has *path* itself."""
    below = one
    for element in path:
        if element not in below:
            return False
        below = below[element]
    return not below or SELF in below


def paths_of(one: FieldSet) -> Iterator[Path]:
    """Yield the paths of a set in the order in which a conflict names them."""
    yield from _paths(one, ())


def _paths(below: FieldSet, prefix: Path) -> Iterator[Path]:
    elements = sorted(element for element in below if element != SELF)
    for element in elements:
        if not below[element] or SELF in below[element]:
            yield (*prefix, element)
    for element in elements:
        yield from _paths(below[element], (*prefix, element))


def path_text(path: Path) -> str:
    """Write a path as messages do: ``.spec.containers[name="c"].image``."""
    return "".join(map(element_text, path))


def element_text(element: str) -> str:
    """Write one element: ``.name``, ``[name="c"]``, ``[="value"]``."""
    kind, rest = element[:2], element[2:]
    match kind:
        case "k:":
            keys = msgspec.json.decode(rest)
            said = ",".join(f"{key}={_value_text(value)}" for key, value in keys.items())
            return f"[{said}]"
        case "v:":
            return f"[={_value_text(msgspec.json.decode(rest))}]"
        case "i:":
            return f"[{rest}]"
        case _:
            return f".{rest}"


def _value_text(value: Any) -> str:
    match value:
        case str():
            return quoted(value)
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case list():
            return f"[{','.join(map(_value_text, value))}]"
        case dict():
            return "".join(f"{key}={_value_text(child)}" for key, child in value.items())
        case _:
            return str(value)
