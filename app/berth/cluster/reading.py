"""Reads objects as the API's Go types do: null and missing are empty, a wrong type is an error.

Whoever reads many objects reads each for itself: one that cannot be read is logged and left out,
and never stops what becomes of the others.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import checks
from berth.cluster.schemas.presence import complete
from berth.cluster.schemas.structs import struct_type
from berth.cluster.schemas.types import Schema
from berth.cluster.storage.stored import Stored
from berth.runtime.errors import MISSHAPEN

log = logging.getLogger(__name__)

T = TypeVar("T")

UNREADABLE: Final = MISSHAPEN
"""What is raised over an object that is not what it should be."""


def completing(
    schema: Schema, decode: Callable[[bytes], T], *, is_typed: bool = True
) -> Callable[[bytes], T]:
    """Return what decodes the JSON of an object of *schema* with *decode*, once it is complete.

    With *is_typed*, *decode* itself says what is not, by msgspec.ValidationError; else the schema
    is asked first. What is returned raises ValueError for what no server should have stored.
    """
    check = None if is_typed else struct_type(schema, complete=True)
    is_complete = msgspec.json.Decoder(check).decode if check is not None else None

    def read(body: bytes) -> T:
        try:
            if is_complete is not None:
                is_complete(body)
            return decode(body)
        except msgspec.ValidationError:
            obj = msgspec.json.decode(body)
        if misfit := checks.misfit(schema, obj):
            raise ValueError(misfit)
        complete(schema, obj)
        return decode(msgspec.json.encode(obj))

    return read


def readable(
    objects: Iterable[Stored], read: Callable[[bytes], T], kind: str
) -> Iterator[tuple[Stored, T]]:
    """Yield each object with what *read* makes of it, without those of which it makes nothing."""
    for stored in objects:
        try:
            yield stored, read(stored.body)
        except UNREADABLE as exc:
            log.error(
                "object cannot be read, and counts for nothing",
                extra={"kind": kind, "object": "/".join(filter(None, stored.key)), "why": str(exc)},
            )


def objects(resource: ResourceType, stored: Iterable[Stored]) -> Iterator[Object]:
    """Yield objects of a kind, complete, without those that cannot be read."""
    read = _complete_object(resource.schema)
    return (obj for _, obj in readable(stored, read, resource.storage_key))


@cache
def _complete_object(schema: Schema) -> Callable[[bytes], Object]:
    return completing(schema, msgspec.json.Decoder(dict[str, Any]).decode, is_typed=False)
