"""A Table as clients get it, of objects that were not stored before."""

import copy
from typing import Any

import msgspec

from berth.cluster.http.tables import as_table, row, table_meta
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.stored import Stored


def table_of(
    resource: ResourceType,
    *objects: Object,
    now: float,
    include_object: str = "Metadata",
    list_meta: Object | None = None,
    with_columns: bool = True,
) -> Any:
    """Return the Table; that of a list if *list_meta* is given, else of the one object."""
    kept = [_stored(resource, object_) for object_ in objects]
    table = as_table(
        resource,
        [row(resource, each, include_object, now) for each in kept],
        list_meta=table_meta(kept[0]) if list_meta is None else list_meta,
        with_columns=with_columns,
    )
    return msgspec.json.decode(msgspec.json.encode(table))


def _stored(resource: ResourceType, obj: Object) -> Stored:
    version = obj["metadata"].get("resourceVersion", "1")
    return Stored(resource.to_storage(copy.deepcopy(obj)), int(version))
