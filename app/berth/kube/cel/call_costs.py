"""What calls cost: the tables of Kubernetes, of CEL and of its extensions.

Sources: Kubernetes ``apiserver/pkg/cel/library/cost.go`` and, for ``includes``,
``dynamic-resource-allocation/cel/compile.go``, which come first; cel-go ``ext/lists.go``,
``ext/sets.go`` and ``checker/cost.go``. As there, functions that Kubernetes
charges by their target cost 1 when they are not called as methods, such as ``quantity("1")``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from berth.kube.cel.ast import Constant, Expr
from berth.kube.cel.device_type import MAX_ATTRIBUTE_VALUES
from berth.kube.cel.sizes import (
    MOST,
    ONE,
    PATTERN,
    TRAVERSAL,
    Size,
    add,
    multiply,
    scaled,
)


class CallCost(NamedTuple):
    cost: int
    size: Size | None = None
    """Of the result, where it follows from the arguments'."""


@dataclass(frozen=True, slots=True)
class Argument:
    """What is known of a call's argument or target."""

    node: Expr
    kind: str
    known: Size
    """Its size."""
    element_kind: str = ""
    element: Size | None = None
    """Of a list's elements; None if it is no list."""


Arguments = Sequence[Argument]
_Rule = Callable[[Argument, Arguments], CallCost | None]

OPAQUE: Final = frozenset({"quantity", "semver", "ip", "cidr"})


def call_cost(
    function: str, overload: str, target: Argument | None, arguments: Arguments
) -> CallCost:
    """Return the worst case of a call, without that of its arguments."""
    rule = _EXTENSIONS.get(_base(overload))
    if rule is not None:
        subject, rest = _subject(target, arguments)
        if subject is not None and (cost := rule(subject, rest)) is not None:
            return cost
    if function == "_==_" and _compares_opaque(arguments):
        return CallCost(1)
    if target is not None:
        rule = _METHODS.get(function)
        if rule is not None and (cost := rule(target, arguments)) is not None:
            return cost
    rule = _STANDARD.get(overload)
    if rule is not None:
        subject, rest = _subject(target, arguments)
        if subject is not None and (cost := rule(subject, rest)) is not None:
            return cost
    return CallCost(1)


def _subject(target: Argument | None, arguments: Arguments) -> tuple[Argument | None, Arguments]:
    if target is not None:
        return target, arguments
    return (arguments[0], arguments[1:]) if arguments else (None, ())


def _compares_opaque(arguments: Arguments) -> bool:
    """Whether two quantities, versions or addresses are compared.

    The library's checker takes all of them for maps; one that nothing is known of is believed to
    be of the other's type.
    """
    kinds = {argument.kind for argument in arguments}
    return bool(kinds & OPAQUE) and kinds <= OPAQUE | {"map"}


# Kubernetes' methods.


def _by_elements(target: Argument, _: Arguments) -> CallCost:
    if target.element is None:  # a string, which has indexOf and lastIndexOf too
        return CallCost(target.known.cost(TRAVERSAL))
    per_element = 1
    if target.element_kind in ("string", "bytes"):
        per_element = add(1, target.element.cost(TRAVERSAL))
    return CallCost(multiply(target.known.max, per_element))


def _read(target: Argument, _: Arguments) -> CallCost:
    return CallCost(target.known.cost(TRAVERSAL), target.known)


def _replace(target: Argument, arguments: Arguments) -> CallCost | None:
    if len(arguments) < 2:
        return None
    size, old, new = target.known, arguments[0].known, arguments[1].known
    most, kept = 0, 0
    if old.min == 0:
        most, kept = add(size.max, 1), size.max
    elif new.max <= old.min:
        kept = size.max
    else:
        most = math.ceil(float(size.max) / float(old.min))
    least, kept_least = 0, 0
    if old.max == 0:
        least, kept_least = add(size.min, 1), size.min
    elif old.max <= new.min:
        kept_least = size.min
    else:
        least = math.ceil(float(size.min) / float(old.max))
    result = Size(
        add(multiply(least, new.min), kept_least), add(multiply(min(most, MOST), new.max), kept)
    )
    return CallCost(size.cost(2 * TRAVERSAL), result)


def _split(target: Argument, arguments: Arguments) -> CallCost:
    pieces = target.known.max
    if len(arguments) > 1 and isinstance(arguments[1].node, Constant):
        limit = arguments[1].node.value
        if isinstance(limit, int):
            pieces = limit % 2**64
    return CallCost(target.known.cost(2 * TRAVERSAL), Size(0, pieces))


def _join(target: Argument, arguments: Arguments) -> CallCost:
    count = target.known
    size = Size.of(0) if target.element is None else count.times(target.element)
    if arguments:
        gaps = Size(max(count.min - 1, 0), max(count.max - 1, 0))
        size = size.plus(arguments[0].known.times(gaps))
    return CallCost(size.cost(TRAVERSAL), size)


def _search(target: Argument, arguments: Arguments) -> CallCost | None:
    """One more than the text, times the pattern, so that an empty text costs something."""
    if not arguments:
        return None
    text = target.known.plus(ONE).cost(TRAVERSAL)
    cost = multiply(text, arguments[0].known.cost(PATTERN))
    return CallCost(cost, Size(0, target.known.max))


def _contains_address(method: str) -> _Rule:
    """An address has 16 bytes at most; what is given as text is read first."""

    def rule(_: Argument, arguments: Arguments) -> CallCost | None:
        if not arguments:
            return None
        cost = scaled(32, TRAVERSAL)
        if method == "containsCIDR":
            cost = add(cost, scaled(16, TRAVERSAL), 1)
        if arguments[0].kind == "string":
            cost = add(cost, arguments[0].known.cost(TRAVERSAL))
        return CallCost(cost)

    return rule


_METHODS: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _by_elements),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _read),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _search,
    "findAll": _search,
    "containsIP": _contains_address("containsIP"),
    "containsCIDR": _contains_address("containsCIDR"),
    "includes": lambda _, __: CallCost(MAX_ATTRIBUTE_VALUES),
}


# The extensions for lists and sets.

_CALL: Final = 1
_NEW_LIST: Final = 10


def _new_list(factor: float, size: Size) -> CallCost:
    return CallCost(add(size.cost(factor), _CALL, _NEW_LIST), size)


def _number(argument: Argument, otherwise: int) -> int:
    value = argument.node.value if isinstance(argument.node, Constant) else None
    return max(value, 0) if isinstance(value, int) else otherwise


def _slice(target: Argument, arguments: Arguments) -> CallCost | None:
    if len(arguments) != 2:
        return None
    start, end = _number(arguments[0], 0), _number(arguments[1], target.known.max)
    return _new_list(1, Size.of((end - start) % 2**64))


def _flatten(target: Argument, arguments: Arguments) -> CallCost:
    depth = _number(arguments[0], MOST) if arguments else 1
    return _new_list(float(depth), target.known)


def _compare_all(target: Argument, arguments: Arguments) -> CallCost:
    """Compare each with each; what is sorted by keys compares those."""
    keys = arguments[0] if arguments else target
    return _new_list(2.0, keys.known.times(keys.known))


def _sets(factor: float) -> _Rule:
    def rule(one: Argument, arguments: Arguments) -> CallCost | None:
        if len(arguments) != 1:
            return None
        return CallCost(add(one.known.times(arguments[0].known).cost(factor), _CALL))

    return rule


_EXTENSIONS: Final[Mapping[str, _Rule]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_range": lambda count, _: _new_list(1, Size.of(_number(count, MOST))),
    "list_reverse": lambda target, _: _new_list(1, target.known),
    "list_distinct": _compare_all,
    "list_sort": _compare_all,
    "list_sortByAssociatedKeys": _compare_all,
    "list_sets_contains_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_sets_intersects_list": _sets(1),
}


def _base(overload: str) -> str:
    """Return the name that overloads of one function share: ``list_int_sort`` is a list_sort."""
    parts = overload.split("_")
    if parts[0] != "list" or "sets" in parts:
        return overload
    for part in parts[1:]:
        if f"list_{part}" in _EXTENSIONS:
            return f"list_{part}"
    return overload


# CEL itself.


def _reads(one: Argument, _: Arguments) -> CallCost:
    return CallCost(one.known.cost(TRAVERSAL))


def _starts(_: Argument, arguments: Arguments) -> CallCost | None:
    return CallCost(arguments[0].known.cost(TRAVERSAL)) if len(arguments) == 1 else None


def _contains(target: Argument, arguments: Arguments) -> CallCost | None:
    if len(arguments) != 1:
        return None
    text, part = target.known.cost(TRAVERSAL), arguments[0].known.cost(TRAVERSAL)
    return CallCost(multiply(text, part))


def _matches(target: Argument, arguments: Arguments) -> CallCost | None:
    search = _search(target, arguments)
    return None if search is None else CallCost(search.cost)


def _compare(one: Argument, arguments: Arguments) -> CallCost | None:
    if len(arguments) != 1:
        return None
    return CallCost(scaled(min(one.known.max, arguments[0].known.max), TRAVERSAL))


def _concatenate(one: Argument, arguments: Arguments) -> CallCost:
    size = one.known.plus(arguments[0].known)
    return CallCost(size.cost(TRAVERSAL), size)


def _append(one: Argument, arguments: Arguments) -> CallCost:
    return CallCost(1, one.known.plus(arguments[0].known))


_STANDARD: Final[Mapping[str, _Rule]] = {
    "string_to_bytes": lambda one, _: CallCost(
        one.known.cost(TRAVERSAL), Size(one.known.min, multiply(one.known.max, 4))
    ),
    "bytes_to_string": lambda one, _: CallCost(
        one.known.cost(TRAVERSAL), Size(one.known.min // 4, one.known.max)
    ),
    "strings_quote": lambda one, _: CallCost(
        one.known.cost(TRAVERSAL),
        Size(add(one.known.min, 2), add(multiply(one.known.max, 2), 2)),
    ),
    "string_format": _reads,
    "starts_with_string": _starts,
    "ends_with_string": _starts,
    "in_list": lambda _, arguments: CallCost(arguments[0].known.max),
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _concatenate,
    "add_bytes": _concatenate,
    "add_list": _append,
    **dict.fromkeys(
        (
            "equals",
            "not_equals",
            *(
                f"{order}_{kind}"
                for order in ("less", "less_equals", "greater", "greater_equals")
                for kind in ("string", "bytes")
            ),
        ),
        _compare,
    ),
}
