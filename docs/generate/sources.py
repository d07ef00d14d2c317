"""Attribute docstrings: the string below a field, which Python does not keep."""

import ast
import inspect
from functools import cache
from itertools import pairwise
from types import ModuleType


def attribute_docs(thing: type | ModuleType) -> dict[str, str]:
    """Return the docstrings below the assignments of a class or module, by name."""
    body = _body(thing)
    return {
        name: inspect.cleandoc(after.value.value)
        for statement, after in pairwise(body)
        if isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
        for name in assigned(statement)
    }


@cache
def module_tree(module: ModuleType) -> ast.Module:
    """Return the source of a module, parsed."""
    return ast.parse(inspect.getsource(module))


def _body(thing: type | ModuleType) -> list[ast.stmt]:
    if isinstance(thing, ModuleType):
        return module_tree(thing).body
    module = inspect.getmodule(thing)
    assert module is not None
    body: list[ast.stmt] = module_tree(module).body
    for step in thing.__qualname__.split("."):
        (body,) = (
            each.body for each in body if isinstance(each, ast.ClassDef) and each.name == step
        )
    return body


def assigned(statement: ast.stmt) -> list[str]:
    """Return the names that *statement* gives a value or a type."""
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case _:
            return []
