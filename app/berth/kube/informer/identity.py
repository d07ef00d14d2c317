"""The identity of an object: which one, and which version of it."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.nesting import pruned

T = TypeVar("T")


class Identity(NamedTuple):
    """What a store needs to know of an object. ``key`` is ``namespace/name``, or the name."""

    key: str
    resource_version: str
    uid: str


Identify = Callable[[T], Identity]
"""Reads the identity of a decoded object; may raise when it has none."""


def identity_of(obj: Any) -> Identity:
    """Identify a typed object with ``metadata``, or one decoded to plain dicts."""
    if not isinstance(obj, dict):
        meta = obj.metadata
        return Identity(key_of(meta.name, meta.namespace), meta.resource_version, meta.uid)
    metadata = obj["metadata"]
    return Identity(
        key_of(metadata["name"], metadata.get("namespace", "")),
        metadata.get("resourceVersion", ""),
        metadata.get("uid", ""),
    )


def key_of(name: str, namespace: str) -> str:
    """Return the key of an object; *namespace* is "" for one of the whole cluster."""
    return f"{namespace}/{name}" if namespace else name


class BareMeta(KubeStruct, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class BareObject(KubeStruct, frozen=True, gc=False):
    """As little of an object as can be misspelt."""

    metadata: BareMeta = BareMeta()


decode_bare = msgspec.json.Decoder(BareObject).decode


def identity_in(raw: bytes) -> Identity:
    """Identify an object that does not decode as what it should be; all "" when even that fails."""
    try:
        metadata = decode_bare(pruned(raw)).metadata
    except msgspec.DecodeError:
        return Identity("", "", "")
    key = key_of(metadata.name, metadata.namespace)
    return Identity(key, metadata.resource_version, metadata.uid)


def is_older(version: str, than: str) -> bool:
    """Say whether one resource version certainly precedes another.

    API servers number versions, without leading zeros; a version in another form is never called
    older.
    """
    # Most are not, so their form is looked at last.
    return (len(version), version) < (len(than), than) and (
        version.isdecimal() and than.isdecimal()
    )
