"""Work of this process that an expression causes.

Kubernetes' cost leaves out what Go does lazily or what no cluster has come across: long results of
``replace`` and ``format``, lists that are copied when they are joined, values that share their
parts and are compared in depth, and that functions written in Python take longer than CEL's own.
All of that is added here, as an upper bound from the greatest *weight* of every value: the
characters and elements in it, in depth.
"""

from typing import Final

from berth.kube.cel.ast import (
    Call,
    CheckedExpr,
    Comprehension,
    Constant,
    Expr,
    Identifier,
    ListLiteral,
    MapLiteral,
    Select,
)
from berth.kube.cel.cost import SCALARS, Coster, is_bind
from berth.kube.cel.device_type import (
    ATTRIBUTE,
    MAX_ATTRIBUTE_VALUES,
    MAX_ATTRIBUTES,
    MAX_DOMAIN_LENGTH,
    MAX_ID_LENGTH,
    MAX_VALUE_LENGTH,
    declared_type,
)
from berth.kube.cel.sizes import MOST, TRAVERSAL, UNKNOWN, Size, add, multiply, scaled

DEVICE_WEIGHT: Final = 2 * MAX_ATTRIBUTES * (MAX_DOMAIN_LENGTH + MAX_ID_LENGTH + MAX_VALUE_LENGTH)
"""Of a device's attributes and capacities together, twice what the API lets through."""

_LIST_WEIGHT: Final = MAX_ATTRIBUTE_VALUES * (MAX_VALUE_LENGTH + 1)
"""Of an attribute that is the longest list of the longest values."""

_PYTHON_CALL: Final = 10
"""A call of a function that is written in Python, in units: about 2 µs."""

_LONGEST_NUMBER: Final = 1100
"""So many characters ``format`` makes of a number at most, and of anything else for each unit of
its weight far less."""

_TAKES_NO_LOOK: Final = frozenset(
    {
        "_[_]",
        "_[?_]",
        "_?._",
        "_&&_",
        "_||_",
        "!_",
        "_?_:_",
        "@not_strictly_false",
        "size",
        "value",
        "hasValue",
        "or",
        "orValue",
        "optional.of",
        "optional.none",
    }
)
"""Functions that do not read their arguments through."""

_EACH_WITH_EACH: Final = frozenset(
    {
        "distinct",
        "sort",
        "@sortByAssociatedKeys",
        "sets.contains",
        "sets.equivalent",
        "sets.intersects",
    }
)


class Labour(Coster):
    """Adds what Kubernetes does not charge."""

    def __init__(
        self, checked: CheckedExpr, python: frozenset[str], *, attribute_weight: int
    ) -> None:
        super().__init__(checked)
        self._python = python
        self._attribute_weight = attribute_weight
        self._weights: dict[int, int] = {}

    def cost(self, node: Expr) -> int:
        charged = super().cost(node)
        weight = self._weights[node.id] = self._weight(node)
        return add(charged, self._extra(node, weight)) if isinstance(node, Call) else charged

    def _element_size(self, list_: Expr) -> Size:
        entries = self._entries_of(list_)
        return UNKNOWN if entries is None else entries.value

    def _extra(self, node: Call, weight: int) -> int:
        if node.function in _TAKES_NO_LOOK or self._overloads(node) == ("in_map",):
            return 0
        given = self._given(node)
        total = add(scaled(add(*given), TRAVERSAL), scaled(weight, TRAVERSAL))
        if node.function in _EACH_WITH_EACH:
            total = add(total, scaled(multiply(given[0], given[-1]), TRAVERSAL))
        if node.function in self._python:
            total = add(total, _PYTHON_CALL, *given)
        return total

    def _given(self, node: Call) -> list[int]:
        nodes = node.arguments if node.target is None else (node.target, *node.arguments)
        return [self._weights[node.id] for node in nodes] or [0]

    def _weight(self, node: Expr) -> int:
        kind = self._checked.type_of(node).kind
        if kind in SCALARS:
            return 1
        declared = declared_type(self._path(node))
        if declared is ATTRIBUTE:
            return self._attribute_weight
        if declared is not None:
            return DEVICE_WEIGHT if declared.value or declared.fields else max(1, declared.size)
        match node:
            case Identifier():
                return self._weight_of_variable(node, kind)
            case Select():
                return self._weights[node.operand.id]
            case ListLiteral():
                return add(1, *(self._weights[element.id] for element in node.elements))
            case MapLiteral():
                parts = (part for entry in node.entries for part in entry if part is not None)
                return add(1, *(self._weights[part.id] for part in parts))
            case Comprehension():
                if is_bind(node):
                    return self._weights[node.result.id]
                turns = self.size_of(node.range).max
                return add(1, multiply(turns, self._weights[node.step.id]))
            case Call():
                return self._weight_of_call(node, kind)
        return max(1, self.size_of(node).max) if isinstance(node, Constant) else MOST

    def _weight_of_variable(self, node: Identifier, kind: str) -> int:
        local = self._local(node)
        if local is None:
            return 1
        if kind in ("string", "bytes") and local.size is not None:
            return max(1, local.size.max)
        return self._weights[local.source.id]

    def _weight_of_call(self, node: Call, kind: str) -> int:
        given = self._given(node)
        if node.function == "_?_:_":
            return max(given[1:])
        if node.function == "format":
            count = self.size_of(node.arguments[0]).max if node.arguments else 0
            return add(given[0], multiply(_LONGEST_NUMBER, add(count, given[-1])))
        size = self._size(node)
        if kind in ("string", "bytes") and size is not None:
            return max(1, size.max)
        if node.function == "lists.range":
            return MOST if size is None else size.max
        return add(1, *given, *given)


def worst_work(checked: CheckedExpr, python: frozenset[str], *, has_lists: bool = False) -> int:
    """Return an upper bound in units.

    *python* are the functions that are written in Python; *has_lists* says that an attribute may
    be a list.
    """
    weight = _LIST_WEIGHT if has_lists else MAX_VALUE_LENGTH
    return Labour(checked, python, attribute_weight=weight).cost(checked.root)
