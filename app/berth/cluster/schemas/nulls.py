"""Null and missing values, as the API's Go types read and write them.

A field that is null says nothing, and is as good as missing. What has a place of its own cannot be
missing: an item of a list, or the value of a key, becomes the empty value of its type
(``encoding/json`` and ``runtime.DefaultUnstructuredConverter`` alike). A scalar that is held by
value, and is not left out when it is empty, is written: a condition always has a ``type``.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import ListOf, MapOf, Scalar, Schema, Type

NULL_TIMES: Final = frozenset(
    {
        "eventTime",
        "firstTimestamp",
        "lastHeartbeatTime",
        "lastProbeTime",
        "lastTimestamp",
        "lastTransitionTime",
    }
)
"""What the API server itself writes as null when it is not set: sending it back changes nothing."""

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

QUANTITY: Final = Scalar("Quantity")
TIMES: Final = frozenset({"MicroTime", "Time"})


def complete(schema: Schema, obj: Any) -> None:
    """Make of *obj*, in place, what the API's Go types make of it: without nulls, with zeros.

    Fields that *schema* does not have, and values of the wrong JSON type, are for others to refuse.
    """
    _complete(schema, obj)


@cache
def zeros(schema: Schema) -> Mapping[str, Any]:
    """Return the scalars that are written also when they are empty, and what is written then."""
    return {
        name: "0" if field.type == QUANTITY else field.zero
        for name, field in schema.fields.items()
        if isinstance(field.type, Scalar)
        and ((field.is_required and field.type == QUANTITY) or field.zero in ("", 0))
    }


def _complete(expected: Type, value: Any) -> None:
    match expected:
        case Schema() if isinstance(value, dict):
            _complete_object(expected, value)
        case ListOf(item) if isinstance(value, list):
            for index, child in enumerate(value):
                value[index] = child = _empty(item) if child is None else child
                _complete(item, child)
        case MapOf(item) if isinstance(value, dict):
            for key, child in list(value.items()):
                if child is None and isinstance(item, Scalar) and item.name in TIMES:
                    del value[key]  # no time is null again, which nobody wants to read
                    continue
                value[key] = child = _empty(item) if child is None else child
                _complete(item, child)
        case Scalar(name) if name.startswith("JSONSchemaPropsOr"):
            _complete(_definition(name, value), value)


def _definition(name: str, value: Any) -> Type:
    """Return what *value* is, where a field of JSON schema has either of two types."""
    props = builtin.schema(builtin.JSON_SCHEMA_PROPS)
    if isinstance(value, list):
        return ListOf(Scalar("string") if name == "JSONSchemaPropsOrStringArray" else props)
    return props


def _complete_object(schema: Schema, obj: dict[str, Any]) -> None:
    for name in [name for name, child in obj.items() if child is None]:
        field = schema.fields.get(name)
        if field is None or not is_written_as_null(name, field.type):
            del obj[name]
    for name, zero in zeros(schema).items():
        obj.setdefault(name, zero)
    for name, child in obj.items():
        if isinstance(child, dict | list) and name in schema.fields:
            _complete(schema.fields[name].type, child)


def is_written_as_null(name: str, each: Type) -> bool:
    """Tell whether a field of that name and type may be null in what is stored."""
    return name in NULL_TIMES and isinstance(each, Scalar) and each.name in TIMES


def _empty(each: Type) -> Any:
    match each:
        case Schema() | MapOf():
            return {}
        case ListOf():
            return []
        case Scalar(name):
            return EMPTY.get(name)
