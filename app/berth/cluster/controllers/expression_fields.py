"""Fields that an expression names and a kind does not have, in the words of cel-go.

A part of the type checking of ``k8s.io/apiserver/pkg/admission/plugin/policy/validating``: what
operators and functions make of values is not followed, so it may have any fields.
"""

from collections.abc import Iterator, Mapping

from berth.cluster.schemas.types import ListOf, MapOf, Scalar, Schema, Type
from berth.kube.cel import ast

Known = Type | None
"""The type of a value; None: it may be anything."""
Scope = Mapping[str, Known]
"""By name of variable."""

INDEX = "_[_]"


def undefined_fields(source: str, checked: ast.CheckedExpr, scope: Scope) -> list[str]:
    """Return an error for each field that the types in *scope* do not have."""
    found: dict[int, str] = {}
    _Walk(found).visit(checked.root, scope)
    places = sorted((checked.positions.get(node, 0), field) for node, field in found.items())
    return [_error(source, at, f"undefined field '{field}'") for at, field in places]


class _Walk:
    """Notes in *found*, by number of the node, fields that are not there."""

    def __init__(self, found: dict[int, str]) -> None:
        self._found = found

    def visit(self, node: ast.Expr | None, scope: Scope) -> Known:
        """Return the type of *node*."""
        match node:
            case ast.Identifier(name=name):
                return scope.get(name)
            case ast.Select(operand=operand, field=field):
                return self._select(node.id, self.visit(operand, scope), field)
            case ast.Call():
                return self._call(node, scope)
            case ast.Comprehension():
                return self._comprehension(node, scope)
            case _:
                for child in _children(node):
                    self.visit(child, scope)
                return None

    def _select(self, number: int, operand: Known, field: str) -> Known:
        match operand:
            case MapOf(value):
                return value
            case Schema(fields=fields):
                if field in fields:
                    return fields[field].type
                self._found[number] = field
        return None

    def _call(self, call: ast.Call, scope: Scope) -> Known:
        types = [self.visit(child, scope) for child in _children(call)]
        if call.function == INDEX:
            return _element(types[0])
        return None

    def _comprehension(self, node: ast.Comprehension, scope: Scope) -> Known:
        over, start = self.visit(node.range, scope), self.visit(node.start, scope)
        inner = {**scope, node.accumulator: start}
        if node.variable2:  # the first is a number or a key
            inner |= {node.variable: None, node.variable2: _element(over)}
        else:
            inner[node.variable] = over.item if isinstance(over, ListOf) else None
        self.visit(node.condition, inner)
        self.visit(node.step, inner)
        return self.visit(node.result, {**scope, node.accumulator: start})


def _element(of: Known) -> Known:
    match of:
        case ListOf(item):
            return item
        case MapOf(value):
            return value
        case Schema() | Scalar() | None:
            return None


def _children(node: ast.Expr | None) -> Iterator[ast.Expr]:
    match node:
        case ast.Call(target=target, arguments=arguments):
            yield from () if target is None else (target,)
            yield from arguments
        case ast.ListLiteral(elements=elements):
            yield from elements
        case ast.MapLiteral(entries=entries):
            for key, value in entries:
                yield from (value,) if key is None else (key, value)


def _error(source: str, at: int, what: str) -> str:
    """Write an error with its place, as cel-go does."""
    before = source[:at]
    line, column = before.count("\n"), at - (before.rfind("\n") + 1)
    text = source.split("\n")[line]
    return f"ERROR: <input>:{line + 1}:{column + 1}: {what}\n | {text}\n | {'.' * column}^"
