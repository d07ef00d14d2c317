"""A rough estimate of a rule's cost in the worst case: the turns of its loops.

The API server estimates by CEL's cost model and refuses a rule above ``StaticEstimatedCostLimit``
(``apiextensions-apiserver/pkg/apis/apiextensions/validation``). Here a node of the expression costs
1 and a loop its turns; lists that say no limit count as fewer than they may be. So what the API
server accepts is accepted, and loops within loops over lists without limit are not.
"""

from collections.abc import Mapping
from typing import Final

from berth.kube.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Identifier,
    ListLiteral,
    MapLiteral,
    Select,
    decode,
)

UNKNOWN: Final = 10
"""Items of a list that is reached in a way that does not tell."""
BUDGET: Final = 10_000_000

EXCEEDED: Final = (
    "estimated rule cost exceeds budget by factor of {factor} (try simplifying the rule, or adding "
    "maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
)


def exceeded(serialized: bytes, sizes: Mapping[str, int], cardinality: int) -> str:
    """Return what is said of a compiled rule that costs too much; empty when it does not.

    *sizes* are those of lists and maps in variables; *cardinality* is how often the rule is asked.
    """
    cost = _cost(decode(serialized).root, sizes) * cardinality
    if cost <= BUDGET:
        return ""
    factor = cost / BUDGET
    return EXCEEDED.format(factor="more than 100x" if factor > 100 else f"{factor:.1f}x")


def _cost(node: Expr, sizes: Mapping[str, int]) -> int:
    match node:
        case Select():
            return 1 + _cost(node.operand, sizes)
        case Call():
            target = 0 if node.target is None else _cost(node.target, sizes)
            return 1 + target + sum(_cost(argument, sizes) for argument in node.arguments)
        case ListLiteral():
            return 1 + sum(_cost(element, sizes) for element in node.elements)
        case MapLiteral():
            parts = (each for entry in node.entries for each in entry if each is not None)
            return 1 + sum(_cost(part, sizes) for part in parts)
        case Comprehension():
            turn = _cost(node.condition, sizes) + _cost(node.step, sizes)
            once = _cost(node.range, sizes) + _cost(node.result, sizes)
            return once + _turns(node.range, sizes) * turn
        case _:
            return 1


def _turns(node: Expr, sizes: Mapping[str, int]) -> int:
    match node:
        case Identifier():
            return sizes.get(node.name, UNKNOWN)
        case ListLiteral():
            return len(node.elements)
        case MapLiteral():
            return len(node.entries)
        case _:
            return UNKNOWN
