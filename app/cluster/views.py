"""How a stored object looks to those who ask for it as one resource or another.

The store keeps objects without ``kind`` and ``apiVersion``; a resource type puts its own in front
and, where it is a second view of shared storage, converts.
"""

from functools import cache

import msgspec

from app.cluster.resources import Object, ResourceType, same
from app.cluster.store import Stored


def as_object(resource: ResourceType, stored: Stored) -> Object:
    """Return a private copy with its type."""
    return {**type_of(resource), **_body(resource, stored)}


def as_json(resource: ResourceType, stored: Stored) -> bytes:
    """Return the JSON with its type: what a GET answers and a watch sends."""
    return _type_prefix(resource.kind, resource.group_version) + as_item(resource, stored)[1:]


def as_item(resource: ResourceType, stored: Stored) -> bytes:
    """Return the JSON without its type: what a list holds."""
    if resource.from_storage is same:
        return stored.body
    cached = stored.attributes.get(resource.group_version)
    if cached is None:
        cached = msgspec.json.encode(_body(resource, stored))
        stored.attributes[resource.group_version] = cached
    return bytes(cached)


def type_of(resource: ResourceType) -> Object:
    """Return the two keys that say what an object is."""
    return {"kind": resource.kind, "apiVersion": resource.group_version}


def fields_of(resource: ResourceType, stored: Stored) -> dict[str, str]:
    """Return the values of the fields that field selectors may name; derived once per write."""
    key = "fields/" + resource.group_version
    cached: dict[str, str] | None = stored.attributes.get(key)
    if cached is None:
        obj = _body(resource, stored) if resource.selectable_fields else {}
        cached = {name: value(obj) for name, value in resource.selectable_fields.items()}
        namespace, name = stored.key
        cached |= {"metadata.name": name, "metadata.namespace": namespace}
        stored.attributes[key] = cached
    return cached


def selectable(resource: ResourceType) -> set[str]:
    """Return the fields that field selectors may name."""
    return {"metadata.name", "metadata.namespace", *resource.selectable_fields}


def _body(resource: ResourceType, stored: Stored) -> Object:
    return resource.from_storage(stored.decode())


@cache
def _type_prefix(kind: str, group_version: str) -> bytes:
    return msgspec.json.encode({"kind": kind, "apiVersion": group_version})[:-1] + b","
