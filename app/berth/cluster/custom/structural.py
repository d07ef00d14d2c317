"""Structural schemas (``schema/validation.go``, ``schema/convert.go``; KEP-1002).

Every field says its type outside of ``allOf``, ``anyOf``, ``oneOf`` and ``not``; within them only
its values are restricted.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from berth.cluster.custom import defaulting, pruning, validation
from berth.cluster.custom.rule_validation import validate_rules
from berth.cluster.custom.walk import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVES,
    RULES,
    Schema,
    properties,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
EITHER: Final = [{"type": "integer"}, {"type": "string"}]
"""What ``anyOf`` may say beside ``x-kubernetes-int-or-string``."""

NOT_SUPPORTED: Final = (
    "$ref",
    "additionalItems",
    "definitions",
    "dependencies",
    "id",
    "patternProperties",
)

NESTED_EMPTY: Final = ("type", "title", "description", LIST_KEYS, RULES)
NESTED_UNDEFINED: Final = ("additionalProperties", "default", "externalDocs", LIST_TYPE, MAP_TYPE)
NESTED_FALSE: Final = ("nullable", PRESERVES, EMBEDDED, INT_OR_STRING)
"""What must not be said within ``allOf``, ``anyOf``, ``oneOf`` and ``not``."""


class Level(Enum):
    """Where a schema stands, as messages about its type say it."""

    ROOT = "must not be empty at the root"
    ITEM = "must not be empty for specified array items"
    FIELD = "must not be empty for specified object fields"


def validate(schema: Schema, path: str) -> list[FieldError]:
    """Return what is wrong with the schema at *path* of its definition."""
    found = list(_validate(schema, path, Level.ROOT))
    # What is not structural cannot be pruned by, and has no values to evaluate.
    return found or [*_check_defaults(schema, path, is_object=True), *validate_rules(schema, path)]


def _validate(schema: Schema, path: str, level: Level) -> Iterator[FieldError]:
    yield from _check_type(schema, path, level)
    yield from _check_forbidden(schema, path)
    yield from _check_extensions(schema, path)
    yield from _check_list_type(schema, path)
    if level is Level.ROOT or schema.get(EMBEDDED):
        yield from _check_object_fields(schema, path, is_root=level is Level.ROOT)
    for key, below in properties(schema).items():
        yield from _validate(below, f"{path}.properties[{key}]", Level.FIELD)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        yield from _validate(others, f"{path}.additionalProperties", Level.FIELD)
    item = schema.get("items")
    if isinstance(item, dict):
        yield from _validate(item, f"{path}.items", Level.ITEM)
    yield from _check_values(schema, path, schema, exempt=bool(schema.get(INT_OR_STRING)))


def _check_type(schema: Schema, path: str, level: Level) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    here = f"{path}.type"
    if kind == "null":
        yield field_errors.forbidden(
            here, "type cannot be set to null, use nullable as an alternative"
        )
    elif kind and kind not in TYPES:
        yield field_errors.not_supported(here, kind, TYPES)
    if schema.get(EMBEDDED):
        text = "must be object if x-kubernetes-embedded-resource is true"
        if not kind:
            yield field_errors.required(here, text)
        elif kind != "object":
            yield field_errors.invalid(here, kind, text)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVES):
        yield field_errors.required(here, level.value)
    if level is Level.ROOT and kind and kind != "object":
        yield field_errors.invalid(here, kind, "must be object at the root")
    if kind and schema.get(INT_OR_STRING):
        yield field_errors.invalid(
            here, kind, "must be empty if x-kubernetes-int-or-string is true"
        )
    if kind == "array" and schema.get("items") is None:
        yield field_errors.required(f"{path}.items", "must be specified")
    if isinstance(schema.get("items"), list):
        yield field_errors.forbidden(
            f"{path}.items", "items must be a schema object and not an array"
        )


def _check_forbidden(schema: Schema, path: str) -> Iterator[FieldError]:
    for key in NOT_SUPPORTED:
        if schema.get(key):
            yield field_errors.forbidden(f"{path}.{key}", f"{key} is not supported")
    if schema.get("uniqueItems"):
        yield field_errors.forbidden(
            f"{path}.uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        )
    others = schema.get("additionalProperties")
    if others is None:
        return
    here = f"{path}.additionalProperties"
    if properties(schema) and others is not True:
        yield field_errors.forbidden(
            here, "additionalProperties and properties are mutual exclusive"
        )
    elif others is False:
        yield field_errors.forbidden(here, "additionalProperties cannot be set to false")
    if path.endswith(".openAPIV3Schema"):
        yield field_errors.forbidden(here, "must not be used at the root")
    if schema.get(EMBEDDED):
        yield field_errors.forbidden(
            here, "must not be used if x-kubernetes-embedded-resource is set"
        )


def _check_extensions(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get(PRESERVES) is False:
        # Truth is all that the field can say.
        yield field_errors.invalid(
            f"{path}.{PRESERVES}", value=False, detail="must be true or undefined"
        )
    if schema.get(INT_OR_STRING):
        for key in (PRESERVES, EMBEDDED):
            if schema.get(key):
                text = "must be false if x-kubernetes-int-or-string is true"
                yield field_errors.invalid(f"{path}.{key}", value=True, detail=text)
    if schema.get(EMBEDDED) and not schema.get(PRESERVES) and not properties(schema):
        yield field_errors.required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields",
        )
    kind = schema.get(MAP_TYPE)
    if kind is not None:
        if kind not in ("atomic", "granular"):
            yield field_errors.not_supported(f"{path}.{MAP_TYPE}", kind, ("atomic", "granular"))
        if schema.get("type") != "object":
            yield field_errors.invalid(
                f"{path}.type",
                schema.get("type") or "",
                "must be object if x-kubernetes-map-type is specified",
            )


def _check_list_type(schema: Schema, path: str) -> Iterator[FieldError]:
    kind, keys = schema.get(LIST_TYPE), schema.get(LIST_KEYS) or []
    if keys and kind != "map":
        where = f"{path}.{LIST_TYPE}"
        if kind is None:
            yield field_errors.required(
                where, "must be map if x-kubernetes-list-map-keys is non-empty"
            )
        else:
            yield field_errors.invalid(
                where, kind, "must be map if x-kubernetes-list-map-keys is non-empty"
            )
    if kind is None:
        return
    if kind not in ("atomic", "set", "map"):
        yield field_errors.not_supported(f"{path}.{LIST_TYPE}", kind, ("atomic", "map", "set"))
    if schema.get("type") != "array":
        yield field_errors.invalid(
            f"{path}.type",
            schema.get("type") or "",
            "must be array if x-kubernetes-list-type is specified",
        )
        return
    item = schema.get("items")
    if not isinstance(item, dict):
        return
    if kind == "set":
        yield from _check_set_item(item, f"{path}.items")
    if kind != "map":
        return
    if not keys:
        yield field_errors.required(
            f"{path}.{LIST_KEYS}", "must not be empty if x-kubernetes-list-type is map"
        )
    if item.get("type") != "object":
        yield field_errors.invalid(
            f"{path}.items.type",
            item.get("type") or "",
            "must be object if parent array's x-kubernetes-list-type is map",
        )
    fields, required = properties(item), item.get("required") or ()
    for index, key in enumerate(keys):
        below = fields.get(key)
        if below is None:
            yield field_errors.invalid(
                f"{path}.{LIST_KEYS}[{index}]", key, "entries must all be names of item properties"
            )
            continue
        here = f"{path}.items.properties[{key}]"
        if below.get("type") in ("array", "object"):
            yield field_errors.invalid(
                f"{here}.type",
                below["type"],
                "must be a scalar type if parent array's x-kubernetes-list-type is map",
            )
        if below.get("nullable"):
            yield field_errors.forbidden(
                f"{here}.nullable",
                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            )
        if key not in required and below.get("default") is None:
            yield field_errors.required(
                f"{here}.default",
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
                "required property",
            )


def _check_set_item(item: Schema, path: str) -> Iterator[FieldError]:
    if item.get("nullable"):
        yield field_errors.forbidden(
            f"{path}.nullable", "cannot be nullable when x-kubernetes-list-type is set"
        )
    if item.get("type") == "object" and item.get(MAP_TYPE) != "atomic":
        yield field_errors.invalid(
            f"{path}.{MAP_TYPE}",
            item.get(MAP_TYPE) or "",
            "must be atomic as item of a list with x-kubernetes-list-type=set",
        )
    if item.get("type") == "array" and item.get(LIST_TYPE) not in (None, "atomic"):
        yield field_errors.invalid(
            f"{path}.{LIST_TYPE}",
            item[LIST_TYPE],
            "must be atomic as item of a list with x-kubernetes-list-type=set",
        )


def _check_object_fields(schema: Schema, path: str, *, is_root: bool) -> Iterator[FieldError]:
    """Evaluate what is said of the fields that every object has."""
    fields = properties(schema)
    for key in ("kind", "apiVersion"):
        if key in fields and fields[key].get("type") != "string":
            yield field_errors.invalid(
                f"{path}.properties[{key}].type", fields[key].get("type") or "", "must be string"
            )
    metadata = fields.get("metadata")
    if metadata is None:
        return
    here = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        yield field_errors.invalid(f"{here}.type", metadata.get("type") or "", "must be object")
    others = {key for key in metadata if key not in ("type", "description", "properties")}
    if is_root and (others or not set(properties(metadata)) <= {"name", "generateName"}):
        yield field_errors.forbidden(
            here,
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified",
        )


def _check_values(
    schema: Schema, path: str, outer: Schema, *, exempt: bool = False
) -> Iterator[FieldError]:
    """Evaluate the restrictions of values; *outer* is what the structure says at the same place."""
    pattern = schema.get("pattern")
    if pattern:
        try:
            validation.pattern(pattern)
        except ValueError as exc:
            text = f"must be a valid regular expression, but isn't: {exc}"
            yield field_errors.invalid(f"{path}.pattern", pattern, text)
    for key in ("allOf", "anyOf", "oneOf"):
        if exempt and key == "anyOf" and schema.get(key) == EITHER:
            continue
        for index, each in enumerate(schema.get(key) or ()):
            is_first = exempt and key == "allOf" and index == 0
            yield from _check_nested(each, f"{path}.{key}[{index}]", outer, exempt=is_first)
    if isinstance(schema.get("not"), dict):
        yield from _check_nested(schema["not"], f"{path}.not", outer)


def _check_nested(
    schema: Schema, path: str, outer: Schema, *, exempt: bool = False
) -> Iterator[FieldError]:
    for keys, text in (
        (NESTED_EMPTY, "must be empty to be structural"),
        (NESTED_FALSE, "must be false to be structural"),
    ):
        for key in keys:
            if schema.get(key):
                yield field_errors.forbidden(f"{path}.{key}", text)
    for key in NESTED_UNDEFINED:
        if schema.get(key) is not None:
            yield field_errors.forbidden(f"{path}.{key}", "must be undefined to be structural")
    yield from _check_values(schema, path, outer, exempt=exempt)
    for key, below in properties(schema).items():
        here = f"{path}.properties[{key}]"
        if key == "metadata":
            yield field_errors.forbidden(here, "must not be specified in a nested context")
        specified = properties(outer).get(key)
        if specified is None:
            place = _place(path)
            yield field_errors.required(
                f"{place}.properties[{key}]", f"because it is defined in {here}"
            )
        else:
            yield from _check_nested(below, here, specified)
    item = schema.get("items")
    if isinstance(item, dict):
        specified = outer.get("items")
        if not isinstance(specified, dict):
            yield field_errors.required(
                f"{_place(path)}.items", f"because it is defined in {path}.items"
            )
        else:
            yield from _check_nested(item, f"{path}.items", specified)


def _place(path: str) -> str:
    """Return where the structure stands that a nested restriction is of."""
    steps = path.split(".")
    return ".".join(
        step for step in steps if step.partition("[")[0] not in ("allOf", "anyOf", "oneOf", "not")
    )


def _check_defaults(schema: Schema, path: str, *, is_object: bool = False) -> Iterator[FieldError]:
    """Evaluate each default by the schema it is the default of."""
    value: Any = schema.get("default")
    if value is not None:
        here = f"{path}.default"
        wrapped = {"default": defaulting.copied(value)}
        outer = {"type": "object", "properties": {"default": schema}}
        unknown = pruning.prune(outer, wrapped)
        if unknown:
            yield field_errors.invalid(here, value, "must not have unknown fields")
        defaulting.default(outer, wrapped)
        for each in validation.validate(schema, wrapped["default"], path="default"):
            where = here + each.field.removeprefix("default")
            yield FieldError(where, each.reason, each.message.replace(": default", f": {here}", 1))
    for key, below in properties(schema).items():
        if not (is_object and key == "metadata"):
            yield from _check_defaults(below, f"{path}.properties[{key}]")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _check_defaults(schema[key], f"{path}.{key}")
