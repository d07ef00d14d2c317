"""The strategy of a kind, from its schema and the tables of defaults and constraints."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from berth.cluster.resources import Object, Strategy
from berth.cluster.schemas.go_value import go_value
from berth.cluster.schemas.types import Scalar, Schema, object_of
from berth.cluster.strategies import metadata, syntax
from berth.cluster.strategies.constraint_table import CONSTRAINTS
from berth.cluster.strategies.constraints import Constraints
from berth.cluster.strategies.defaults import fill_defaults
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Default = Callable[[Object], None]
Check = Callable[[Object], Iterable[FieldError]]
Update = Callable[[Object, Object], Iterable[FieldError]]


def _nothing(_obj: Object) -> None:
    """No defaults beyond those of the tables."""


def _anything(_obj: Object) -> list[FieldError]:
    return []


def _any_change(_new: Object, _old: Object) -> list[FieldError]:
    return []


def _wanted(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


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
    generation: bool | Callable[[Object], Any] = False,
    status: bool | Object | Callable[[Object], Object] = False,
    immutable_first: bool = False,
    name: syntax.Rule = syntax.dns1123_subdomain,
    plain: bool = False,
    whole_first: bool = False,
    created_only: bool = False,
    blamed: Mapping[str, str] | None = None,
    before_others: tuple[str, ...] = (),
    constraints: Constraints = CONSTRAINTS,
    **more: Any,
) -> Strategy:
    """Return the strategy of a kind.

    *default* fills in what the tables do not say, *check* evaluates the object after that,
    *check_create* a new one besides, *check_update* what becomes of it, and *check_status* what
    becomes of its status. *immutable* are paths that stay as they are. With *generation* the server
    counts the changes of what is wanted, or of what it makes of the object; with *status* a new
    object has that one, or what it makes of the object, or an empty one.

    With *immutable_first* what may not change is told first, and with *whole_first* the object is
    evaluated before its metadata once more (:func:`.metadata.once_more`). With *created_only* the
    rules are for new objects. *blamed* are paths that upstream calls by another name, and where
    something is wrong with a path that begins like one of *before_others*, nothing else is told.
    *name* and *plain* are for :func:`.metadata.validate`, *more* is for :class:`Strategy`.
    """
    spec = schema.fields.get("spec")
    has_spec = spec is not None and spec.zero == {}
    counted = generation if callable(generation) else _wanted

    def default_all(obj: Object) -> None:
        if has_spec and obj.get("spec") is None:
            obj["spec"] = {}
        fill_defaults(schema, obj)
        default(obj)

    def prepare_all(new: Object, old: Object | None) -> None:
        if prepare is not None:
            prepare(new, old)
        if generation:
            changed = old is not None and counted(new) != counted(old)
            metadata.set_generation(new, old, changed=changed)

    def validate(new: Object, old: Object | None) -> list[FieldError]:
        found = validate_all(new, old)
        return [error for error in found if error.field.startswith(before_others)] or found

    def validate_all(new: Object, old: Object | None) -> list[FieldError]:
        if old is None:
            meta = new.get("metadata") or {}
            errors = metadata.validate(meta, namespaced=namespaced, name=name, plain=plain)
            return [*errors, *evaluate(new), *check_create(new)]
        meta = []
        if whole_first:
            meta = metadata.once_more(new["metadata"], old["metadata"], plain=plain)
        if _wanted(new) == _wanted(old):
            return [*meta, *check_update(new, old)]
        kept = [error for path in immutable for error in unchanged(new, old, path, schema=schema)]
        found = [] if created_only else evaluate(new)
        in_order = kept + found if immutable_first else found + meta + kept
        return [*in_order, *check_update(new, old)]

    def evaluate(obj: Object) -> list[FieldError]:
        kept = more.get("keeps_status_on_create")
        wanted = obj if kept else {key: obj[key] for key in obj if key != "status"}
        return [*_blaming(blamed, constraints.violations(schema, wanted)), *check(obj)]

    def validate_status(new: Object, old: Object | None) -> list[FieldError]:
        if old is None:
            return []
        reported = {"metadata": new.get("metadata"), "status": new.get("status")}
        return [*constraints.violations(schema, reported), *check_status(new, old)]

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
        **more,
    )


def _blaming(names: Mapping[str, str] | None, errors: list[FieldError]) -> list[FieldError]:
    for path, name in (names or {}).items():
        errors = [
            msgspec.structs.replace(error, field=error.field.replace(path, name, 1))
            if error.field.startswith(path)
            else error
            for error in errors
        ]
    return errors


def unchanged(
    new: Object, old: Object, path: str, *, blamed: str = "", schema: Schema | None = None
) -> list[FieldError]:
    """Refuse a change of the value at *path*, where *blamed* is its name if it is another.

    With the *schema* it is shown as Go has it.
    """
    if (value := _at(new, path)) == _at(old, path):
        return []
    if schema is not None:
        value = _shown(schema, path, value)
    return [field_errors.invalid(blamed or path, value, "field is immutable")]


def _shown(schema: Schema, path: str, value: Any) -> Any:
    """Return the value at a path as messages show it."""
    *above, last = path.split(".")
    for name in above:
        inner = object_of(schema.fields[name].type)
        if inner is None:
            return value
        schema = inner
    field = schema.fields[last]
    if value == "" and not isinstance(field.type, Scalar):
        return None
    return go_value(field.type, value)


def _at(obj: Object, path: str) -> Any:
    """Return the value at a path; of what is not there, the empty text that Go would show."""
    value: Any = obj
    for name in path.split("."):
        value = (value or {}).get(name)
    return "" if value is None else value
