"""A structural schema as the types of :mod:`berth.cluster.schemas`, made as far as somebody looks.

What is applied is merged by them (``schema/objectmeta``, ``managedfields`` upstream).
"""

from collections.abc import Mapping
from typing import Final

from berth.cluster.custom.walk import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    Schema,
    items,
    properties,
    values,
)
from berth.cluster.schemas import builtin, types
from berth.cluster.schemas.types import Field, ListOf, MapOf, Scalar

ANY: Final = Scalar("JSON")
SCALARS: Final = {"boolean": "boolean", "integer": "int64", "number": "number", "string": "string"}

_OBJECT: Final[Mapping[str, Field]] = {
    "apiVersion": Field(Scalar("string")),
    "kind": Field(Scalar("string")),
}


def object_type(name: str, schema: Schema) -> types.Schema:
    """Return the type of the objects that *schema* is the root of."""
    return types.Schema(name, lambda: {**_fields(name, schema), **_of_every_object()})


def _of_every_object() -> dict[str, Field]:
    return {**_OBJECT, "metadata": Field(builtin.meta("ObjectMeta"))}


def _fields(name: str, schema: Schema) -> dict[str, Field]:
    required = set(schema.get("required") or ())
    return {
        key: Field(
            _type(f"{name}.{key}", each),
            is_required=key in required,
            default=each.get("default"),
            list_type=each.get(LIST_TYPE) or "",
            list_keys=tuple(each.get(LIST_KEYS) or ()),
            map_type=each.get(MAP_TYPE) or "",
        )
        for key, each in properties(schema).items()
    }


def _type(name: str, schema: Schema) -> types.Type:
    if schema.get(INT_OR_STRING):
        return Scalar("IntOrString")
    match schema.get("type"):
        case "object":
            below = values(schema)
            if below is not None:
                return MapOf(_type(name, below))
            if schema.get(EMBEDDED):
                return object_type(name, schema)
            if not properties(schema):
                return MapOf(ANY) if schema.get("additionalProperties") is True else ANY
            return types.Schema(
                name, lambda: _fields(name, schema), map_type=schema.get(MAP_TYPE) or ""
            )
        case "array":
            below = items(schema)
            return ListOf(ANY if below is None else _type(name, below))
        case kind:
            return Scalar(SCALARS[kind]) if kind in SCALARS else ANY
