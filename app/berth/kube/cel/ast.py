"""Checked expressions as trees.

The library gives a checked expression only in serialized form: ``cel.expr.CheckedExpr`` in the
protobuf wire format. The field numbers are those of cel-spec's ``syntax.proto`` and
``checked.proto``.
"""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

Value = bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """A node; its number is what types and overloads are found by."""

    id: int


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Expr):
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Identifier(Expr):
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(Expr):
    """``operand.field``, or ``has(operand.field)``."""

    operand: Expr
    field: str
    is_test: bool


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A function, or a method when there is a target. Operators are functions."""

    function: str
    target: Expr | None
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral(Expr):
    elements: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MapLiteral(Expr):
    """A map; a message has no expressions for keys."""

    entries: tuple[tuple[Expr | None, Expr], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension(Expr):
    """What macros such as ``all`` and ``cel.bind`` are turned into."""

    variable: str
    variable2: str
    range: Expr
    accumulator: str
    start: Expr
    condition: Expr
    step: Expr
    result: Expr


class Type(NamedTuple):
    """A type: ``int``, ``list`` with its element's, ``dyn`` when it is known at run time only."""

    kind: str
    parameters: "tuple[Type, ...]" = ()


DYN: Final = Type("dyn")


@dataclass(frozen=True, slots=True, eq=False)
class CheckedExpr:
    """An expression with what the checker knows of its nodes, by their numbers."""

    root: Expr
    types: Mapping[int, Type]
    overloads: Mapping[int, tuple[str, ...]]
    positions: Mapping[int, int]
    """Where nodes begin in the source, in characters; a selection is where its dot is."""

    def type_of(self, node: Expr) -> Type:
        return self.types.get(node.id, DYN)


def decode(serialized: bytes) -> CheckedExpr:
    """Decode what the library serializes: a CheckedExpr within an Any."""
    checked = _fields(_only(_fields(serialized), 2))
    references = (_fields(entry) for entry in checked[2])
    types = (_fields(entry) for entry in checked[3])
    return CheckedExpr(
        root=_expr(_only(checked, 4)),
        types={_only(entry, 1, 0): _type(_only(entry, 2, b"")) for entry in types},
        overloads={
            _only(entry, 1, 0): tuple(name.decode() for name in _fields(_only(entry, 2, b""))[3])
            for entry in references
        },
        positions={
            _only(entry, 1, 0): _only(entry, 2, 0)
            for entry in map(_fields, _fields(_only(checked, 5))[4])
        },
    )


# The wire format.

_Fields = defaultdict[int, list[Any]]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def _raw(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value: Any
        match key & 7:
            case 0:
                value, at = _varint(data, at)
            case 1:
                value, at = data[at : at + 8], at + 8
            case 2:
                length, at = _varint(data, at)
                value, at = data[at : at + length], at + length
            case 5:
                value, at = data[at : at + 4], at + 4
            case other:
                raise ValueError(f"checked expression: wire type {other} is not known")
        yield key >> 3, value


def _fields(data: bytes) -> _Fields:
    fields: _Fields = defaultdict(list)
    for number, value in _raw(data):
        fields[number].append(value)
    return fields


def _only(fields: _Fields, number: int, default: Any = b"") -> Any:
    """Return a field that is there at most once; the last one counts."""
    return fields[number][-1] if fields[number] else default


def _text(fields: _Fields, number: int) -> str:
    return str(_only(fields, number).decode())


# Expressions.


def _expr(data: bytes) -> Expr:
    fields = _fields(data)
    number = _only(fields, 2, 0)
    for kind, read in _KINDS.items():
        if fields[kind]:
            return read(number, _fields(fields[kind][-1]))
    return Constant(number, None)


def _exprs(messages: Sequence[bytes]) -> tuple[Expr, ...]:
    return tuple(_expr(data) for data in messages)


def _constant(number: int, fields: _Fields) -> Expr:
    for kind, read in _CONSTANTS.items():
        if fields[kind]:
            return Constant(number, read(fields[kind][-1]))
    return Constant(number, None)


def _select(number: int, fields: _Fields) -> Expr:
    return Select(number, _expr(_only(fields, 1)), _text(fields, 2), bool(_only(fields, 3, 0)))


def _call(number: int, fields: _Fields) -> Expr:
    target = _expr(fields[1][-1]) if fields[1] else None
    return Call(number, _text(fields, 2), target, _exprs(fields[3]))


def _map(number: int, fields: _Fields) -> Expr:
    entries = (_fields(entry) for entry in fields[2])
    return MapLiteral(
        number,
        tuple(
            (_expr(entry[3][-1]) if entry[3] else None, _expr(_only(entry, 4))) for entry in entries
        ),
    )


def _comprehension(number: int, fields: _Fields) -> Expr:
    return Comprehension(
        number,
        variable=_text(fields, 1),
        variable2=_text(fields, 8),
        range=_expr(_only(fields, 2)),
        accumulator=_text(fields, 3),
        start=_expr(_only(fields, 4)),
        condition=_expr(_only(fields, 5)),
        step=_expr(_only(fields, 6)),
        result=_expr(_only(fields, 7)),
    )


_KINDS: Final[Mapping[int, Callable[[int, _Fields], Expr]]] = {
    3: _constant,
    4: lambda number, fields: Identifier(number, _text(fields, 1)),
    5: _select,
    6: _call,
    7: lambda number, fields: ListLiteral(number, _exprs(fields[1])),
    8: _map,
    9: _comprehension,
}

_CONSTANTS: Final[Mapping[int, Callable[[Any], Value]]] = {
    2: bool,
    3: lambda number: number - (1 << 64) if number >> 63 else number,
    4: int,
    5: lambda data: float(struct.unpack("<d", data)[0]),
    6: lambda data: str(data.decode()),
    7: bytes,
}


# Types.

_PRIMITIVES: Final = ("unspecified", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN: Final = ("unspecified", "any", "timestamp", "duration")


@lru_cache(maxsize=1024)
def _type(data: bytes) -> Type:
    for kind, value in _raw(data):
        match kind:
            case 3 | 4:
                return Type(_PRIMITIVES[value])
            case 5:
                return Type(_WELL_KNOWN[value])
            case 6:
                return Type("list", (_type(_only(_fields(value), 1)),))
            case 7:
                fields = _fields(value)
                return Type("map", (_type(_only(fields, 1)), _type(_only(fields, 2))))
            case 9:
                return Type("struct")
            case 14:
                fields = _fields(value)
                return Type(_text(fields, 1), tuple(_type(one) for one in fields[2]))
    return DYN
