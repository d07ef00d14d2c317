"""Presence of fields: what the API's Go types leave out when they write JSON, and what they add.

A field that is null says nothing, and is as good as missing. With ``omitempty``, a value that is
empty is left out; without, what is not set is written all the same: the zero of a scalar or of an
object held by value, null for a list, a map or a time. What has a place of its own cannot be
missing: an item of a list, or the value of a key, becomes the empty value of its type
(``encoding/json`` and ``runtime.DefaultUnstructuredConverter`` alike).
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import ABSENT, TIMES, Field, ListOf, MapOf, Scalar, Schema, Type

EMPTY: Final[dict[str, Any]] = {
    "boolean": False,
    "bytes": "",
    "int32": 0,
    "int64": 0,
    "number": 0,
    "string": "",
    "IntOrString": 0,
    "Quantity": "0",
}
"""What null means in the place of a value that cannot be missing. Of any JSON, it is a value."""


@cache
def zeros(schema: Schema) -> Mapping[str, Any]:
    """Return the fields that are always written, and what is written when they are not set."""
    return {name: field.zero for name, field in schema.fields.items() if field.zero is not ABSENT}


class _Plan(NamedTuple):
    """What is to be done with the fields of an object type."""

    zeros: Mapping[str, Any]
    empties: frozenset[str]
    """Left out when they are empty."""
    nulls: frozenset[str]
    """Written as null when they are empty."""
    below: Mapping[str, Type]
    """Those that have something in them."""


@cache
def _plan(schema: Schema) -> _Plan:
    fields = schema.fields.items()
    return _Plan(
        zeros(schema),
        frozenset(name for name, field in fields if _omits_empty(field)),
        frozenset(
            name
            for name, field in fields
            if field.zero is None and isinstance(field.type, ListOf | MapOf)
        ),
        {name: field.type for name, field in fields if _leads_on(field.type)},
    )


def _omits_empty(field: Field) -> bool:
    match field.type:
        case ListOf() | MapOf() | Scalar("bytes"):
            return field.zero is ABSENT
        case _:
            return field.omits_zero


def complete(expected: Type, value: Any) -> None:
    """Make of *value*, in place, what the API's Go types make of it.

    Fields that a schema does not have, and values of the wrong JSON type, are for others to refuse.
    """
    match expected:
        case Schema() if isinstance(value, dict):
            _complete_object(_plan(expected), value)
        case ListOf(item) if isinstance(value, list):
            for index, child in enumerate(value):
                if child is None:
                    value[index] = _empty(item)
            if _leads_on(item):
                for child in value:
                    complete(item, child)
        case MapOf(item) if isinstance(value, dict):
            for key in [key for key, child in value.items() if child is None]:
                if isinstance(item, Scalar) and item.name in TIMES:
                    del value[key]  # no time is null again, which nobody wants to read
                else:
                    value[key] = _empty(item)
            if _leads_on(item):
                for child in value.values():
                    complete(item, child)
        case Scalar(name) if name.startswith("JSONSchemaPropsOr"):
            complete(_definition(name, value), value)


def _leads_on(type_: Type) -> bool:
    """Tell whether something may be in values of a type."""
    return not isinstance(type_, Scalar) or type_.name.startswith("JSONSchemaProps")


def _definition(name: str, value: Any) -> Type:
    """Return what *value* is, where a field of JSON schema has either of two types."""
    props = builtin.schema(builtin.JSON_SCHEMA_PROPS)
    if isinstance(value, list):
        return ListOf(Scalar("string") if name == "JSONSchemaPropsOrStringArray" else props)
    return props


def _complete_object(plan: _Plan, obj: dict[str, Any]) -> None:
    for name in [name for name, child in obj.items() if not child]:
        child = obj[name]
        if child is None or name in plan.empties:
            del obj[name]
        elif name in plan.nulls and isinstance(child, list | dict):  # else a wrong type
            obj[name] = None
    for name, zero in plan.zeros.items():
        if name not in obj:
            obj[name] = {} if zero == {} else zero
    for name, child in obj.items():
        if isinstance(child, dict | list) and (expected := plan.below.get(name)) is not None:
            complete(expected, child)


def _empty(each: Type) -> Any:
    match each:
        case Schema() | MapOf():
            return {}
        case ListOf():
            return []
        case Scalar(name):
            return EMPTY.get(name)
