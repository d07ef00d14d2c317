"""Changes of a write, for each version in which somebody manages fields."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.types import Schema
from berth.cluster.writes.managed_fields import entries, field_sets
from berth.cluster.writes.managed_fields.compile import node_of
from berth.cluster.writes.managed_fields.entries import Entry, Manager
from berth.cluster.writes.managed_fields.field_sets import (
    FieldSet,
    difference,
    in_order,
    intersection,
    of_paths,
    without,
)
from berth.cluster.writes.managed_fields.nodes import Difference, Struct

FindKind = Callable[[str, str, str], ResourceType | None]
"""Returns the kind with a group, version and plural, if it is served."""

UNMANAGED: Final = of_paths(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "creationTimestamp",
            "generation",
            "managedFields",
            "name",
            "namespace",
            "resourceVersion",
            "selfLink",
            "uid",
        )
    ),
)
"""What nobody manages: it says which object it is, or comes from the server."""

STATUS: Final = of_paths(("f:status",))
STATUS_WRITES: Final = ("approval", "status")
"""Subresources that change the status and metadata only."""


class Kinds:
    """The versions of kinds, and the fields that new objects have."""

    def __init__(self, find: FindKind) -> None:
        self._find = find
        self._templates: dict[tuple[Schema, str, bytes], FieldSet] = {}

    def in_version(self, resource: ResourceType, api_version: str) -> ResourceType | None:
        """Return the same kind in another version; None when it is not served."""
        if api_version == resource.group_version:
            return resource
        group, _, version = api_version.rpartition("/")
        return self._find(group, version, resource.plural)

    def fields_of(self, resource: ResourceType, obj: Object) -> FieldSet:
        """Return the fields of a new object.

        What controllers make of one template is the same but for its metadata, so the fields of
        the rest are remembered; not those of custom resources, whose schemas come and go.
        """
        node = node_of(resource)
        fields: FieldSet = {}
        for name in sorted(obj):
            if name == "metadata" or (resource.structural is not None and name in node.known):
                found = Difference()
                node.compare_fields({}, {name: obj[name]}, found)
                fields |= in_order(found.changed)
            elif name in node.known:
                fields |= self._part(resource.schema, node, name, obj[name])
        return fields

    def _part(self, schema: Schema, node: Struct, name: str, value: Any) -> FieldSet:
        key = (schema, name, msgspec.json.encode(value))
        fields = self._templates.get(key)
        if fields is None:
            found = Difference()
            node.compare_fields({}, {name: value}, found)
            fields = in_order(found.changed)
            if len(self._templates) >= MOST_TEMPLATES:
                self._templates.clear()
            if len(key[2]) <= LONGEST_TEMPLATE:
                self._templates[key] = fields
        return fields


MOST_TEMPLATES: Final = 1000
LONGEST_TEMPLATE: Final = 8 * 1024
"""How many parts of new objects are remembered, and of how many bytes."""


class Conflict(NamedTuple):
    """A field that is applied with another value than its manager gave it."""

    entry: Entry
    path: field_sets.Path


class Changes:
    """What a write changes, in each version in which fields are managed."""

    def __init__(
        self,
        kinds: Kinds,
        resource: ResourceType,
        subresource: str,
        live: Object,
        new: Object,
    ) -> None:
        """*live* is empty when the object is created."""
        self._kinds = kinds
        self._resource = resource
        self._ignored = unwritten(resource, subresource)
        self._live = live
        self._new = new
        self._known: dict[str, tuple[FieldSet, FieldSet] | None] = {}

    def difference(self, api_version: str) -> tuple[FieldSet, FieldSet]:
        """Return what is new or other, and what went; nothing of a version that is not served."""
        return self._in_version(api_version) or ({}, {})

    def taken(self, managed: Iterable[Entry], *, of: Manager) -> tuple[list[Entry], Entry | None]:
        """Return the entries without what the write changes or removes, and that *of* its author.

        Those of versions that are not served any more go.
        """
        kept: list[Entry] = []
        mine = None
        for each in managed:
            if entries.is_of(each, of):
                mine = each
                continue
            found = self._in_version(each["apiVersion"])
            if found is None:
                continue
            changed, removed = found
            fields = difference(difference(each["fieldsV1"], changed), removed)
            if fields is each["fieldsV1"]:
                kept.append(each)
            elif fields:
                kept.append(entries.with_fields(each, fields))
        return kept, mine

    def conflicts(self, managed: Iterable[Entry], *, of: Manager) -> list[Conflict]:
        """Return the changed fields that others manage than their author, *of* whom they are."""
        return [
            Conflict(each, path)
            for each in managed
            if not entries.is_of(each, of)
            for path in field_sets.paths_of(
                intersection(each["fieldsV1"], self.difference(each["apiVersion"])[0])
            )
        ]

    def _in_version(self, api_version: str) -> tuple[FieldSet, FieldSet] | None:
        if api_version not in self._known:
            self._known[api_version] = self._compare(api_version)
        return self._known[api_version]

    def _compare(self, api_version: str) -> tuple[FieldSet, FieldSet] | None:
        other = self._kinds.in_version(self._resource, api_version)
        if other is None:
            return None
        if not self._live:
            return self._managed(self._kinds.fields_of(other, self._new)), {}
        found = Difference()
        node_of(other).compare_fields(
            converted(self._live, self._resource, other),
            converted(self._new, self._resource, other),
            found,
        )
        return self._managed(in_order(found.changed)), self._managed(found.removed)

    def _managed(self, fields: FieldSet) -> FieldSet:
        """Return of *fields* those that somebody manages, and this write may change."""
        if not fields:
            return fields
        return difference(without(fields, self._ignored), UNMANAGED)


def unwritten(resource: ResourceType, subresource: str) -> FieldSet:
    """Return what a write does not change: the status, or all but status and metadata."""
    if "status" not in resource.subresources:
        return {}
    return _all_but_status(resource.schema) if subresource in STATUS_WRITES else STATUS


@lru_cache(maxsize=256)
def _all_but_status(schema: Schema) -> FieldSet:
    kept = {"apiVersion", "kind", "metadata", "status"}
    return {f"f:{name}": {} for name in schema.fields if name not in kept}


def converted(obj: Object, resource: ResourceType, other: ResourceType) -> Object:
    """Return an object of *resource* as *other*, another version of the kind, shows it."""
    if resource is other:
        return obj
    seen = other.from_storage(
        resource.to_storage(msgspec.json.decode(msgspec.json.encode(obj)))
    )  # which may change it
    return {**seen, "apiVersion": other.group_version, "kind": other.kind}
