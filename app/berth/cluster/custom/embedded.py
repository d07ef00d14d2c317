"""Objects within objects (``x-kubernetes-embedded-resource``) say what they are, and are named."""

from collections.abc import Iterator
from typing import Any

import msgspec

from berth.cluster.custom.walk import EMBEDDED, Schema, child, field_of, items
from berth.cluster.resources import Object
from berth.cluster.strategies import metadata
from berth.cluster.strategies.metadata import ObjectMeta
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
    said = value.get("metadata")
    if said is None:
        return
    try:
        meta = msgspec.convert(said, ObjectMeta)
    except msgspec.ValidationError as exc:
        yield field_errors.invalid(f"{path}.metadata", said, str(exc))
        return
    found = metadata.validate_labels(meta.labels, f"{path}.metadata.labels")
    yield from found
    yield from metadata.validate_annotations(meta.annotations, f"{path}.metadata.annotations")
