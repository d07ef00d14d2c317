"""The rules of custom resources of one version (``registry/customresource``)."""

from collections.abc import Callable
from typing import Final

from berth.cluster.custom import defaulting, list_types, rules, validation
from berth.cluster.custom.embedded import validate_embedded
from berth.cluster.custom.validation import ABSENT, NO_PATH
from berth.cluster.custom.walk import Schema
from berth.cluster.resources import Object, ScalePaths, Strategy
from berth.cluster.strategies import metadata
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
"""Errors after which rules are not asked: they may rely on the value being of its type and size."""

UNCHECKED: Final = FieldError(
    NO_PATH,
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)

OF_MAIN_RESOURCE: Final = ("annotations", "finalizers", "labels", "ownerReferences")
"""Metadata that a write to the status leaves alone."""

MAX_INT32: Final = 2**31 - 1


def strategy_of(
    schema: Schema, *, namespaced: bool, status: bool, scale: ScalePaths | None
) -> Strategy:
    """Return the strategy of the objects that *schema* describes.

    With *status* they have the status subresource: a create drops it, and its changes do not count
    in ``metadata.generation``.
    """
    ask_rules = rules.evaluator(schema)

    def validate(new: Object, old: Object | None) -> list[FieldError]:
        before = ABSENT if old is None else old
        errors = []
        if old is None:
            errors = metadata.validate(new["metadata"], namespaced=namespaced, plain=True)
        errors += validation.validate(schema, new, before)
        errors += _check_scale(scale, new)
        errors += validate_embedded(schema, new)
        errors += list_types.duplicates(schema, new, before)
        if any(error.reason in BLOCKING for error in errors):
            return [*errors, UNCHECKED] if rules.exist(schema) else errors
        return errors + ask_rules(new, old)

    def prepare(new: Object, old: Object | None) -> None:
        changed = old is not None and _wanted(new, status) != _wanted(old, status)
        metadata.set_generation(new, old, changed=changed)

    return Strategy(
        default=_defaults(schema),
        prepare=prepare,
        validate=validate,
        validate_status=validate,
        keeps_status_on_create=not status,
        kept_by_status=OF_MAIN_RESOURCE,
    )


def _defaults(schema: Schema) -> Callable[[Object], None]:
    return lambda obj: defaulting.default(schema, obj)


def _wanted(obj: Object, status: bool) -> Object:
    ignored = {"metadata", "status"} if status else {"metadata"}
    return {key: value for key, value in obj.items() if key not in ignored}


def _check_scale(scale: ScalePaths | None, obj: Object) -> list[FieldError]:
    if scale is None:
        return []
    found = []
    for path in (scale.replicas, scale.status_replicas):
        value = path.first(obj)
        if isinstance(value, int) and not isinstance(value, bool):
            if value < 0:
                found.append(
                    field_errors.invalid(path.text, value, "should be a non-negative integer")
                )
            elif value > MAX_INT32:
                found.append(
                    field_errors.invalid(
                        path.text, value, f"should be less than or equal to {MAX_INT32}"
                    )
                )
    return found
