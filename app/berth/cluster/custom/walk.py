"""Ways through a structural schema and a value side by side."""

from typing import Any

Schema = dict[str, Any]
"""``JSONSchemaProps`` as JSON."""

PRESERVES = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
RULES = "x-kubernetes-validations"

OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})
"""What an object has whether or not its schema says so."""

NOTHING: Schema = {}


def properties(schema: Schema) -> dict[str, Schema]:
    """Return the fields that are specified."""
    found: dict[str, Schema] = schema.get("properties") or NOTHING
    return found


def values(schema: Schema) -> Schema | None:
    """Return the schema of what a map holds; None when it is no map, or holds anything."""
    found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else None


def items(schema: Schema) -> Schema | None:
    """Return the schema of what a list holds."""
    found = schema.get("items")
    return found if isinstance(found, dict) else None


def field_of(schema: Schema, key: str) -> Schema | None:
    """Return the schema of what an object has at *key*; None when nothing is said of it."""
    found = properties(schema).get(key)
    return values(schema) if found is None else found


def child(path: str, key: str) -> str:
    """Return the path of a field."""
    return f"{path}.{key}" if path else key
