"""Metadata: names, labels, annotations, owners, and what an update may not touch."""

from collections.abc import Mapping

from berth.cluster.resources import Object
from berth.cluster.strategies import syntax
from berth.cluster.strategies.shape import Int64, Shape, validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all annotations of an object together."""


class OwnerReference(Shape, frozen=True):
    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Shape, frozen=True):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    generation: Int64 | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None


NO_METADATA = ObjectMeta()


class AnyObject(Shape, frozen=True):
    """What every object has."""

    metadata: ObjectMeta | None = None


def validate(
    new: ObjectMeta | None,
    old: ObjectMeta | None,
    *,
    namespaced: bool = True,
    name: syntax.Rule = syntax.dns1123_subdomain,
) -> list[FieldError]:
    """Evaluate ``metadata`` on a create (*old* is None) or an update; *name* evaluates the name."""
    new = new or NO_METADATA
    if new == old:  # which was valid
        return []
    errors = _validate_name(new, name)
    if namespaced and not new.namespace:
        errors.append(field_errors.required("metadata.namespace"))
    elif not namespaced and new.namespace:
        errors.append(field_errors.forbidden("metadata.namespace", "not allowed on this type"))
    errors += validate_labels(new.labels, "metadata.labels")
    errors += validate_annotations(new.annotations, "metadata.annotations")
    errors += _validate_owners(new.owner_references or [])
    for finalizer in new.finalizers or []:
        errors += [
            field_errors.invalid("metadata.finalizers", finalizer, text)
            for text in syntax.qualified_name(finalizer)
        ]
    if {"orphan", "foregroundDeletion"} <= set(new.finalizers or ()):
        both = "finalizer orphan and finalizer foregroundDeletion cannot be both set"
        errors.append(field_errors.invalid("metadata.finalizers", new.finalizers, both))
    if old is not None:
        errors += _validate_update(new, old)
    return errors


def validate_status_write(new: Object, old: Object, *, namespaced: bool) -> list[FieldError]:
    """Evaluate the metadata of a write to the status; the name stays, so it needs no rule."""

    def check(after: AnyObject, before: AnyObject | None) -> list[FieldError]:
        was = before.metadata if before else None
        return validate(after.metadata, was, namespaced=namespaced, name=lambda _name: [])

    return validated(AnyObject, check)(new, old)


def validate_labels(labels: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Evaluate the labels of an object, a template, or a selector's ``matchLabels``."""
    errors = []
    for key, value in (labels or {}).items():
        errors += [field_errors.invalid(path, key, text) for text in syntax.qualified_name(key)]
        errors += [field_errors.invalid(path, value, text) for text in syntax.label_value(value)]
    return errors


def validate_annotations(annotations: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Evaluate annotations: qualified keys (case does not matter), not too much text in total."""
    errors = []
    total = 0
    for key, value in (annotations or {}).items():
        total += len(key.encode()) + len(value.encode())
        errors += [
            field_errors.invalid(path, key, text) for text in syntax.qualified_name(key.lower())
        ]
    if total > ANNOTATIONS_LIMIT:
        errors.append(field_errors.too_long(path, ANNOTATIONS_LIMIT))
    return errors


def set_generation(new: Object, old: Object | None, *, changed: bool) -> None:
    """Set ``metadata.generation``: 1 at birth, one more with every change of what is wanted.

    What the client sent for it does not count.
    """
    meta = new.setdefault("metadata", {})
    if old is None:
        meta["generation"] = 1
    else:
        generation = (old.get("metadata") or {}).get("generation") or 0
        meta["generation"] = generation + 1 if changed else generation


def _validate_name(meta: ObjectMeta, rule: syntax.Rule) -> list[FieldError]:
    if meta.name:
        return [field_errors.invalid("metadata.name", meta.name, text) for text in rule(meta.name)]
    if not meta.generate_name:
        return [field_errors.required("metadata.name", "name or generateName is required")]
    # The server appends characters, so a trailing dash is as good as a letter.
    prefix = meta.generate_name
    probe = prefix[:-1] + "a" if prefix.endswith("-") else prefix
    return [field_errors.invalid("metadata.generateName", prefix, text) for text in rule(probe)]


def _validate_owners(owners: list[OwnerReference]) -> list[FieldError]:
    path = "metadata.ownerReferences"
    errors = []
    for owner in owners:
        if not owner.api_version:
            errors.append(
                field_errors.invalid(f"{path}.apiVersion", "", "version must not be empty")
            )
        for field, value in (("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)):
            if not value:
                errors.append(field_errors.invalid(f"{path}.{field}", "", "must not be empty"))
    if sum(1 for owner in owners if owner.controller) > 1:
        errors.append(
            field_errors.invalid(
                path, owners, "Only one reference can have Controller set to true."
            )
        )
    return errors


def _validate_update(new: ObjectMeta, old: ObjectMeta) -> list[FieldError]:
    immutable = [
        ("name", new.name, old.name),
        ("namespace", new.namespace, old.namespace),
        ("uid", new.uid, old.uid),
    ]
    errors = [
        field_errors.invalid(f"metadata.{field}", after or "", "field is immutable")
        for field, after, before in immutable
        if after and before and after != before
    ]
    added = sorted(set(new.finalizers or []) - set(old.finalizers or []))
    if old.deletion_timestamp and added:
        listed = ", ".join(f'"{each}"' for each in added)
        why = (
            "no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}"
        )
        errors.append(field_errors.forbidden("metadata.finalizers", why))
    return errors
