"""``kubectl get``'s tables: objects in, a ``meta.k8s.io/v1`` Table out."""

from collections.abc import Sequence
from typing import Any

from berth.cluster.columns.cells import UNKNOWN, Since
from berth.cluster.resources import Column, Object, ResourceType
from berth.cluster.times import seconds_of
from berth.duration import human_duration

GROUP_VERSION = "meta.k8s.io/v1"
"""What Tables are of; ``meta.k8s.io/v1beta1`` for clients that know no other."""

INCLUDE_OBJECT = ("Metadata", "Object", "None")
"""The values of the query parameter ``includeObject``; the first is the default."""


def age(timestamp: str | None, now: float) -> str:
    """Return how long before *now* (unix seconds) that RFC 3339 time was."""
    if not timestamp:
        return UNKNOWN
    return human_duration(now - seconds_of(timestamp))


def as_table(
    resource: ResourceType,
    objects: Sequence[Object],
    *,
    include_object: str = "Metadata",
    list_meta: Object | None = None,
    now: float,
    with_columns: bool = True,
    group_version: str = GROUP_VERSION,
) -> Object:
    """Return *objects*, as *resource* serves them, as a Table.

    *include_object* is one of :data:`INCLUDE_OBJECT`; *list_meta* is the metadata of the list, or
    None when the table is one object; *now* is in unix seconds. A watch says ``with_columns=False``
    after its first event: the client remembers them.
    """
    columns = resource.columns
    return {
        "kind": "Table",
        "apiVersion": group_version,
        "metadata": table_meta(objects) if list_meta is None else list_meta,
        "columnDefinitions": [definition(each) for each in columns] if with_columns else None,
        "rows": [row(resource, obj, include_object, now, group_version) for obj in objects],
    }


def row(
    resource: ResourceType,
    obj: Object,
    include_object: str,
    now: float,
    group_version: str = GROUP_VERSION,
) -> Object:
    """Return the row of one object, as :func:`as_table` has it."""
    return {
        "cells": [cell(column, obj, now) for column in resource.columns],
        "object": row_object(resource, obj, include_object, group_version),
    }


def table_meta(objects: Sequence[Object]) -> Object:
    """Return the metadata of a table that is not a list: the version of its one object."""
    versions = [obj["metadata"].get("resourceVersion") for obj in objects]
    return {"resourceVersion": versions[0]} if len(versions) == 1 and versions[0] else {}


def definition(column: Column) -> Object:
    """Return the TableColumnDefinition."""
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": "",
        "priority": column.priority,
    }


def cell(column: Column, obj: Object, now: float) -> Any:
    """Return what *column* says of *obj* at *now*."""
    value = column.value(obj)
    return value.text.format(age(value.timestamp, now)) if isinstance(value, Since) else value


def row_object(
    resource: ResourceType, obj: Object, include_object: str, group_version: str
) -> Object | None:
    """Return what a row carries beside its cells, for labels and sorting on the client."""
    match include_object:
        case "None":
            return None
        case "Object":
            return {"kind": resource.kind, "apiVersion": resource.group_version, **obj}
        case _:
            return {
                "kind": "PartialObjectMetadata",
                "apiVersion": group_version,
                "metadata": obj["metadata"],
            }
