"""The schemas as msgspec types: whether a body fits its kind, in microseconds.

They answer yes or no. What is wrong, in the API server's words, is what :mod:`.checks` finds out by
walking the body, thirty times slower, for the few that do not fit.
"""

from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final

import msgspec

from berth.cluster.schemas.presence import zeros
from berth.cluster.schemas.types import (
    ANYTHING,
    ListOf,
    MapOf,
    Scalar,
    Schema,
    Type,
    object_of,
    reachable,
)
from berth.kube.objects.quantity import LONGEST, NOTATION

TIME: Any = Annotated[datetime, msgspec.Meta(tz=True)]
"""RFC 3339, as columns and controllers read it."""
_DAY: Final = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2\d))"
)
MICRO_TIME: Any = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"\A\d{{4}}-{_DAY}T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d[.,]\d{{6}}"
        r"(?:Z|[+-]\d\d:\d\d)\Z"
    ),
]
"""RFC 3339 with six digits of a second, no more and no fewer."""
BASE64: Final = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
QUANTITY: Any = Annotated[
    str, msgspec.Meta(pattern=rf"\A(?:{NOTATION.pattern})\Z", max_length=LONGEST)
]
"""Those that are written as a text."""

INT32: Any = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
INT64: Any = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

SCALARS: dict[str, Any] = {
    "boolean": bool,
    "bytes": Annotated[str, msgspec.Meta(pattern=rf"\A(?:{BASE64})\Z")],
    "int32": INT32,
    "int64": INT64,
    "number": float | INT64,
    "string": str,
    "IntOrString": INT32 | str,
    "MicroTime": MICRO_TIME,
    "Quantity": INT64 | float | QUANTITY,
    "Time": TIME,
    **dict.fromkeys(ANYTHING, bool | int | float | str | list[Any] | dict[str, Any]),
}


@cache
def struct_type(schema: Schema, *, complete: bool = False) -> Any:
    """Return the type that values decode to: every field may be missing, or null.

    With *complete* only those may that the API server itself does not write, or writes as null.
    None: an object type in it contains itself, which msgspec cannot be told.
    """
    if any(_contains_itself(each) for each in reachable(schema)):
        return None
    return _struct_type(schema, complete)


def _contains_itself(schema: Schema) -> bool:
    below = (object_of(field.type) for field in schema.fields.values())
    return any(each is schema for each in below)


@cache
def _struct_type(schema: Schema, complete: bool) -> Any:
    needed = zeros(schema) if complete else ()
    fields = [
        # The names of attributes do not matter; those of fields can be Python's keywords.
        (
            f"field_{number}",
            _type(each.type, complete, or_null=not complete or each.zero is None),
            msgspec.field(name=name) if name in needed else msgspec.field(default=None, name=name),
        )
        for number, (name, each) in enumerate(schema.fields.items())
    ]
    return msgspec.defstruct(
        schema.short_name, fields, forbid_unknown_fields=True, kw_only=True, gc=False
    )


def _type(each: Type, complete: bool, *, or_null: bool) -> Any:
    match each:
        case Scalar(name):
            found = SCALARS[name]
        case ListOf(item):
            nulls = not complete or _is_any(item)
            found = list[_type(item, complete, or_null=nulls)]  # type: ignore[misc]  # at run time
        case MapOf(value):
            nulls = not complete or _is_any(value)
            found = dict[str, _type(value, complete, or_null=nulls)]  # type: ignore[misc]  # as above
        case Schema():
            found = _struct_type(each, complete)
    return found | None if or_null else found


def _is_any(each: Type) -> bool:
    return isinstance(each, Scalar) and each.name in ANYTHING
