"""Views of a stored object, for those who ask for it as one resource or another.

The store keeps objects without ``kind`` and ``apiVersion``; a resource type puts its own in front
and, where it is a second view of shared storage, converts.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from berth.cluster.reading import UNREADABLE
from berth.cluster.resources import Object, ResourceType, same
from berth.cluster.storage.stored import METADATA, Stored, shared
from berth.cluster.written import keep_text


def as_object(resource: ResourceType, stored: Stored) -> Object:
    """Return a private copy with its type."""
    body = stored.decode()
    if resource.from_storage is not same:
        body = resource.from_storage(body)
    if resource.written_field:
        keep_text(body, resource.written_field, stored.body)
    return {"kind": resource.kind, "apiVersion": resource.group_version, **body}


def digest_of(resource: ResourceType, stored: Stored) -> Object:
    """Return what columns and selectable fields read of an object, and perhaps more."""
    if resource.digest is None or resource.from_storage is not same:
        return as_object(resource, stored)
    try:
        return _digest_decoder(resource.digest)(stored.body)
    except msgspec.ValidationError:
        return as_object(resource, stored)


def as_json(resource: ResourceType, stored: Stored) -> bytes:
    """Return the JSON with its type: what a GET answers and a watch sends."""
    return _type_prefix(resource.kind, resource.group_version) + as_item(resource, stored)[1:]


def as_item(resource: ResourceType, stored: Stored) -> bytes:
    """Return the JSON without its type: what a list holds."""
    if resource.written_field:
        return msgspec.json.format(stored.body, indent=-1)
    if resource.from_storage is same:
        return stored.body
    return msgspec.json.encode(_body(resource, stored))


def as_partial(resource: ResourceType, stored: Stored, group_version: str) -> bytes:
    """Return the JSON of a PartialObjectMetadata, a type in *group_version*."""
    prefix = _type_prefix("PartialObjectMetadata", group_version)
    return b'%b"metadata":%b}' % (prefix, metadata_json(resource, stored))


def metadata_json(resource: ResourceType, stored: Stored) -> bytes:
    """Return the JSON of the metadata alone, as it is whatever the version."""
    if stored.metadata_end:
        said = stored.body[len(METADATA) : stored.metadata_end]
    else:
        said = bytes(_decode_metadata(stored.body).metadata)
    if not resource.versioned_annotations:
        return said
    metadata = msgspec.json.decode(said)
    annotations = metadata.pop("annotations", {})
    kept = {k: v for k, v in annotations.items() if k not in resource.versioned_annotations}
    return msgspec.json.encode({**metadata, "annotations": kept} if kept else metadata)


def type_of(resource: ResourceType) -> Object:
    """Return the two keys that say what an object is."""
    return {"kind": resource.kind, "apiVersion": resource.group_version}


def fields_of(resource: ResourceType, stored: Stored, names: tuple[str, ...]) -> Mapping[str, str]:
    """Return the values of the selectable fields *names*, and perhaps of others.

    Those that are read from the object are kept with it: a watch asks at least twice, about an
    object and its successor.
    """
    group_version, known = stored.fields or ("", NO_FIELDS)
    if group_version != resource.group_version:
        known = NO_FIELDS
    missing = [each for each in names if each not in known and each in resource.selectable_fields]
    if missing:
        obj = digest_of(resource, stored)
        new = {each: _field(resource.selectable_fields[each], obj) for each in missing}
        known = shared({**known, **new})
        stored.fields = resource.group_version, known
    if not known.keys() >= set(names):
        namespace, name = stored.key
        return {**known, "metadata.name": name, "metadata.namespace": namespace}
    return known


def _field(read: Callable[[Object], str], obj: Object) -> str:
    try:
        return read(obj)
    except UNREADABLE:  # one such object must not end the lists and watches of all
        return ""


def selectable(resource: ResourceType) -> set[str]:
    """Return the fields that field selectors may name."""
    return {"metadata.name", "metadata.namespace", *resource.selectable_fields}


NO_FIELDS: Mapping[str, str] = {}


@cache
def _digest_decoder(digest: Any) -> Callable[[bytes], Object]:
    decode: Callable[[bytes], Object] = msgspec.json.Decoder(digest).decode
    return decode


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_decode_metadata = msgspec.json.Decoder(_Metadata).decode


def _body(resource: ResourceType, stored: Stored) -> Object:
    return resource.from_storage(stored.decode())


@cache
def _type_prefix(kind: str, group_version: str) -> bytes:
    return msgspec.json.encode({"kind": kind, "apiVersion": group_version})[:-1] + b","
