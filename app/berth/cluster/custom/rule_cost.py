"""What a rule costs in the worst case, by the sizes that its schema allows.

Source: ``k8s.io/apiserver/pkg/cel/common`` (the types of schemas, and how large their values are),
``apiextensions-apiserver/pkg/apiserver/schema/cel`` (how many there are of them), and
``apiextensions-apiserver/pkg/apis/apiextensions/validation`` (the limit).
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from berth.cluster.custom.cel_values import Variable, escaped
from berth.cluster.custom.walk import INT_OR_STRING, Schema, items, properties, values
from berth.kube.cel.ast import CheckedExpr, Expr, Identifier, decode
from berth.kube.cel.cost import Coster
from berth.kube.cel.device_type import DeclaredType
from berth.kube.cel.sizes import Size, add, multiply

LIMIT: Final = 10_000_000
"""``StaticEstimatedCostLimit``."""
REQUEST_BYTES: Final = 3 * 1024 * 1024
"""Of a request, in which all that a rule is asked about must fit."""
UNTOLD: Final = Size(0, 10)
"""Of what is made or reached in a way that does not tell, such as ``string(self.x)``. Upstream
knows more of these than is known here, so they count as small: what it accepts is accepted."""
BYTES_PER_CHARACTER: Final = 4
"""Of UTF-8, at most."""

_LONGEST: Final[Mapping[str, int]] = {"duration": 32, "date": 12, "date-time": 32}
"""Bytes of the JSON of a text of a format."""
_SHORTEST: Final[Mapping[str, int]] = {"duration": 3, "date": 12, "date-time": 21}
_KINDS: Final[Mapping[str, str]] = {
    "byte": "bytes",
    "date": "timestamp",
    "date-time": "timestamp",
    "duration": "duration",
}
_PLAIN: Final[Mapping[str, tuple[DeclaredType, int]]] = {
    "boolean": (DeclaredType("bool"), 4),
    "integer": (DeclaredType("int"), 1),
    "number": (DeclaredType("double"), 1),
}
"""Types with the bytes of their shortest JSON; to compare them costs nothing."""

Cardinality = int | None
"""How many values of a schema an object has at most; None: as many as fit in a request."""


def cardinality_within(schema: Schema, cardinality: Cardinality) -> Cardinality:
    """Return how many items or entries all values of *schema* have, of which there are so many."""
    limit = schema.get("maxProperties" if schema.get("type") == "object" else "maxItems")
    return None if limit is None or cardinality is None else cardinality * max(int(limit), 0)


class RuleCosts:
    """What rules about the values of one schema cost."""

    def __init__(self, schema: Schema, cardinality: Cardinality) -> None:
        self._schema = schema
        self._cardinality = cardinality

    @cached_property
    def _known(self) -> tuple[DeclaredType, int]:
        """The type of the values, and how many there are."""
        type_, shortest = _declared(self._schema) or (DeclaredType("dyn"), 0)
        if self._cardinality is not None:
            return type_, self._cardinality
        return type_, REQUEST_BYTES // (shortest + 1)  # with a comma between any two

    def exceeded(
        self, serialized: bytes, variables: Iterable[Variable], *, is_message: bool = False
    ) -> str:
        """Return what is said of a compiled rule that costs too much; empty when it does not.

        *variables* stand for the paths that it names. What gives a message is looked at once.
        """
        checked, (type_, cardinality) = decode(serialized), self._known
        paths = {each.name: each.path for each in variables}
        cost = _RuleCoster(checked, type_, paths).cost(checked.root)
        if not is_message:
            cost = multiply(cost, cardinality)
        if cost <= LIMIT:
            return ""
        factor = cost / LIMIT
        times = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
        if factor > 100:
            times = "more than 100x"
        return (
            f"estimated {'messageExpression' if is_message else 'rule'} cost exceeds budget by "
            f"factor of {times} (try simplifying the rule, or adding maxItems, maxProperties, and "
            "maxLength where arrays, maps, and strings are declared)"
        )


class _RuleCoster(Coster):
    """Knows the variables that stand for paths below ``self``: each field on the way costs 1."""

    def __init__(
        self, checked: CheckedExpr, type_: DeclaredType, paths: Mapping[str, tuple[str, ...]]
    ) -> None:
        below = ((name, _at(type_, path)) for name, path in paths.items())
        variables = {name: found for name, found in below if found is not None}
        super().__init__(checked, {"self": type_, "oldSelf": type_, **variables})
        self._steps = {name: len(path) for name, path in paths.items()}

    def size_of(self, node: Expr) -> Size:
        return self._size(node) or UNTOLD

    def cost(self, node: Expr) -> int:
        cost = super().cost(node)
        return add(cost, self._steps.get(node.name, 0)) if isinstance(node, Identifier) else cost


def _at(type_: DeclaredType | None, path: tuple[str, ...]) -> DeclaredType | None:
    for name in path:
        type_ = None if type_ is None else type_.fields.get(escaped(name) or "")
    return type_


def _declared(schema: Schema) -> tuple[DeclaredType, int] | None:
    """Return the type with the bytes of its shortest JSON; None: rules cannot see such values."""
    if schema.get(INT_OR_STRING):
        return DeclaredType("dyn", REQUEST_BYTES - 2), 1
    match schema.get("type"):
        case "string":
            return _text(schema)
        case "array":
            return _list(schema)
        case "object" if values(schema) is not None:
            return _map(schema)
        case "object":
            return _object(schema)
        case kind:
            return _PLAIN.get(kind or "")


def _text(schema: Schema) -> tuple[DeclaredType, int]:
    form, longest = schema.get("format") or "", schema.get("maxLength")
    size = _LONGEST.get(form, REQUEST_BYTES - 2)
    if form == "byte" and longest is not None:
        size = int(longest)
    elif form not in _KINDS:
        if longest is not None:
            size = int(longest) * BYTES_PER_CHARACTER
        elif enum := schema.get("enum"):
            size = max(len(str(each).encode()) for each in enum)
    return DeclaredType(_KINDS.get(form, "string"), max(size, 0)), _SHORTEST.get(form, 2)


def _list(schema: Schema) -> tuple[DeclaredType, int] | None:
    item = _declared(items(schema) or {})
    if item is None:
        return None
    limit = schema.get("maxItems")
    size = (REQUEST_BYTES - 2) // (item[1] + 1) if limit is None else max(int(limit), 0)
    return DeclaredType("list", size, value=item[0]), 2


def _map(schema: Schema) -> tuple[DeclaredType, int] | None:
    value = _declared(values(schema) or {})
    if value is None:
        return None
    limit = schema.get("maxProperties")
    # An entry has two quotes, a colon, a comma, and a key of two characters.
    size = (REQUEST_BYTES - 2) // (value[1] + 6) if limit is None else max(int(limit), 0)
    return DeclaredType("map", size, DeclaredType("string"), value[0]), 2


def _object(schema: Schema) -> tuple[DeclaredType, int]:
    fields, shortest = {}, 2
    required = schema.get("required") or ()
    for name, each in properties(schema).items():
        below, called = _declared(each), escaped(name)
        if below is None:
            continue
        if called is not None:
            fields[called] = below[0]
        if name in required and "default" not in each:
            shortest += len(name) + below[1] + 4
    return DeclaredType("struct", fields=fields), shortest
