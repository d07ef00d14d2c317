"""Validation of values against structural schemas, in the words of the API server.

Sources: ``kube-openapi/pkg/validation/validate``, whose errors
``apiextensions-apiserver/pkg/apiserver/validation`` turns into field errors.

An update is evaluated where it changes something: what is equal to what was there before passes
(KEP-4008, CRD validation ratcheting). Items of a list are compared with their predecessors by their
keys, where the list has such.
"""

import json
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from berth.cluster.custom.formats import FORMATS
from berth.cluster.custom.walk import (
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    Schema,
    child,
    field_of,
    items,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

ABSENT: Final = object()
"""In the place of a value from before: there is none, or none that corresponds."""

NO_PATH: Final = "<nil>"
"""How the API server writes that an error is about no field."""

BITS: Final = {"int32": 32, "int64": 64}


def validate(
    schema: Schema, value: Any, before: Any = ABSENT, *, path: str = ""
) -> list[FieldError]:
    """Return what is wrong with *value*, which may have been *before* until now."""
    return list(_validate(schema, value, before, path))


def type_of(value: Any) -> str:
    """Return what OpenAPI calls the type of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def predecessors(schema: Schema, before: Any) -> dict[tuple[str, ...], Any]:
    """Return the items of a list with keys, as it was before, by their keys."""
    if schema.get(LIST_TYPE) != "map" or not isinstance(before, list):
        return {}
    keys = schema.get(LIST_KEYS) or ()
    return {keys_of(item, keys): item for item in before if isinstance(item, dict)}


def keys_of(item: Any, keys: Sequence[str]) -> tuple[str, ...]:
    """Return what identifies an item of a list with keys: comparable, whatever it is."""
    if not isinstance(item, dict):
        return ()
    return tuple(json.dumps(item.get(key), sort_keys=True) for key in keys)


@lru_cache(maxsize=4096)
def pattern(text: str) -> Any:
    """Return a compiled pattern; ValueError with RE2's complaint when it is none."""
    import re2  # loaded with the first pattern

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as exc:
        said = exc.args[0] if exc.args else exc
        raise ValueError(said.decode() if isinstance(said, bytes) else str(said)) from exc


def _validate(schema: Schema, value: Any, before: Any, path: str) -> Iterator[FieldError]:
    if before is not ABSENT and before == value and type(before) is type(value):
        return
    if value is None and schema.get("nullable"):
        return
    misfit = _wrong_type(schema, value, path)
    if misfit is not None:
        yield misfit
        return
    yield from _composed(schema, value, path)
    match value:
        case bool() | None:
            pass
        case int() | float():
            yield from _number(schema, value, path)
        case str():
            yield from _string(schema, value, path)
        case list():
            yield from _list(schema, value, before, path)
        case dict():
            yield from _object(schema, value, before, path)
    enum = schema.get("enum")
    if enum and not any(each == value and type(each) is type(value) for each in enum):
        allowed = [each if isinstance(each, str) else _json(each) for each in enum]
        yield _not_supported(path, value, allowed)


def _wrong_type(schema: Schema, value: Any, path: str) -> FieldError | None:
    found, wanted = type_of(value), schema.get("type")
    if wanted is None:
        if not schema.get(INT_OR_STRING) or found in ("integer", "string"):
            return None
        wanted = "integer,string"
    elif found == wanted or (found == "integer" and wanted == "number"):
        return _wrong_format(schema, value, path)
    if found == "null" and schema.get("nullable"):
        return None
    return FieldError(
        path or NO_PATH,
        "FieldValueTypeInvalid",
        f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"',
    )


def _wrong_format(schema: Schema, value: Any, path: str) -> FieldError | None:
    name = schema.get("format")
    if not name:
        return None
    if isinstance(value, str):
        check = FORMATS.get(name.replace("_", "-"))
        fits = check is None or schema.get("type") != "string" or check(value)
    else:
        bits = BITS.get(name)
        fits = bits is None or isinstance(value, bool) or -(1 << bits - 1) <= value < 1 << bits - 1
    if fits:
        return None
    said = field_errors.quoted(value)
    return FieldError(
        path or NO_PATH,
        "FieldValueTypeInvalid",
        f"Invalid value: {said}: {path} in body must be of type {name}: {_json(str(value))}",
    )


def _number(schema: Schema, value: float, path: str) -> Iterator[FieldError]:
    multiple = schema.get("multipleOf")
    if multiple and not _is_multiple(value, multiple):
        yield _invalid(path, value, f"should be a multiple of {_go(multiple)}")
    low, high = schema.get("minimum"), schema.get("maximum")
    if high is not None:
        if schema.get("exclusiveMaximum"):
            if value >= high:
                yield _invalid(path, value, f"should be less than {_go(high)}")
        elif value > high:
            yield _invalid(path, value, f"should be less than or equal to {_go(high)}")
    if low is not None:
        if schema.get("exclusiveMinimum"):
            if value <= low:
                yield _invalid(path, value, f"should be greater than {_go(low)}")
        elif value < low:
            yield _invalid(path, value, f"should be greater than or equal to {_go(low)}")


def _is_multiple(value: float, of: float) -> bool:
    try:
        quotient = value / of
    except OverflowError:
        return False
    return math.isfinite(quotient) and math.isclose(
        quotient, round(quotient), rel_tol=0, abs_tol=1e-9
    )


def _string(schema: Schema, value: str, path: str) -> Iterator[FieldError]:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if longest is not None and len(value) > longest:
        yield field_errors.too_long(path, longest)
    if shortest is not None and len(value) < shortest:
        yield _invalid(path, value, f"should be at least {shortest} chars long")
    expression = schema.get("pattern")
    if expression and pattern(expression).search(value) is None:
        yield _invalid(path, value, f"should match '{expression}'")


def _list(schema: Schema, value: list[Any], before: Any, path: str) -> Iterator[FieldError]:
    below = items(schema)
    if below is not None:
        old = predecessors(schema, before)
        keys = schema.get(LIST_KEYS) or ()
        for index, item in enumerate(value):
            was = old.get(keys_of(item, keys), ABSENT) if old else ABSENT
            yield from _validate(below, item, was, f"{path}[{index}]")
    fewest, most = schema.get("minItems"), schema.get("maxItems")
    if fewest is not None and len(value) < fewest:
        yield _invalid(path, len(value), f"should have at least {fewest} items")
    if most is not None and len(value) > most:
        yield field_errors.too_many(path, len(value), most)
    if schema.get("uniqueItems") and len({_json(item) for item in value}) < len(value):
        yield _invalid(path, value, "shouldn't contain duplicates")


def _object(schema: Schema, value: dict[str, Any], before: Any, path: str) -> Iterator[FieldError]:
    fewest, most = schema.get("minProperties"), schema.get("maxProperties")
    if fewest is not None and len(value) < fewest:
        yield _invalid(path, len(value), f"should have at least {fewest} properties")
    if most is not None and len(value) > most:
        yield field_errors.too_many(path, len(value), most)
    for name in schema.get("required") or ():
        if name not in value:
            yield field_errors.required(child(path, name))
    if "properties" not in schema and "additionalProperties" not in schema:
        return
    was = before if isinstance(before, dict) else {}
    for key, item in value.items():
        below = field_of(schema, key)
        if below is not None:
            yield from _validate(below, item, was.get(key, ABSENT), child(path, key))


def _composed(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    """Evaluate ``allOf``, ``anyOf``, ``oneOf`` and ``not``."""
    if options := schema.get("anyOf"):
        found = [validate(option, value, path=path) for option in options]
        if all(found):
            yield _unmet(path, "must validate at least one schema (anyOf)")
            yield from min(found, key=len)
    if options := schema.get("oneOf"):
        found = [validate(option, value, path=path) for option in options]
        fitting = sum(not each for each in found)
        if fitting != 1:
            said = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
            yield _unmet(path, f"must validate one and only one schema (oneOf). {said}")
            if not fitting:
                yield from min(found, key=len)
    if options := schema.get("allOf"):
        found = [validate(option, value, path=path) for option in options]
        if any(found):
            none = "" if not all(found) else ". None validated"
            yield _unmet(path, f"must validate all the schemas (allOf){none}")
            for each in found:
                yield from each
    refused = schema.get("not")
    if refused is not None and not validate(refused, value, path=path):
        yield _unmet(path, "must not validate the schema (not)")


def _unmet(path: str, text: str) -> FieldError:
    return FieldError(NO_PATH, "FieldValueInvalid", f'Invalid value: "": "{path}" {text}')


def _invalid(path: str, value: Any, text: str) -> FieldError:
    return field_errors.invalid(path, value, f"{path} in body {text}")


def _not_supported(path: str, value: Any, allowed: list[str]) -> FieldError:
    listed = ", ".join(_json(each) for each in allowed)
    message = f"Unsupported value: {_json(value)}: supported values: {listed}"
    return FieldError(path, "FieldValueNotSupported", message)


def _go(number: float) -> str:
    """Write a number as Go's ``%v`` does."""
    return str(int(number)) if abs(number) < 1e21 and number == int(number) else str(number)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
