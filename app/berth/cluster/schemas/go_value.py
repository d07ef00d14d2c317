"""Values as messages of the API server show its own types: all fields, as Go calls them."""

from typing import Any

from berth.cluster.schemas.builtin import META
from berth.cluster.schemas.types import ABSENT, Field, ListOf, MapOf, Scalar, Schema, Type

INITIALISMS = {"apiGroup": "APIGroup", "apiVersion": "APIVersion", "uid": "UID", "cel": "CEL"}
POINTERS = frozenset({"succeededIndexes"})
"""Texts that are pointers in Go, which the published description does not tell."""
ZEROS = {"string": "", "boolean": False, "int32": 0, "int64": 0, "number": 0}


def go_value(expected: Type, value: Any) -> Any:
    """Return JSON of a value of a type, as Go's JSON of the internal type has it.

    Its fields are taken to be those of the published type, which holds for the kinds whose values
    messages show.
    """
    match expected:
        case Schema() if expected.name.startswith(META) and isinstance(value, dict):
            return _sorted(value)
        case Schema() if isinstance(value, dict):
            return {
                INITIALISMS.get(name, name[:1].upper() + name[1:]): _field(
                    name, field, value.get(name)
                )
                for name, field in sorted(expected.fields.items(), key=lambda each: each[1].number)
            }
        case ListOf(item) if isinstance(value, list):
            return [go_value(item, child) for child in value]
        case MapOf(item) if isinstance(value, dict):
            return {key: go_value(item, child) for key, child in value.items()}
    return value


def _sorted(value: Any) -> Any:
    """Return JSON of a type that is the same in all versions, its maps in order."""
    if isinstance(value, dict):
        fields = {"matchLabels": 0, "matchExpressions": 1}
        keys = sorted(value, key=lambda key: (fields.get(key, 2), key))
        return {key: _sorted(value[key]) for key in keys}
    return value


def _field(name: str, field: Field, value: Any) -> Any:
    if value is not None:
        return go_value(field.type, value)
    if name in POINTERS:
        return None
    match field.type:
        case Schema() if field.zero == {}:
            return go_value(field.type, {})
        case Scalar(scalar) if field.by_value or field.zero is not ABSENT:
            return ZEROS.get(scalar)
    return None
