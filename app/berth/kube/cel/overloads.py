"""Declarations of functions for CEL."""

from collections.abc import Callable
from typing import Any

from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked


def function(name: str, *overloads: cel.Overload) -> cel.FunctionDecl:
    return cel.FunctionDecl(name, list(overloads))


def overload(
    name: str, result: cel.Type, *parameters: cel.Type, is_member: bool = False
) -> Callable[[Callable[..., Any]], cel.Overload]:
    """Return what makes an overload of a Python function; *name* is unique among all."""
    return lambda call: cel.Overload(
        name,
        return_type=result,
        parameters=list(parameters),
        is_member=is_member,
        impl=call,
    )
