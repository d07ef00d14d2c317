"""Values as messages of the API server show its own types: all fields, as Go calls them."""

from typing import Any

import msgspec

from berth.cluster.schemas.types import ABSENT, Field, ListOf, MapOf, Scalar, Schema, Type

INITIALISMS = {"apiGroup": "APIGroup", "apiVersion": "APIVersion", "uid": "UID", "cel": "CEL"}
ZEROS = {"string": "", "boolean": False, "int32": 0, "int64": 0, "number": 0}


def go_value(expected: Type, value: Any) -> Any:
    """Return JSON of a value of a type, as Go's JSON of the internal type has it.

    Its fields are taken to be those of the published type, which holds for the kinds whose values
    messages show.
    """
    match expected:
        case Schema() if isinstance(value, dict):
            return {
                INITIALISMS.get(name, name[:1].upper() + name[1:]): _field(field, value.get(name))
                for name, field in expected.fields.items()
            }
        case ListOf(item) if isinstance(value, list):
            return [go_value(item, child) for child in value]
        case MapOf(item) if isinstance(value, dict):
            return {key: go_value(item, child) for key, child in value.items()}
    return value


def _field(field: Field, value: Any) -> Any:
    if value is not None:
        return go_value(field.type, value)
    match field.type:
        case Schema() if field.zero == {}:
            return go_value(field.type, {})
        case Scalar(name) if field.by_value or field.zero is not ABSENT:
            return ZEROS.get(name)
    return None


def in_go_order(expected: Type, value: Any) -> Any:
    """Return JSON of a value of a type in the order in which Go writes it.

    Fields come as they are declared, the keys of maps by name.
    """
    match expected:
        case Schema() if isinstance(value, dict):
            return {
                name: in_go_order(field.type, value[name])
                for name, field in expected.fields.items()
                if name in value
            }
        case ListOf(item) if isinstance(value, list):
            return [in_go_order(item, child) for child in value]
        case MapOf(item) if isinstance(value, dict):
            return {key: in_go_order(item, value[key]) for key in sorted(value)}
        case Scalar("FieldsV1"):
            return msgspec.json.decode(msgspec.json.encode(value, order="sorted"))
    return value
