"""The JSON types of a body, checked before anyone reads it."""

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from berth.cluster.resources import Object
from berth.kube.field_errors import FieldError

JSON_TYPES = {"array": "list", "object": "map", "str": "string", "int": "integer"}


Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Shape(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The fields of a body that its rules read; others pass through unread.

    Every field has a default, because a missing one is a matter for the rules, and admits null,
    which the API takes for missing.
    """


S = TypeVar("S", bound=Shape)
Check = Callable[[S, S | None], list[FieldError]]


def validated(
    shape: type[S], check: Check[S]
) -> Callable[[Object, Object | None], list[FieldError]]:
    """Return a ``validate`` hook: *check* on the bodies as structs, or the misfit as its one error.

    An old body that does not fit (it was stored by an earlier version) is evaluated as absent.
    """

    def validate(new: Object, old: Object | None) -> list[FieldError]:
        view = _convert(new, shape)
        if isinstance(view, FieldError):
            return [view]
        before = None if old is None else _convert(old, shape)
        return check(view, None if isinstance(before, FieldError) else before)

    return validate


def section(obj: Object, *path: str) -> Object:
    """Return the object at *path* below *obj*, made where it is missing or null.

    Only for bodies that fit their shape.
    """
    for key in path:
        child = obj.get(key)
        if child is None:
            child = obj[key] = {}
        obj = child
    return obj


def _convert(obj: Any, shape: type[S]) -> S | FieldError:
    try:
        return msgspec.convert(obj, shape)
    except msgspec.ValidationError as exc:
        return misfit(str(exc))


def misfit(complaint: str) -> FieldError:
    """Turn what msgspec says of a value that does not fit into a field error.

    It says ``Expected `array`, got `str` - at `$.spec.containers```.
    """
    what, _, place = complaint.partition(" - at ")
    path = place.strip("`").removeprefix("$").removeprefix(".").replace("[...]", "[*]")
    found = re.fullmatch(r"Expected `(.+)`, got `(\w+)`", what)
    if found is None:  # a number out of range
        return FieldError(path, "FieldValueInvalid", f"Invalid value: {what}")
    expected, got = found.groups()
    words = [JSON_TYPES.get(word, word) for word in expected.split(" | ") if word != "null"]
    message = f"Invalid value: {JSON_TYPES.get(got, got)}: must be of type {' or '.join(words)}"
    return FieldError(path, "FieldValueInvalid", message)
