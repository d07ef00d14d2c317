"""Checks of a body against its schema: wrong types, unknown fields, misplaced nulls."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from berth.cluster.go_text import kind_of, not_unmarshalled, time_error
from berth.cluster.schemas.structs import BASE64, SCALARS, struct_type
from berth.cluster.schemas.types import ANYTHING, TIMES, ListOf, MapOf, Scalar, Schema, Type
from berth.kube.objects.quantity import LONGEST, NOTATION

MOST_UNKNOWN = 100
"""Unknown fields that are told of, as in the API server's decoder."""

JSON_TYPES: dict[str, frozenset[type]] = {
    "boolean": frozenset({bool}),
    "bytes": frozenset({str}),
    "int32": frozenset({int}),
    "int64": frozenset({int}),
    "number": frozenset({float, int}),
    "string": frozenset({str}),
    "IntOrString": frozenset({int, str}),
    "MicroTime": frozenset({str}),
    "Quantity": frozenset({float, int, str}),
    "Time": frozenset({str}),
}
"""What a JSON decoder may make of the values of each scalar; of others, anything."""

NUMBERS: Final = frozenset({"int32", "int64", "float64"})
"""Go's types of numbers: it tells which one does not fit."""
READ_AS: Final = {"IntOrString": "int32", "MicroTime": "string", "Time": "string"}
"""Scalars that read themselves, and as what they read a value that they cannot have."""
CONVERTIBLE: Final = {
    "int32": frozenset({"float64"}),
    "int64": frozenset({"float64"}),
    "number": frozenset({"int64"}),
    "string": frozenset({"int64"}),
}
"""What Go can convert to a scalar, and the converter does not."""

GO_NAMES = {
    "boolean": "bool",
    "bytes": "[]uint8",
    "number": "float64",
    "IntOrString": "intstr.IntOrString",
    "Quantity": "resource.Quantity",
}
MALFORMED = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
"""What quantities have to be."""
BITS = {"int32": 32, "IntOrString": 32}
"""Of numbers that have fewer than 64."""


def fits(schema: Schema, value: Any) -> bool:
    """Tell whether *value* has only fields that *schema* has, of the JSON types that they have.

    Null fits everywhere; see :func:`is_complete`.
    """
    quick = struct_type(schema)
    if quick is None:
        return misfit(schema, value) is None and not _unknown(schema, value, prune=False)
    return _converts(value, quick)


def is_complete(schema: Schema, value: Any) -> bool:
    """Tell whether *value* fits, and has all that :func:`.presence.complete` adds.

    True is certain, False is not. What is to be left out may be there.
    """
    quick = struct_type(schema, complete=True)
    return quick is not None and _converts(value, quick)


def _converts(value: Any, quick: Any) -> bool:
    try:
        msgspec.convert(value, quick)
    except msgspec.ValidationError:
        return False
    return True


def prune(schema: Schema, obj: Any) -> list[str]:
    """Take the fields out of *obj* that *schema* does not have; return where they were.

    What ``fieldValidation=Strict`` refuses and ``Warn`` warns of: paths such as
    ``spec.containers[0].foo``, the first :data:`MOST_UNKNOWN` of them. Values of the wrong JSON
    type are none of its business; it does not look into them.
    """
    return _unknown(schema, obj, prune=True)


def _unknown(schema: Schema, obj: Any, *, prune: bool) -> list[str]:
    found: list[str] = []
    _look_for_unknown(schema, obj, "", found, prune=prune)
    return found


def _look_for_unknown(
    expected: Type, value: Any, path: str, found: list[str], *, prune: bool
) -> None:
    match expected:
        case Schema() if isinstance(value, dict):
            for key, child in list(value.items()):
                child_path = f"{path}.{key}" if path else key
                field = expected.fields.get(key)
                if field is None:
                    if prune:
                        del value[key]
                    if len(found) < MOST_UNKNOWN:
                        found.append(child_path)
                elif isinstance(child, dict | list):
                    _look_for_unknown(field.type, child, child_path, found, prune=prune)
        case ListOf(Schema() as item) if isinstance(value, list):
            for index, child in enumerate(value):
                _look_for_unknown(item, child, f"{path}[{index}]", found, prune=prune)
        case MapOf(Schema() | ListOf() as item) if isinstance(value, dict):
            for key, child in value.items():
                _look_for_unknown(item, child, f"{path}.{key}", found, prune=prune)


class _Misfit(NamedTuple):
    """What is wrong with a value."""

    why: str
    ends: bool
    """Whether nothing is read after it: a type that reads itself (times, quantities) said no."""


def misfit(schema: Schema, obj: Any) -> str | None:
    """Return what is wrong with values that do not fit their fields; None: all fit.

    In the words of Go's JSON decoder: ``json: cannot unmarshal number into Go struct field
    EnvVar.spec.containers.env.value of type string``. It tells the first in the order of *obj*,
    unless a later one ends the reading.
    """
    first = None
    for wrong in _misfits(schema, "", obj, "", ""):
        if wrong.ends:
            return wrong.why
        first = first or wrong.why
    return first


def _misfits(expected: Type, named: str, value: Any, owner: str, path: str) -> Iterator[_Misfit]:
    """Yield what is wrong with *value*, which is at *path* of an object of the type *owner*."""
    if value is None:
        return
    match expected:
        case Schema() if isinstance(value, dict):
            for key, child in value.items():
                if field := expected.fields.get(key):
                    below = ".".join(filter(None, (path, field.inside, key)))
                    yield from _misfits(
                        field.type, field.go_type, child, expected.short_name, below
                    )
            return
        case ListOf(item) if isinstance(value, list):
            for child in value:
                yield from _misfits(item, named, child, owner, path)
            return
        case MapOf(item) if isinstance(value, dict):
            for child in value.values():
                yield from _misfits(item, "", child, owner, path)
            return
        case Scalar(name) if name in ANYTHING or _fits_scalar(name, value):
            return
        case Scalar(name) if why := _misread(name, value):
            yield _Misfit(why, ends=name != "bytes")
            return
    found, wanted = json_type(value), go_type(expected, named)
    reads_itself = isinstance(expected, Scalar) and expected.name in READ_AS
    if isinstance(expected, Scalar) and reads_itself:
        wanted = READ_AS[expected.name]
    if type(value) in (int, float) and wanted in NUMBERS:
        found = f"number {value}"
    where = f"struct field {owner}.{path}" if path else "value"
    why = f"json: cannot unmarshal {found} into Go {where} of type {wanted}"
    yield _Misfit(why, ends=reads_itself)


def _fits_scalar(name: str, value: Any) -> bool:
    return (
        type(value) in JSON_TYPES[name]
        and not _is_too_long(value, name)
        and not (type(value) is str and _misread(name, value))
    )


def _misread(name: str, value: Any) -> str:
    """Return what a scalar that is written as a text says of one that it cannot read."""
    if name == "Quantity":
        if type(value) in JSON_TYPES[name] and not isinstance(value, str):
            return ""
        is_read = isinstance(value, str) and len(value) <= LONGEST and NOTATION.fullmatch(value)
        return "" if is_read else MALFORMED
    if not isinstance(value, str):
        return ""
    if name in TIMES and not _converts(value, SCALARS[name]):
        return time_error(value[:100], is_micro=name == "MicroTime")
    if name == "bytes" and (at := _not_base64(value)) is not None:
        return f"illegal base64 data at input byte {at}"
    return ""


def unconverted(schema: Schema, obj: Any) -> str | None:
    """As :func:`misfit`, of what is converted and not decoded: the result of a strategic merge.

    In the words of Kubernetes' converter, which takes the fields in the order of their declaration:
    ``unrecognized type: string``.
    """
    return next(_unconverted(schema, "", obj), None)


def _unconverted(expected: Type, named: str, value: Any) -> Iterator[str]:
    if value is None:
        return
    match expected:
        case Schema():
            if not isinstance(value, dict):
                yield f"cannot restore struct from: {kind_of(value)}"
                return
            for key, field in expected.fields.items():
                yield from _unconverted(field.type, field.go_type, value.get(key))
        case ListOf(item):
            if not isinstance(value, list):
                yield f"cannot restore slice from {kind_of(value)}"
                return
            for child in value:
                yield from _unconverted(item, named, child)
        case MapOf(item):
            if not isinstance(value, dict):
                yield f"cannot restore map from {kind_of(value)}"
                return
            for key in sorted(value):
                yield from _unconverted(item, "", value[key])
        case Scalar(name) if name not in ANYTHING and not _fits_scalar(name, value):
            yield _unconverted_scalar(expected, named, value)


def _unconverted_scalar(expected: Scalar, named: str, value: Any) -> str:
    name, kind = expected.name, kind_of(value)
    if why := _misread(name, value):
        return f"error decoding from json: {why}" if name == "bytes" else why
    if name == "bytes":
        return f"cannot restore slice from {kind}"
    if wanted := READ_AS.get(name):
        return not_unmarshalled(value, wanted)
    # Go converts an integer to a text, a character; that is no conversion of JSON's.
    if kind in CONVERTIBLE.get(name, ()):
        return f"cannot convert {kind} to {go_type(expected, named)}"
    return f"unrecognized type: {go_type(expected)}"


def _not_base64(text: str) -> int | None:
    """Return where Go stops reading a text as base64; None: it is base64."""
    text = text.replace("\r", "").replace("\n", "")
    if re.fullmatch(BASE64, text):
        return None
    wrong = re.search("[^A-Za-z0-9+/]", text)
    return wrong.start() if wrong and text[wrong.start()] != "=" else len(text) // 4 * 4


def _is_too_long(value: Any, scalar: str) -> bool:
    """Tell whether a number does not fit the bits that the API has for it."""
    half = 1 << (BITS.get(scalar, 64) - 1)
    return isinstance(value, int) and not -half <= value < half


def json_type(value: Any) -> str:
    """Return what Go calls the type of a JSON value."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def go_type(expected: Type, named: str = "") -> str:
    """Return what Go calls the type of a field, where *named* is a name of its own."""
    match expected:
        case Schema():
            return expected.go_name
        case ListOf(item):
            return f"[]{go_type(item, named)}"
        case MapOf(value):
            return named or f"map[string]{go_type(value)}"
        case Scalar(name):
            return named or GO_NAMES.get(name, name)
