"""Rules that the schema says: defaults and enums, for kinds that need few others."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import cache
from typing import Any

from berth.cluster.resources import Object, Strategy
from berth.cluster.schemas.go_value import go_value
from berth.cluster.schemas.types import Field, Schema, object_of, objects_in
from berth.cluster.strategies import metadata, syntax
from berth.cluster.strategies.constraint_table import CONSTRAINTS
from berth.cluster.strategies.metadata import AnyObject
from berth.cluster.strategies.shape import validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Default = Callable[[Object], None]
Check = Callable[[Object], list[FieldError]]
Update = Callable[[Object, Object], list[FieldError]]


def _nothing(_obj: Object) -> None:
    """No defaults beyond those of the schema."""


def _anything(_obj: Object) -> list[FieldError]:
    return []


def _any_change(_new: Object, _old: Object) -> list[FieldError]:
    return []


def of_schema(
    schema: Schema,
    *,
    namespaced: bool,
    default: Default = _nothing,
    prepare: Callable[[Object, Object | None], None] | None = None,
    check: Check = _anything,
    check_create: Check = _anything,
    check_update: Update = _any_change,
    check_status: Update = _any_change,
    immutable: Iterable[str] = (),
    generation: bool = False,
    status: bool | Object | Callable[[Object], Object] = False,
    immutable_first: bool = False,
    name: syntax.Rule = syntax.dns1123_subdomain,
    plain: bool = False,
) -> Strategy:
    """Return the strategy of a kind.

    *default* fills in what the schema does not say, *check* evaluates the object after that,
    *check_create* a new one besides, *check_update* what becomes of it, and *check_status* what
    becomes of its status. *immutable* are paths that stay as they are. With *generation* the server
    counts the changes of what is wanted; with *status* a new object has that one, or what it makes
    of the object, or an empty one.
    With *immutable_first* what may not change is told first. *name* and *plain* are for
    :func:`.metadata.validate`.
    """

    spec = schema.fields.get("spec")
    has_spec = spec is not None and spec.zero == {}

    def default_all(obj: Object) -> None:
        if has_spec and obj.get("spec") is None:
            obj["spec"] = {}
        fill_defaults(schema, obj)
        default(obj)

    def prepare_all(new: Object, old: Object | None) -> None:
        if generation:
            changed = old is not None and _wanted(new) != _wanted(old)
            metadata.set_generation(new, old, changed=changed)
        if prepare is not None:
            prepare(new, old)

    def validate_metadata(new: AnyObject, old: AnyObject | None) -> list[FieldError]:
        before = old.metadata if old else None
        return metadata.validate(
            new.metadata, before, namespaced=namespaced, name=name, plain=plain
        )

    _validate_metadata = validated(AnyObject, validate_metadata)

    def validate(new: Object, old: Object | None) -> list[FieldError]:
        errors = _validate_metadata(new, old)
        if old is None:
            return [*errors, *evaluate(new), *check_create(new)]
        kept = [error for path in immutable for error in unchanged(new, old, path, schema=schema)]
        found = evaluate(new)
        in_order = kept + found if immutable_first else found + kept
        return [*errors, *in_order, *check_update(new, old)]

    def evaluate(obj: Object) -> list[FieldError]:
        wanted = {key: value for key, value in obj.items() if key != "status"}
        return [*CONSTRAINTS.violations(schema, wanted), *check(obj)]

    def validate_status(new: Object, old: Object | None) -> list[FieldError]:
        if old is None:
            return []
        reported = {"status": new.get("status")}
        return [*CONSTRAINTS.violations(schema, reported), *check_status(new, old)]

    def initial_status(obj: Object) -> Object | None:
        if callable(status):
            return status(obj)
        if isinstance(status, dict):
            return {**status}
        return {} if status else None

    return Strategy(
        default=default_all,
        prepare=prepare_all,
        validate=validate,
        validate_status=validate_status,
        initial_status=initial_status,
    )


def unchanged(
    new: Object, old: Object, path: str, *, blamed: str = "", schema: Schema | None = None
) -> list[FieldError]:
    """Refuse a change of the value at *path*, where *blamed* is its name if it is another.

    With the *schema* a whole spec is shown as Go has it.
    """
    if (value := _at(new, path)) == _at(old, path):
        return []
    if schema is not None and path == "spec":
        value = go_value(schema.fields[path].type, value)
    return [field_errors.invalid(blamed or path, value, "field is immutable")]


def _at(obj: Object, path: str) -> Any:
    """Return the value at a path; of what is not there, the empty text that Go would show."""
    value: Any = obj
    for name in path.split("."):
        value = (value or {}).get(name)
    return "" if value is None else value


def _wanted(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def fill_defaults(schema: Schema, obj: Object) -> None:
    """Give the missing fields of *obj*, and of what is in it, what the schema says."""
    for name, field in _with_defaults(schema).items():
        value = obj.get(name)
        if field.default is not None and (value is None or (field.by_value and not value)):
            obj[name] = deepcopy(field.default)
        elif value is not None:
            for below, child, _ in objects_in(field.type, value):
                fill_defaults(below, child)


@cache
def _with_defaults(schema: Schema) -> dict[str, Field]:
    """Return the fields of a type that have a default, or something in them has."""
    return _leading_to(schema, lambda field: field.default is not None)


def _leading_to(schema: Schema, wanted: Callable[[Field], bool]) -> dict[str, Field]:
    return {
        name: field
        for name, field in schema.fields.items()
        if wanted(field) or _leads_to(object_of(field.type), wanted, {schema})
    }


def _leads_to(schema: Schema | None, wanted: Callable[[Field], bool], seen: set[Schema]) -> bool:
    if schema is None or schema in seen:
        return False
    seen.add(schema)
    return any(
        wanted(field) or _leads_to(object_of(field.type), wanted, seen)
        for field in schema.fields.values()
    )
