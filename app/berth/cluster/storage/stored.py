"""One stored object: its JSON at one resource version."""

from collections.abc import Callable, Mapping, Sequence
from sys import intern
from typing import Any, Final

import msgspec

from berth.cluster.resources import Object
from berth.cluster.written import Written

MOST_SHARED = 10_000
"""Maps that are kept to be shared: pods of a workload have the same labels."""

METADATA: Final = b'{"metadata":'
"""How bodies begin."""

NOT_THE_REST: Final = frozenset({"kind", "apiVersion", "metadata"})

Key = tuple[str, str]
"""Namespace ("" for cluster-scoped) and name: the order in which lists are sorted."""

_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], Object] = msgspec.json.Decoder(dict[str, Any]).decode


def shared(texts: dict[str, str]) -> dict[str, str]:
    """Return an equal dict that is kept once for all objects, while they are many."""
    key = tuple(texts.items())
    known = _shared.get(key)
    if known is None:
        if len(_shared) >= MOST_SHARED:
            _shared.clear()
        known = _shared[key] = dict(key)
    return known


_shared: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}


class Stored:
    """One object at one resource version. Immutable; shared by readers and the log.

    ``body`` is its JSON without ``kind`` and ``apiVersion``, which depend on who asks; ``labels``
    are for selectors, and shared by all objects with the same.
    """

    __slots__ = ("body", "cells", "fields", "key", "labels", "metadata_end", "uid", "version")

    def __init__(self, obj: Object, version: int) -> None:
        """*version* is 0 for an object that is not to be kept: it says none."""
        metadata = obj["metadata"]
        if version:
            metadata["resourceVersion"] = str(version)
        else:
            metadata.pop("resourceVersion", None)
        self.key: Key = (intern(metadata.get("namespace") or ""), metadata["name"])
        self.uid: str = metadata.get("uid") or ""
        self.version = version
        self.labels = shared(metadata.get("labels") or {})
        said = _encode(metadata)
        rest = _encode(
            {
                key: msgspec.Raw(value.text) if type(value) is Written else value
                for key, value in obj.items()
                if key not in NOT_THE_REST
            }
        )
        self.body = b"%b%b%b" % (METADATA, said, b"," + rest[1:] if len(rest) > 2 else b"}")
        self.metadata_end = len(METADATA) + len(said)
        """Where in the body the metadata ends, which begins after METADATA; 0: nobody knows."""
        self.fields: tuple[str, Mapping[str, str]] | None = None
        """What selectors last asked for: the group and version, and the values of fields. Kept by
        readers, as they cannot change."""
        self.cells: tuple[object, Sequence[Any]] | None = None
        """What was last shown of it in tables: the columns, and what they said."""

    @classmethod
    def of_parts(
        cls, key: Key, uid: str, version: int, labels: dict[str, str], body: bytes
    ) -> "Stored":
        """Return what was kept of an object, without reading its JSON."""
        stored = cls.__new__(cls)
        stored.key = key
        stored.uid = uid
        stored.version = version
        stored.labels = shared(labels)
        stored.body = body
        stored.metadata_end = 0
        stored.fields = None
        stored.cells = None
        return stored

    @property
    def name(self) -> str:
        return self.key[1]

    def decode(self) -> Object:
        """Return a private copy, without ``kind`` and ``apiVersion``."""
        return _decode(self.body)

    def at(self, version: int) -> "Stored":
        """Return the same object said to be of *version*: how a watch shows an object leaving."""
        return Stored(self.decode(), version)
