"""Content negotiation: how a client wants its answer, and how its body is read."""

import json
from enum import Enum, auto
from functools import lru_cache
from typing import Any

import msgspec
import yaml

from berth import documents
from berth.cluster import errors
from berth.cluster.schemas import protobuf
from berth.cluster.schemas.types import Schema
from berth.documents import DEPTH_LIMIT
from berth.media_types import accepted

JSON = "application/json"
YAML = "application/yaml"
APPLY_PATCH = "application/apply-patch+yaml"
META_GROUP = "meta.k8s.io"

USUAL_ACCEPT = 1024
"""Characters of an ``Accept`` header that is worth remembering."""


class Representation(Enum):
    """The forms an object can be served in: JSON, all but one."""

    OBJECT = auto()
    TABLE = auto()
    PARTIAL = auto()
    """Its metadata only."""
    PROTOBUF = auto()
    """The object, for those who take nothing else."""


_AS = {
    None: Representation.OBJECT,
    "Table": Representation.TABLE,
    "PartialObjectMetadata": Representation.PARTIAL,
    "PartialObjectMetadataList": Representation.PARTIAL,
}


def representation(accept: str) -> Representation:
    """Return the first form in an ``Accept`` header that we speak; 406 if there is none.

    The order counts, as in the API server, but for protobuf: it is for clients that do not take
    JSON too. What is stored is JSON, so that costs nothing.
    """
    return (_remembered if len(accept) <= USUAL_ACCEPT else _representation)(accept)


def _representation(accept: str) -> Representation:
    takes_protobuf = False
    for media_range in accepted(accept):
        if media_range.type == protobuf.MEDIA_TYPE and "as" not in media_range.parameters:
            takes_protobuf = True
        if media_range.type not in (JSON, "*/*", "application/*", ""):
            continue
        wanted = media_range.parameters
        form = _AS.get(wanted.get("as"))
        if form is Representation.OBJECT:
            return form
        if form is not None and (wanted.get("g"), wanted.get("v")) == (META_GROUP, "v1"):
            return form
    if takes_protobuf:
        return Representation.PROTOBUF
    raise errors.not_acceptable()


def encoded(obj: Any, schema: Schema, form: Representation) -> bytes:
    """Return an object that says its type as *form* has it: protobuf, or else JSON."""
    if form is Representation.PROTOBUF:
        return protobuf.encode(obj, schema)
    return msgspec.json.encode(obj)


_remembered = lru_cache(_representation)


def media_type(content_type: str) -> str:
    """Return a ``Content-Type`` without its parameters; nothing said means JSON."""
    if content_type == JSON:
        return JSON
    return content_type.split(";")[0].strip().lower() or JSON


def as_json(content: bytes, content_type: str) -> bytes:
    """Return a JSON or YAML body as JSON. 400 for malformed YAML, 415 for other content types."""
    kind = media_type(content_type)
    if kind == JSON:
        return content
    if kind != YAML:
        found = f"the body of the request was in an unknown format ({kind})"
        raise errors.unsupported_media_type([JSON, YAML], found=found)
    try:
        return msgspec.json.encode(documents.load(content, loader=documents.JsonLoader))
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as exc:
        why = " ".join(str(exc).split())
        raise errors.bad_request(f"error converting YAML to JSON: yaml: {why}") from exc


def decode_json(content: bytes) -> Any:
    """Return what JSON says; 400 when it is malformed, or nested deeper than we survive."""
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise errors.bad_request(f"the object provided is unrecognized: {exc}") from exc
    except RecursionError as exc:
        raise errors.too_deep(DEPTH_LIMIT) from exc
    # What has fewer brackets cannot be too deep, and counting them costs next to nothing.
    brackets = content.count(b"{") + content.count(b"[")
    if brackets > DEPTH_LIMIT and documents.depth_of(value) > DEPTH_LIMIT:
        raise errors.too_deep(DEPTH_LIMIT)
    return value


class _Members(list[tuple[str, Any]]):
    """A JSON object with every member as written: the only way to see a key twice."""


def duplicates(content: bytes) -> list[str]:
    """Return the paths of keys that an object in *content*, which is JSON, has more than once."""
    found: list[str] = []
    # Numbers are as good as their text here, and may be longer than Python reads.
    value = json.loads(content, object_pairs_hook=_Members, parse_int=str, parse_float=str)
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, _Members):
            seen: set[str] = set()
            for key, child in value:
                child_path = f"{path}.{key}" if path else key
                if key in seen:
                    found.append(child_path)
                seen.add(key)
                stack.append((child_path, child))
        elif isinstance(value, list):
            stack.extend((f"{path}[{index}]", child) for index, child in enumerate(value))
    return found
