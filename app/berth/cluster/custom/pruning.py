"""Fields that a structural schema does not have are dropped (``schema/pruning``)."""

from typing import Any

from berth.cluster.custom.walk import (
    EMBEDDED,
    OF_EVERY_OBJECT,
    PRESERVES,
    Schema,
    child,
    items,
    properties,
    values,
)
from berth.cluster.resources import Object
from berth.cluster.schemas import builtin, checks
from berth.cluster.schemas.checks import MOST_UNKNOWN


def prune(schema: Schema, obj: Object) -> list[str]:
    """Take the fields out of *obj* that *schema* does not have; return where they were, sorted.

    ``metadata`` is as in every kind, and none of its business.
    """
    found: list[str] = []
    _prune(schema, obj, "", found, is_object=True)
    return sorted(found)[:MOST_UNKNOWN]


def _prune(schema: Schema, value: Any, path: str, found: list[str], *, is_object: bool) -> None:
    if isinstance(value, list):
        below = items(schema)
        if below is not None:
            is_embedded = below.get(EMBEDDED) is True
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    _prune(below, item, f"{path}[{index}]", found, is_object=is_embedded)
        return
    if not isinstance(value, dict):
        return
    specified, others = properties(schema), values(schema)
    keeps = schema.get(PRESERVES) is True or schema.get("additionalProperties") is True
    for key in list(value):
        if is_object and key in OF_EVERY_OBJECT:
            if path and key == "metadata":  # of an object within the object
                unknown = checks.prune(builtin.meta("ObjectMeta"), value[key])
                found += [f"{path}.metadata.{each}" for each in unknown]
            continue
        below = specified.get(key, others)
        if below is None:
            if not keeps:
                del value[key]
                found.append(child(path, key))
            continue
        item = value[key]
        if isinstance(item, dict | list):
            _prune(below, item, child(path, key), found, is_object=below.get(EMBEDDED) is True)
