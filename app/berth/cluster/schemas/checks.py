"""Checks of a body against its schema: wrong types, unknown fields, misplaced nulls."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from berth.cluster.go_text import kind_of, time_error
from berth.cluster.schemas.structs import BASE64, TIME, struct_type
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

PLAIN = frozenset({"boolean", "int32", "int64", "number", "string"})
"""Scalars that Go has itself."""

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


class Misfit(NamedTuple):
    """What is wrong with the JSON type of a value, in the words of the API server."""

    json: str
    """Decoded into Go structs: ``json: cannot unmarshal number into Go struct field
    EnvVar.spec.containers.env.value of type string``."""
    unstructured: str
    """Converted to them after a strategic merge: ``unrecognized type: string``."""


def misfit(schema: Schema, obj: Any) -> Misfit | None:
    """Return what is wrong with the first value that does not fit its field; None: all fit."""
    return next(_misfits(schema, obj, "", ""), None)


def _misfits(expected: Type, value: Any, owner: str, path: str) -> Iterator[Misfit]:
    if value is None:
        return
    match expected:
        case Schema() if isinstance(value, dict):
            for key, child in value.items():
                if key in expected.fields:
                    child_path = f"{path}.{key}" if path else key
                    field = expected.fields[key]
                    yield from _misfits(field.type, child, expected.short_name, child_path)
        case ListOf(item) if isinstance(value, list):
            for child in value:
                yield from _misfits(item, child, owner, path)
        case MapOf(item) if isinstance(value, dict):
            for child in value.values():
                yield from _misfits(item, child, owner, path)
        case Scalar(name) if name in TIMES and isinstance(value, str):
            if not _is_time(value):
                why = time_error(value[:100])
                yield Misfit(why, why)
        case Scalar("Quantity") if isinstance(value, str):
            if NOTATION.fullmatch(value) is None or len(value) > LONGEST:
                yield Misfit(MALFORMED, MALFORMED)
        case Scalar("bytes") if isinstance(value, str):
            if (at := _not_base64(value)) is not None:
                why = f"illegal base64 data at input byte {at}"
                yield Misfit(why, why)
        case Scalar(name) if name in ANYTHING:
            pass
        case Scalar(name) if type(value) in JSON_TYPES[name] and not _is_too_long(value, name):
            pass
        case _:
            where = f"struct field {owner}.{path}" if path else "value"
            found, wanted = json_type(value), go_type(expected)
            if type(value) is int and isinstance(expected, Scalar) and wanted.startswith("int"):
                found = f"number {value}"
            why = f"json: cannot unmarshal {found} into Go {where} of type {wanted}"
            yield Misfit(why, _unrestored(expected, value, why))


def _unrestored(expected: Type, value: Any, why: str) -> str:
    match expected:
        case Schema():
            return f"cannot restore struct from: {kind_of(value)}"
        case ListOf():
            return f"cannot restore slice from {kind_of(value)}"
        case MapOf():
            return f"cannot restore map from {kind_of(value)}"
    # Quantities and the like decode themselves.
    return f"unrecognized type: {go_type(expected)}" if expected.name in PLAIN else why


def _not_base64(text: str) -> int | None:
    """Return where Go stops reading a text as base64; None: it is base64."""
    text = text.replace("\r", "").replace("\n", "")
    if re.fullmatch(BASE64, text):
        return None
    wrong = re.search("[^A-Za-z0-9+/]", text)
    return wrong.start() if wrong and text[wrong.start()] != "=" else len(text) // 4 * 4


def _is_time(text: str) -> bool:
    try:
        msgspec.convert(text, TIME)
    except msgspec.ValidationError:
        return False
    return True


def _is_too_long(value: Any, scalar: str) -> bool:
    """Tell whether a number does not fit the bits that the API has for it."""
    half = 1 << (BITS.get(scalar, 64) - 1)
    return isinstance(value, int) and not -half <= value < half


def json_type(value: Any) -> str:
    """Return what Go calls the type of a JSON value."""
    match value:
        case bool():
            return "bool"
        case int():
            return "number"
        case float():
            return f"number {value}"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def go_type(expected: Type) -> str:
    """Return what Go calls the type of a field."""
    match expected:
        case Schema():
            return expected.go_name
        case ListOf(item):
            return f"[]{go_type(item)}"
        case MapOf(value):
            return f"map[string]{go_type(value)}"
        case Scalar(name):
            return GO_NAMES.get(name, name)
