"""Quantities as the API's Go types write them: ``1``, not ``1000m``; ``500m``, not ``0.5``."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from berth.cluster.schemas.types import ListOf, MapOf, Scalar, Schema, Type, object_of
from berth.kube.objects.quantity import canonical_text, parse

QUANTITY: Final = Scalar("Quantity")
CORE: Final = "io.k8s.api.core.v1."
"""Resource lists of this group are rounded up to thousandths."""


def write_canonically(schema: Schema, obj: Any) -> None:
    """Write the quantities of *obj*, in place, as the API server answers them.

    What cannot be read stays as it is: it is for others to refuse.
    """
    if isinstance(obj, dict):
        plan = _plan(schema)
        for name in plan.quantities:
            if name in obj:
                obj[name] = _written(obj[name])
        for name in plan.lists:
            if name in obj:
                _write_all(obj[name], milli=plan.rounds)
        for name, below in plan.below:
            if name in obj:
                _look_below(below, obj[name])


def unreadable(schema: Schema, obj: Any) -> list[tuple[str, Any]]:
    """Return the quantities of *obj*, which fits *schema*, that are none, each with its path."""
    return list(_unreadable(schema, obj, ""))


def is_unreadable(quantity: Any) -> bool:
    """Tell whether a value in the place of a quantity is none."""
    try:
        parse(quantity)
    except ValueError:
        return True
    return False


def _unreadable(expected: Type, value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if value is None:
        return
    match expected:
        case Schema():
            plan = _plan(expected)
            for name in (*plan.quantities, *plan.lists):
                if name in value:
                    field = expected.fields[name].type
                    yield from _unreadable(field, value[name], _joined(path, name))
            for name, below in plan.below:
                if name in value:
                    yield from _unreadable(below, value[name], _joined(path, name))
        case ListOf(item):
            for index, child in enumerate(value):
                yield from _unreadable(item, child, f"{path}[{index}]")
        case MapOf(item):
            for key, child in value.items():
                yield from _unreadable(item, child, f"{path}[{key}]")
        case _ if is_unreadable(value):
            yield path, value


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _look_below(expected: Type, value: Any) -> None:
    match expected:
        case Schema():
            write_canonically(expected, value)
        case ListOf(item) if isinstance(value, list):
            for child in value:
                _look_below(item, child)
        case MapOf(item) if isinstance(value, dict):
            for child in value.values():
                _look_below(item, child)


def _write_all(value: Any, *, milli: bool) -> None:
    """Write the quantities of a list or a map."""
    if isinstance(value, dict):
        for name, each in value.items():
            value[name] = _written(each, milli=milli)
    elif isinstance(value, list):
        value[:] = map(_written, value)


def _written(quantity: Any, *, milli: bool = False) -> Any:
    if not isinstance(quantity, str | int | float):
        return quantity
    try:
        return canonical_text(quantity, milli=milli)
    except ValueError:
        return quantity


class _Plan(NamedTuple):
    """Where the quantities of an object type are."""

    quantities: tuple[str, ...]
    lists: tuple[str, ...]
    """Fields that are lists or maps of quantities."""
    rounds: bool
    """Whether these maps are resource lists."""
    below: tuple[tuple[str, Type], ...]
    """Fields with objects that have quantities."""


@cache
def _plan(schema: Schema) -> _Plan:
    fields = schema.fields.items()
    return _Plan(
        tuple(name for name, field in fields if field.type == QUANTITY),
        tuple(name for name, field in fields if field.type in (ListOf(QUANTITY), MapOf(QUANTITY))),
        schema.name.startswith(CORE),
        tuple(
            (name, field.type) for name, field in fields if _has_quantities(object_of(field.type))
        ),
    )


@cache
def _has_quantities(schema: Schema | None) -> bool:
    """Whether there are quantities in an object type, or below it."""
    seen, todo = {schema}, [schema]
    while todo:
        each = todo.pop()
        for field in each.fields.values() if each is not None else ():
            below = object_of(field.type)
            if below is None:
                if field.type in (QUANTITY, ListOf(QUANTITY), MapOf(QUANTITY)):
                    return True
            elif below not in seen:
                seen.add(below)
                todo.append(below)
    return False
