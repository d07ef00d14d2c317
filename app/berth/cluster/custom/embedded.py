"""Objects within objects (``x-kubernetes-embedded-resource``) say what they are, and are named."""

from collections.abc import Iterator
from typing import Any

from berth.cluster.custom.walk import EMBEDDED, Schema, child, field_of, items
from berth.cluster.resources import Object
from berth.cluster.schemas import builtin, checks
from berth.cluster.strategies import metadata
from berth.kube import field_errors
from berth.kube.field_errors import FieldError


def validate_embedded(schema: Schema, obj: Object) -> list[FieldError]:
    """Return what is wrong with the types and metadata of objects in *obj*."""
    return list(_validate(schema, obj, ""))


def _validate(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if isinstance(value, dict):
        if path and schema.get(EMBEDDED):
            yield from _object(value, path)
        for key, item in value.items():
            below = field_of(schema, key) if isinstance(item, dict | list) else None
            if below is not None:
                yield from _validate(below, item, child(path, key))
    elif isinstance(value, list):
        below = items(schema)
        if below is not None:
            for index, item in enumerate(value):
                yield from _validate(below, item, f"{path}[{index}]")


def _object(value: Object, path: str) -> Iterator[FieldError]:
    for key in ("apiVersion", "kind"):
        if not value.get(key):
            yield field_errors.required(f"{path}.{key}", "must not be empty")
    meta = value.get("metadata")
    if meta is None:
        return
    here = f"{path}.metadata"
    misfit = checks.misfit(builtin.meta("ObjectMeta"), meta) if isinstance(meta, dict) else "object"
    if misfit is not None:
        yield field_errors.invalid(here, meta, f"must be metadata: {misfit}")
        return
    yield from metadata.validate_labels(meta.get("labels"), f"{here}.labels")
    yield from metadata.validate_annotations(meta.get("annotations"), f"{here}.annotations")
