"""The nodes of schemas: of the kinds that come with the server, and of custom resources.

A list without a list type has one owner, but for those that a strategic merge patch merges, as in
kube-openapi's conversion of schemas (package ``schemaconv``).
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary

from berth.cluster.custom.walk import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVES,
)
from berth.cluster.resources import ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import (
    ABSENT,
    ANYTHING,
    Field,
    ListOf,
    MapOf,
    Scalar,
    Schema,
    Type,
)
from berth.cluster.writes.managed_fields.nodes import (
    ANY_JSON,
    DEDUCED,
    LEAF,
    Atomic,
    AtomicList,
    Items,
    Leaf,
    Map,
    Node,
    Struct,
)

OBJECTS: Final = frozenset({"FieldsV1"})
"""Scalars that are JSON objects, each of whose fields has its own owner."""

STRING, NUMERIC, BOOLEAN = Leaf("string"), Leaf("numeric"), Leaf("boolean")
SCALARS: Final = {
    "boolean": BOOLEAN,
    "bytes": STRING,
    "int32": NUMERIC,
    "int64": NUMERIC,
    "integer": NUMERIC,
    "number": NUMERIC,
    "string": STRING,
    "MicroTime": STRING,
    "Time": STRING,
}
"""By the names that schemas and JSON schemas have for them; others are of several types."""

ATOMIC: Final = "atomic"


def node_of(resource: ResourceType) -> Struct:
    """Return the node of the objects of a kind."""
    if resource.structural is None:
        return of_schema(resource.schema)
    node = _custom.get(resource.schema)
    if node is None:
        node = _custom[resource.schema] = of_structural(resource.structural)
    return node


_custom: WeakKeyDictionary[Schema, Struct] = WeakKeyDictionary()
"""Of definitions that are there."""


@cache
def of_schema(schema: Schema) -> Struct:
    """Return the node of an object type."""
    node = Struct()
    _in_progress[schema] = node
    for name, field in schema.fields.items():
        node.known[name] = (f"f:{name}", _of_field(field))
    node.zeros = {
        name: field.zero for name, field in schema.fields.items() if field.zero is not ABSENT
    }
    del _in_progress[schema]
    return node


_in_progress: dict[Schema, Struct] = {}
"""Types that contain themselves are asked for while they are made."""


def _of_field(field: Field) -> Node:
    if isinstance(field.type, ListOf):
        return _of_list(field, field.type)
    node = _of_type(field.type)
    return Atomic(node) if field.map_type == ATOMIC else node


def _of_type(each: Type) -> Node:
    match each:
        case Schema():
            node = _in_progress.get(each) or of_schema(each)
            return Atomic(node) if each.map_type == ATOMIC else node
        case MapOf(value):
            return Map(_of_type(value))
        case ListOf(item):
            return AtomicList(_of_type(item))
        case Scalar(name) if name in OBJECTS:
            return DEDUCED
        case Scalar(name):
            return ANY_JSON if name in ANYTHING else SCALARS.get(name, LEAF)


def _of_list(field: Field, each: ListOf) -> Node:
    list_type, keys = field.list_type, field.list_keys
    if not list_type and field.merges:
        list_type, keys = ("map", (field.merge_key,)) if field.merge_key else ("set", ())
    if list_type == "map" and isinstance(each.item, Schema):
        fields = {key: each.item.fields[key] for key in keys}
        defaults = {
            key: field.default if field.default is not None else field.zero
            for key, field in fields.items()
            if field.default is not None or field.zero is not ABSENT
        }
        return Items(_of_type(each.item), keys, defaults)
    item = _of_type(each.item)
    return Items(item) if list_type == "set" else AtomicList(item)


def of_structural(schema: Mapping[str, Any]) -> Struct:
    """Return the node of a custom resource: ``JSONSchemaProps`` as JSON."""
    node = _object(schema)
    node.known |= _of_any_resource()
    return node


def _of_any_resource() -> dict[str, tuple[str, Node]]:
    return {
        "apiVersion": ("f:apiVersion", LEAF),
        "kind": ("f:kind", LEAF),
        "metadata": ("f:metadata", of_schema(builtin.meta("ObjectMeta"))),
    }


def _of_properties(schema: Mapping[str, Any]) -> Node:
    if schema.get(INT_OR_STRING):
        return LEAF
    match schema.get("type"):
        case "object":
            node = _object(schema)
            return Atomic(node) if schema.get(MAP_TYPE) == ATOMIC else node
        case "array":
            return _array(schema)
        case None | "":
            return DEDUCED if _is_open(schema) else ANY_JSON
        case scalar:
            return SCALARS.get(scalar, LEAF)


def _object(schema: Mapping[str, Any]) -> Struct:
    rest = schema.get("additionalProperties")
    node = Struct()
    if isinstance(rest, dict):
        node.rest = _of_properties(rest)
    elif rest or _is_open(schema):
        node.rest = DEDUCED
    for name, child in (schema.get("properties") or {}).items():
        node.known[name] = (f"f:{name}", _of_properties(child))
    if schema.get(EMBEDDED):
        node.known |= _of_any_resource()
    return node


def _is_open(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get(PRESERVES))


def _array(schema: Mapping[str, Any]) -> Node:
    items = schema.get("items") or {}
    match schema.get(LIST_TYPE):
        case "map":
            properties = items.get("properties") or {}
            keys = tuple(schema.get(LIST_KEYS) or ())
            defaults = {
                key: properties[key]["default"]
                for key in keys
                if "default" in properties.get(key, {})
            }
            return Items(_of_properties(items), keys, defaults)
        case "set":
            return Items(_of_properties(items))
        case _:
            return AtomicList(_of_properties(items))
