"""CEL expressions of webhooks and policies: what they may name, and whether they compile."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from berth.cluster.resources import Object
from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraints import distinct, named, required
from berth.kube import field_errors
from berth.kube.cel.failures import CompileError
from berth.kube.field_errors import FieldError

if TYPE_CHECKING:
    from berth.kube.cel.expressions import Environment, Expression

VARIABLES: Final = (
    "object", "oldObject", "request", "params", "namespaceObject", "variables", "authorizer",
)  # fmt: skip
"""What an expression may name."""


@cache
def environment() -> "Environment":
    """Return what the expressions may name."""
    from berth.kube.cel.expressions import Environment  # here, for the library takes 0.15 s to load

    return Environment(*VARIABLES, authorizes=True)


@lru_cache(maxsize=1024)
def compiled(source: str) -> "Expression":
    """Compile an expression that was checked when it was stored."""
    return environment().compile(source)


def check_conditions(items: Iterable[Object], path: str) -> Iterator[FieldError]:
    """Evaluate match conditions: whether they compile, and the name of each."""
    for index, item in enumerate(items):
        here, source = f"{path}[{index}].expression", item.get("expression") or ""
        if source.strip():
            yield from check_expression(source, here, "bool")
        else:
            yield field_errors.required(here)
        yield from named(syntax.qualified_name)(item.get("name"), f"{path}[{index}].name")
    yield from distinct("name")([item for item in items if item.get("name")], path)


def check_variables(items: Iterable[Object], path: str) -> Iterator[FieldError]:
    """Evaluate variables; each has a name of its own."""
    for index, item in enumerate(items):
        yield from required()(item.get("name"), f"{path}[{index}].name")
        yield from check_expression(item.get("expression"), f"{path}[{index}].expression")
    yield from distinct("name")([item for item in items if item.get("name")], path)


def check_expression(
    source: Any, path: str, *returns: str, rewrite: Callable[[str], str] = str
) -> Iterator[FieldError]:
    """Evaluate whether an expression, rewritten, compiles and gives one of the types *returns*."""
    if not source or not source.strip():
        yield field_errors.required(path, "expression is not specified")
        return
    try:
        environment().compile(rewrite(source), *returns)
    except CompileError as exc:
        yield field_errors.invalid(path, source, f"compilation failed: {exc}")
