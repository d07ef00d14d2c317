"""Metadata: names, labels, annotations, owners, and what an update may not touch."""

from collections.abc import Mapping
from typing import Final

from berth.cluster.resources import Object, ResourceType
from berth.cluster.strategies import syntax
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all annotations of an object together."""


STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})

PLAIN_GROUPS: Final = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
    }
)
"""Whose kinds have apimachinery's rules only, as custom resources: any finalizer is one."""


def validate(
    new: Object,
    *,
    namespaced: bool = True,
    name: syntax.Rule = syntax.dns1123_subdomain,
    plain: bool = False,
) -> list[FieldError]:
    """Evaluate ``metadata`` on a create; *name* evaluates the name.

    Updates are for :func:`validate_update`. *plain*: any finalizer is one.
    """
    errors = _validate_name(new, name)
    if namespaced and not new.get("namespace"):
        errors.append(field_errors.required("metadata.namespace"))
    elif not namespaced and new.get("namespace"):
        errors.append(field_errors.forbidden("metadata.namespace", "not allowed on this type"))
    errors += _told(new) + _finalizers(new)
    return errors if plain else errors + _standard_finalizers(new)


def validate_update(
    resource: ResourceType, new: Object, old: Object, *, of_status: bool = False
) -> list[FieldError]:
    """Evaluate the ``metadata`` of an update as often as Kubernetes does.

    First as ``rest.BeforeUpdate``, then as the kind's strategy, which has a rule of its own
    (``ResourceType.metadata_rule``): what is wrong is told each time.
    """
    if _is_same(new, old):  # which was valid
        return []
    told, finalizers, changes = _told(new), _finalizers(new), _changes(new, old)
    errors = told + finalizers + changes + told
    if resource.metadata_rule == "nothing":
        return errors
    is_plain = resource.structural is not None or resource.group in PLAIN_GROUPS
    standard = [] if is_plain else _standard_finalizers(new)
    whole, update = told + finalizers + standard, changes + told + standard
    if of_status:
        return errors + update
    match resource.metadata_rule:
        case "whole" | "whole, then update":  # which is once_more
            return errors + whole
        case "update, then whole":
            return errors + update + whole
    return errors + update


def once_more(new: Object, old: Object, *, plain: bool = False) -> list[FieldError]:
    """Evaluate metadata as ``ValidateObjectMetaUpdate``, after what the new object is told of.

    That is for kinds with "whole, then update". *plain*: any finalizer is one.
    """
    if _is_same(new, old):
        return []
    return _changes(new, old) + _told(new) + ([] if plain else _standard_finalizers(new))


def _is_same(new: Object, old: Object) -> bool:
    return {**old, **_IGNORED} == {**new, **_IGNORED}


_IGNORED: Final[Object] = {"managedFields": None, "resourceVersion": None}
"""Metadata that has no rules here."""


def _told(meta: Object) -> list[FieldError]:
    """Evaluate what is the same in ``ValidateObjectMeta`` and ``ValidateObjectMetaUpdate``."""
    return [
        *validate_labels(meta.get("labels"), "metadata.labels"),
        *validate_annotations(meta.get("annotations"), "metadata.annotations"),
        *_validate_owners(meta.get("ownerReferences") or []),
    ]


def _finalizers(meta: Object) -> list[FieldError]:
    path = "metadata.finalizers"
    errors = [error for each in meta.get("finalizers") or () for error in _qualified(path, each)]
    if {"orphan", "foregroundDeletion"} <= set(meta.get("finalizers") or ()):
        both = "finalizer orphan and finalizer foregroundDeletion cannot be both set"
        errors.append(field_errors.invalid(path, meta.get("finalizers"), both))
    return errors


def _standard_finalizers(meta: Object) -> list[FieldError]:
    named = enumerate(meta.get("finalizers") or ())
    return [
        error for index, each in named for error in _standard(f"metadata.finalizers[{index}]", each)
    ]


def finalizer(path: str, value: str) -> list[FieldError]:
    """Evaluate one of the finalizers of a namespace's spec."""
    return _qualified(path, value) + _standard(path, value)


def _qualified(path: str, value: str) -> list[FieldError]:
    return [field_errors.invalid(path, value, text) for text in syntax.qualified_name(value)]


def _standard(path: str, value: str) -> list[FieldError]:
    """Evaluate a finalizer without a domain: of those there are only Kubernetes' own."""
    if "/" in value or value in STANDARD_FINALIZERS:
        return []
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return [field_errors.invalid(path, value, why)]


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


def _validate_name(meta: Object, rule: syntax.Rule) -> list[FieldError]:
    name, prefix = meta.get("name"), meta.get("generateName")
    errors = []
    if prefix:
        # The server appends characters, so a trailing dash is as good as a letter.
        probe = prefix[:-1] + "a" if prefix.endswith("-") else prefix
        path = "metadata.generateName"
        errors += [field_errors.invalid(path, prefix, why) for why in rule(probe)]
    if name:
        return errors + [field_errors.invalid("metadata.name", name, why) for why in rule(name)]
    if not prefix:
        errors.append(field_errors.required("metadata.name", "name or generateName is required"))
    return errors


def _validate_owners(owners: list[Object]) -> list[FieldError]:
    path = "metadata.ownerReferences"
    errors = []
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                subject = "version " if field == "apiVersion" else ""
                why = f"{subject}must not be empty"
                errors.append(field_errors.invalid(f"{path}.{field}", "", why))
    if sum(1 for owner in owners if owner.get("controller")) > 1:
        why = "Only one reference can have Controller set to true."
        errors.append(field_errors.invalid(path, owners, why))
    return errors


def _changes(new: Object, old: Object) -> list[FieldError]:
    errors = []
    added = sorted(set(new.get("finalizers") or []) - set(old.get("finalizers") or []))
    if old.get("deletionTimestamp") and added:
        listed = ", ".join(f'"{each}"' for each in added)
        why = (
            "no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}"
        )
        errors.append(field_errors.forbidden("metadata.finalizers", why))
    return errors + [
        field_errors.invalid(f"metadata.{field}", new.get(field), "field is immutable")
        for field in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
        if new.get(field) != old.get(field)
    ]
