"""Reads objects as the API's Go types do: null and missing are empty, a wrong type is an error.

Whoever reads many objects reads each for itself: one that cannot be read is logged and left out,
and never stops what becomes of the others.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from berth.cluster.schemas import checks
from berth.cluster.schemas.nulls import complete
from berth.cluster.schemas.types import Schema
from berth.cluster.storage.store import Stored

log = logging.getLogger(__name__)

T = TypeVar("T")


def completing(
    schema: Schema, decode: Callable[[bytes], T], *, is_typed: bool = True
) -> Callable[[bytes], T]:
    """Return what decodes the JSON of an object of *schema* with *decode*, once it is complete.

    With *is_typed*, what *decode* takes is good enough; it raises msgspec.ValidationError otherwise.
    Raises ValueError, or an error of *decode*, for what no server should have stored.
    """

    def read(body: bytes) -> T:
        if is_typed:
            try:
                return decode(body)
            except msgspec.ValidationError:
                pass
        obj = msgspec.json.decode(body)
        if checks.is_complete(schema, obj):
            return decode(body)
        if misfit := checks.misfit(schema, obj):
            raise ValueError(misfit.json)
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
        except (ValueError, TypeError) as exc:
            log.error(
                "object cannot be read, and counts for nothing",
                extra={"kind": kind, "object": "/".join(filter(None, stored.key)), "why": str(exc)},
            )
