"""Estimates of an expression's cost, in CEL's units (cel-go ``checker/cost.go``).

Kubernetes refuses a selector whose worst case is above 1,000,000 units, and a rule of a custom
resource above 10,000,000. The sizes of the parts of variables are those that are declared
(:mod:`~berth.kube.cel.device_type`). One unit is about 50 ns in Go. Least costs are left out,
nothing asks for them.

Where the library knows only that something is a map or of any type, the path that leads there from
a variable, or the function that made it, tells the type that Kubernetes' checker would know.
"""

from dataclasses import dataclass
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
from berth.kube.cel.call_costs import Argument, CallCost, call_cost
from berth.kube.cel.device_type import (
    INDICES,
    ITEMS,
    KEYS,
    OF_SELECTORS,
    VALUES,
    Path,
    Variables,
    declared_size,
    declared_type,
)
from berth.kube.cel.sizes import ONE, UNKNOWN, Entries, Size, add, multiply

_NAME: Final = 1
"""Of an identifier, and of a field that is selected from a map or message."""
_NEW_LIST: Final = 10
_NEW_MAP: Final = 30

SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})

_MADE_BY: Final = {
    "string_to_quantity": "quantity",
    "quantity_add": "quantity",
    "quantity_add_int": "quantity",
    "quantity_sub": "quantity",
    "quantity_sub_int": "quantity",
    "string_to_semver": "semver",
    "string_bool_to_semver": "semver",
    "string_to_ip": "ip",
    "cidr_ip": "ip",
    "string_to_cidr": "cidr",
    "cidr_masked": "cidr",
}
"""Which types of Kubernetes the functions give that give maps here."""


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of a comprehension or of ``cel.bind``."""

    source: Expr
    """What it is bound to, or runs through."""
    path: Path
    kind: str
    size: Size | None
    entries: Entries | None


class Coster:
    """Adds up the cost of one expression."""

    def __init__(self, checked: CheckedExpr, variables: Variables = OF_SELECTORS) -> None:
        self._checked = checked
        self._variables = variables
        self._paths: dict[int, Path] = {}
        self._kinds: dict[int, str] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Expr) -> int:
        match node:
            case Identifier():
                local = self._local(node)
                self._paths[node.id] = (node.name,) if local is None else local.path
                return _NAME
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._bind(node) if is_bind(node) else self._comprehension(node)
        return 0

    def _select(self, node: Select) -> int:
        operand = self.cost(node.operand)
        if node.is_test:  # Kubernetes keeps has() free of charge
            return operand
        self._paths[node.id] = (*self._path(node.operand), node.field)
        return add(operand, _NAME if self._kind(node.operand) in ("map", "struct") else 0)

    def _call(self, node: Call) -> int:
        costs = [self.cost(argument) for argument in node.arguments]
        if node.function == "dyn":
            self._copy(node.arguments[0], to=node)
            return add(1, *costs)
        target = None
        total = 0
        if node.target is not None:
            total = self.cost(node.target)
            target = self._argument(node.target)
        arguments = [self._argument(argument) for argument in node.arguments]
        found: list[CallCost] = []
        result: Size | None = None
        for overload in self._overloads(node):
            charged = self._charge(node, overload, target, arguments, costs)
            found.append(charged)
            if charged.size is not None:
                result = charged.size if result is None else result.union(charged.size)
            if overload in ("index_list", "index_map"):
                container = node.arguments[0]
                entries = self._entries_of(container)
                result = None if entries is None else entries.value
                step = ITEMS if overload == "index_list" else VALUES
                self._paths[node.id] = (*self._path(container), step)
            if overload in _MADE_BY:
                self._kinds[node.id] = _MADE_BY[overload]
            if result is None:
                result = self._size(node)
        if result is not None:
            self._sizes[node.id] = result
        return add(total, max(charged.cost for charged in found))

    def _charge(
        self,
        node: Call,
        overload: str,
        target: Argument | None,
        arguments: list[Argument],
        costs: list[int],
    ) -> CallCost:
        """Return what the call costs together with its arguments, but for its target."""
        if overload == "conditional":
            condition, yes, no = costs
            first, second = (self._entries_of(argument) for argument in node.arguments[1:])
            if first is not None and second is not None:
                self._entries[node.id] = first.union(second)
            size = arguments[1].known.union(arguments[2].known)
            return CallCost(add(condition, max(yes, no)), size)
        if overload in ("logical_and", "logical_or"):
            return CallCost(add(*costs))
        if overload in ("add_string", "add_bytes", "add_list"):
            first, second = (self._entries_of(argument) for argument in node.arguments)
            if first is not None and second is not None:
                self._entries[node.id] = first.union(second)
        charged = call_cost(node.function, overload, target, arguments)
        return CallCost(add(charged.cost, *costs), charged.size)

    def _overloads(self, node: Call) -> tuple[str, ...]:
        """Return which overloads are possible by what is known of the container."""
        overloads = self._checked.overloads.get(node.id) or ("",)
        if node.function not in ("_[_]", "_[?_]", "@in", "size"):
            return overloads
        position = 1 if node.function == "@in" else 0
        container = node.arguments[position] if node.target is None else node.target
        kind = self._kind(container)
        other = {"map": "list", "list": "map"}.get(kind)
        if other is None:
            return overloads
        return (
            tuple(overload for overload in overloads if other not in overload.split("_"))
            or overloads
        )

    def _list(self, node: ListLiteral) -> int:
        costs = [self.cost(element) for element in node.elements]
        self._entries[node.id] = Entries("list", ONE, self._all_of(node.elements))
        return add(_NEW_LIST, *costs)

    def _map(self, node: MapLiteral) -> int:
        costs = []
        for key, value in node.entries:
            costs += [0 if key is None else self.cost(key), self.cost(value)]
        keys = [key for key, _ in node.entries if key is not None]
        values = [value for _, value in node.entries]
        self._entries[node.id] = Entries("map", self._all_of(keys), self._all_of(values))
        return add(_NEW_MAP, *costs)

    def _all_of(self, nodes: "tuple[Expr, ...] | list[Expr]") -> Size:
        sizes = [self.size_of(node) for node in nodes]
        if not sizes:
            return Size.of(0)
        return Size(min(size.min for size in sizes), max(size.max for size in sizes))

    def _comprehension(self, node: Comprehension) -> int:
        total = add(self.cost(node.range), self.cost(node.start))
        self._push(node.accumulator, self._local_of(node.start))
        if node.variable2:
            self._push(node.variable, self._keys_of(node.range))
            self._push(node.variable2, self._values_of(node.range))
        else:
            is_list = self._container(node.range) == "list"
            of = self._values_of if is_list else self._keys_of
            self._push(node.variable, of(node.range))
        turn = add(self.cost(node.condition), self.cost(node.step))
        self._locals[node.variable].pop()
        if node.variable2:
            self._locals[node.variable2].pop()
        total = add(total, self.cost(node.result))
        self._locals[node.accumulator].pop()
        count = self.size_of(node.range)
        if isinstance(node.start, Constant):
            self._sizes[node.id] = self.size_of(node.start)
        elif isinstance(node.start, ListLiteral | MapLiteral):
            self._sizes[node.id] = count
            entries = self._entries_of(node.step)
            if entries is not None:
                self._entries[node.id] = entries
        return add(total, multiply(count.max, turn))

    def _bind(self, node: Comprehension) -> int:
        total = add(self.cost(node.range), self.cost(node.start))
        self._push(node.accumulator, self._local_of(node.start))
        total = add(total, self.cost(node.result))
        self._copy(node.result, to=node)  # while the variable is known
        self._locals[node.accumulator].pop()
        return total

    # What is known of a node.

    def _argument(self, node: Expr) -> Argument:
        element = None
        type_ = self._checked.type_of(node)
        if type_.kind == "list" and type_.parameters:
            element = declared_size(
                (*self._path(node), ITEMS), self._variables
            ) or self._element_size(node)
        return Argument(
            node,
            kind=self._kind(node),
            known=self.size_of(node),
            element_kind=type_.parameters[0].kind if element is not None else "",
            element=element,
        )

    def _element_size(self, _list: Expr) -> Size:
        """Kubernetes does not look for it, not even in a list that is written out."""
        return UNKNOWN

    def size_of(self, node: Expr) -> Size:
        return self._size(node) or UNKNOWN

    def _size(self, node: Expr) -> Size | None:
        size = self._sizes.get(node.id) or _literal_size(node)
        if size is not None:
            return size
        size = declared_size(self._path(node), self._variables)
        if size is not None:
            return size
        type_ = self._checked.type_of(node)
        while type_.kind == "optional_type" and type_.parameters:
            type_ = type_.parameters[0]
        if type_.kind in SCALARS:
            return ONE
        local = self._local(node)
        return None if local is None else local.size

    def _entries_of(self, node: Expr) -> Entries | None:
        entries = self._entries.get(node.id)
        if entries is None and (local := self._local(node)) is not None:
            return local.entries
        return entries

    def _path(self, node: Expr) -> Path:
        local = self._local(node)
        return self._paths.get(node.id, ()) if local is None else local.path

    def _kind(self, node: Expr) -> str:
        local = self._local(node)
        known = self._kinds.get(node.id) if local is None else local.kind
        if known is not None:
            return known
        declared = declared_type(self._path(node), self._variables)
        return self._checked.type_of(node).kind if declared is None else declared.kind

    def _container(self, node: Expr) -> str:
        entries = self._entries_of(node)
        return self._kind(node) if entries is None else entries.kind

    def _copy(self, source: Expr, *, to: Expr) -> None:
        self._kinds[to.id] = self._kind(source)
        if (size := self._size(source)) is not None:
            self._sizes[to.id] = size
        if (entries := self._entries_of(source)) is not None:
            self._entries[to.id] = entries

    # Variables.

    def _local(self, node: Expr) -> _Local | None:
        known = self._locals.get(node.name) if isinstance(node, Identifier) else None
        return known[-1] if known else None

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _local_of(self, node: Expr) -> _Local:
        return _Local(
            node, self._path(node), self._kind(node), self._size(node), self._entries_of(node)
        )

    def _keys_of(self, container: Expr) -> _Local:
        is_list = self._container(container) == "list"
        path = (*self._path(container), INDICES if is_list else KEYS)
        entries = self._entries_of(container)
        kind = "int" if is_list else self._parameter(container, path, 0)
        return _Local(container, path, kind, None if entries is None else entries.key, None)

    def _values_of(self, container: Expr) -> _Local:
        path = (*self._path(container), ITEMS if self._container(container) == "list" else VALUES)
        entries = self._entries_of(container)
        kind = self._parameter(container, path, -1)
        return _Local(container, path, kind, None if entries is None else entries.value, None)

    def _parameter(self, container: Expr, path: Path, position: int) -> str:
        declared = declared_type(path, self._variables)
        if declared is not None:
            return declared.kind
        parameters = self._checked.type_of(container).parameters
        return parameters[position].kind if parameters else "dyn"


def estimated_cost(checked: CheckedExpr) -> int:
    """Return the worst case in units; 2**64 - 1 when a size that matters is not known."""
    return Coster(checked).cost(checked.root)


def is_bind(node: Comprehension) -> bool:
    """Whether it is ``cel.bind``: a loop without turns, for the sake of its variable."""
    return (
        isinstance(node.range, ListLiteral)
        and not node.range.elements
        and isinstance(node.condition, Constant)
        and node.condition.value is False
        and node.accumulator not in ("__result__", "@result")
    )


def _literal_size(node: Expr) -> Size | None:
    match node:
        case Constant(value=str() | bytes() as value):
            return Size.of(len(value))
        case Constant():
            return ONE
        case ListLiteral():
            return Size.of(len(node.elements))
        case MapLiteral():
            return Size.of(len(node.entries))
    return None
