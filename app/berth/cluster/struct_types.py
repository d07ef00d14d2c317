"""The schemas as msgspec types: whether a body fits its kind, in microseconds.

They answer yes or no. What is wrong, in the API server's words, is what :mod:`berth.cluster.schema`
finds out by walking the body, thirty times slower, for the few that do not fit.
"""

from functools import cache, reduce
from operator import or_
from typing import Any

import msgspec

from berth.cluster.resources import ResourceType
from berth.cluster.schema import (
    JSON_TYPES,
    TIME,
    ListOf,
    MapOf,
    Ref,
    Scalar,
    Type,
    model_of,
    schema,
)
from berth.cluster.strategies.shape import Int64


def fits(resource: ResourceType, value: Any) -> bool:
    """Tell whether *value* has only fields that the kind has, of the JSON types that they have."""
    try:
        msgspec.convert(value, struct_type(model_of(resource)))
    except msgspec.ValidationError:
        return False
    return True


@cache
def struct_type(model: str) -> Any:
    """Return the type that values of a model decode to: every field may be missing, or null."""
    fields = [
        # The names of attributes do not matter; those of fields can be Python's keywords.
        (f"field_{number}", _type(each.type) | None, msgspec.field(default=None, name=name))
        for number, (name, each) in enumerate(schema(model).fields.items())
    ]
    return msgspec.defstruct(model, fields, forbid_unknown_fields=True, gc=False)


def _type(each: Type) -> Any:
    match each:
        case Scalar("Time"):
            return TIME
        case Scalar(name):
            return reduce(or_, (Int64 if each is int else each for each in JSON_TYPES[name]))
        case ListOf(item):
            return list[_type(item) | None]  # type: ignore[misc]  # made at run time
        case MapOf(value):
            return dict[str, _type(value) | None]  # type: ignore[misc]  # made at run time
        case Ref(model):
            return struct_type(model)
