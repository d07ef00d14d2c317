"""Defaults of structural schemas, and nulls where there is no null (``schema/defaulting``)."""

import copy
from typing import Any

from berth.cluster.custom.walk import Schema, field_of, items, properties
from berth.cluster.resources import Object


def default(schema: Schema, obj: Object) -> None:
    """Fill in what is missing, or null where it may not be, and drop the other such nulls."""
    _default(schema, obj)


def copied(value: Any) -> Any:
    """Return a copy of a default, which objects must not share."""
    return copy.deepcopy(value) if isinstance(value, dict | list) else value


def _default(schema: Schema, value: Any) -> None:
    if isinstance(value, list):
        below = items(schema)
        if below is None:
            return
        for index, item in enumerate(value):
            if item is None and _replaces_null(below):
                value[index] = copied(below["default"])
            _default(below, value[index])
        return
    if not isinstance(value, dict):
        return
    for name, field in properties(schema).items():
        if name not in value and field.get("default") is not None:
            value[name] = copied(field["default"])
    for key in list(value):
        below = field_of(schema, key)
        if below is None:
            continue
        if value[key] is None and not below.get("nullable"):
            if below.get("default") is None:
                del value[key]
                continue
            value[key] = copied(below["default"])
        _default(below, value[key])


def _replaces_null(schema: Schema) -> bool:
    return not schema.get("nullable") and schema.get("default") is not None


def has_defaults(schema: Schema) -> bool:
    """Tell whether there is any default in the schema."""
    if schema.get("default") is not None:
        return True
    below = [*properties(schema).values()]
    below += [
        each
        for each in (schema.get("items"), schema.get("additionalProperties"))
        if isinstance(each, dict)
    ]
    return any(has_defaults(each) for each in below)
