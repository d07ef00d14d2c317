"""Kinds whose rules are few: metadata, defaults, and parts of ``spec`` that stay as they are."""

from collections.abc import Callable, Iterable
from typing import Any

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, syntax
from berth.cluster.strategies.metadata import AnyObject, ObjectMeta
from berth.cluster.strategies.shape import Shape, section, validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Default = Callable[[Object], None]
Check = Callable[[Object], list[FieldError]]
Update = Callable[[Object, Object], list[FieldError]]


class WithSpec(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: dict[str, Any] | None = None


def _nothing(_part: Object) -> None:
    """No defaults."""


def _anything(_spec: Object) -> list[FieldError]:
    return []


def _any_change(_new: Object, _old: Object) -> list[FieldError]:
    return []


def of_spec(
    *,
    namespaced: bool,
    default: Default = _nothing,
    check: Check = _anything,
    check_update: Update = _any_change,
    status: Object | None = None,
    generation: bool = False,
    name: syntax.Rule = syntax.dns1123_subdomain,
) -> Strategy:
    """Return the strategy of a kind with a spec, which *default* fills in and *check* evaluates.

    *status* is that of a new object. With *generation* the server counts the changes of the spec.
    """

    def fill(obj: Object) -> None:
        default(section(obj, "spec"))

    def default_all(obj: Object) -> None:
        fill(obj)

    def prepare(new: Object, old: Object | None) -> None:
        if generation:
            changed = old is not None and new.get("spec") != old.get("spec")
            metadata.set_generation(new, old, changed=changed)

    def validate(new: WithSpec, old: WithSpec | None) -> list[FieldError]:
        before = old.metadata if old else None
        errors = metadata.validate(new.metadata, before, namespaced=namespaced, name=name)
        errors += check(new.spec or {})
        return errors + (check_update(new.spec or {}, old.spec or {}) if old else [])

    return Strategy(
        default=default_all,
        prepare=prepare,
        validate=validated(WithSpec, validate),
        initial_status=lambda _obj: None if status is None else {**status},
    )


def without_spec(
    *, namespaced: bool, default: Default = _nothing, required: Iterable[str] = ()
) -> Strategy:
    """Return the strategy of a kind whose fields are at the top; *required* may not be empty."""

    def fill(obj: Object) -> None:
        default(obj)

    def default_all(obj: Object) -> None:
        fill(obj)

    _validate_metadata = validated(
        AnyObject,
        lambda new, old: metadata.validate(
            new.metadata, old.metadata if old else None, namespaced=namespaced
        ),
    )

    def validate(new: Object, old: Object | None) -> list[FieldError]:
        missing = [field_errors.required(field) for field in required if not new.get(field)]
        return _validate_metadata(new, old) + missing

    return Strategy(default=default_all, validate=validate)


def immutable(new: Object, old: Object) -> list[FieldError]:
    """Refuse every change of the spec."""
    if new == old:
        return []
    return [field_errors.invalid("spec", new, "field is immutable")]
