"""Content negotiation: how a client wants its answer, and how its body is read."""

import json
from enum import StrEnum, auto
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import yaml

from berth.cluster import errors
from berth.cluster.go_text import syntax_error
from berth.cluster.schemas import protobuf
from berth.cluster.schemas.types import Schema
from berth.kube import documents
from berth.kube.documents import DEPTH_LIMIT
from berth.runtime.media_types import MediaRange, accepted

JSON = "application/json"
YAML = "application/yaml"
APPLY_PATCH = "application/apply-patch+yaml"
META_GROUP = "meta.k8s.io"
META_VERSIONS = frozenset({"v1", "v1beta1"})

EXPLAINED = 64 * 1024
"""Bytes of malformed JSON of which it is said what is wrong as Go does."""

USUAL_ACCEPT = 1024
"""Characters of an ``Accept`` header that is worth remembering."""


class Shape(StrEnum):
    """What an answer shows of an object."""

    OBJECT = auto()
    TABLE = auto()
    PARTIAL = auto()
    """Its metadata only."""


class Representation(NamedTuple):
    """A form that objects can be served in."""

    shape: Shape = Shape.OBJECT
    media_type: str = JSON
    kind: str = ""
    """Of what the client asks for in place of the object, ``Table``; empty: the object."""
    meta_version: str = "v1"
    """The version of ``meta.k8s.io`` that *kind* is of."""

    @property
    def type_of(self) -> dict[str, str]:
        """The two keys that say what takes the place of one object."""
        kind = "Table" if self.shape is Shape.TABLE else "PartialObjectMetadata"
        return {"kind": kind, "apiVersion": f"{META_GROUP}/{self.meta_version}"}


_SHAPES = {
    "Table": Shape.TABLE,
    "PartialObjectMetadata": Shape.PARTIAL,
    "PartialObjectMetadataList": Shape.PARTIAL,
}
_MEDIA_TYPES = {
    JSON: JSON,
    "*/*": JSON,
    "application/*": JSON,
    "": JSON,
    YAML: YAML,
    protobuf.MEDIA_TYPE: protobuf.MEDIA_TYPE,
}
SERVED = (JSON, YAML, protobuf.MEDIA_TYPE)
STREAMS = (f"{JSON};stream=watch", f"{protobuf.MEDIA_TYPE};stream=watch")


def representation(accept: str, *, tables: bool = True, streams: bool = False) -> Representation:
    """Return the first form in an ``Accept`` header that we speak; 406 if there is none.

    The order counts, as in the API server, but for protobuf: it is for clients that do not take
    JSON too. What is stored is JSON, so that costs nothing. Without *tables* there are none; with
    *streams* this may be about a watch, which a refusal tells.
    """
    find = _remembered if len(accept) <= USUAL_ACCEPT else _representation
    return find(accept, tables, streams)


def _representation(accept: str, tables: bool, streams: bool) -> Representation:
    in_protobuf: Representation | None = None
    is_known = False
    for media_range in accepted(accept):
        is_known |= media_range.type in _MEDIA_TYPES
        found = _form(media_range)
        if found is None or (found.shape is Shape.TABLE and not tables):
            continue
        if found.media_type != protobuf.MEDIA_TYPE:
            return found
        in_protobuf = in_protobuf or found
    if not is_known:
        raise errors.not_served(SERVED + STREAMS if streams else SERVED)
    if in_protobuf is None:
        raise errors.not_acceptable(SERVED)
    return in_protobuf


def _form(media_range: MediaRange) -> Representation | None:
    media_type, wanted = _MEDIA_TYPES.get(media_range.type), media_range.parameters
    if media_type is None:
        return None
    kind = wanted.get("as")
    if kind is None:
        return Representation(media_type=media_type)
    shape, version = _SHAPES.get(kind), wanted.get("v", "")
    if shape is None or wanted.get("g") != META_GROUP or version not in META_VERSIONS:
        return None
    if shape is Shape.TABLE and media_type == protobuf.MEDIA_TYPE:
        return None  # they have cells of any type
    return Representation(shape, media_type, kind, version)


def encoded(obj: Any, schema: Schema, media_type: str) -> bytes:
    """Return an object that says its type; *schema* is for protobuf."""
    if media_type == protobuf.MEDIA_TYPE:
        return protobuf.encode(obj, schema)
    if media_type == YAML:
        return to_yaml(obj)
    return msgspec.json.encode(obj)


def to_yaml(value: Any) -> bytes:
    """Return *value*, which is of JSON, as YAML in blocks, with sorted keys."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True)
    return text.encode()


_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


_remembered = lru_cache(_representation)


def media_type(content_type: str) -> str:
    """Return a ``Content-Type`` without its parameters; nothing said means JSON."""
    if content_type in _PLAIN:
        return content_type
    return content_type.split(";")[0].strip().lower() or JSON


_PLAIN = frozenset(
    {
        JSON,
        YAML,
        APPLY_PATCH,
        protobuf.MEDIA_TYPE,
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    }
)
"""Media types as nearly everybody writes them: there is nothing to take apart."""


def check_readable(content_type: str) -> None:
    """Raise a 415 for a body that is none of what objects may be sent as."""
    if media_type(content_type) not in SERVED:
        raise errors.unsupported_media_type(SERVED)


def as_json(content: bytes, content_type: str) -> bytes:
    """Return a JSON or YAML body as JSON. 400 for malformed YAML, 415 for other content types."""
    kind = media_type(content_type)
    if kind == JSON:
        return content
    check_readable(content_type)
    try:
        return msgspec.json.encode(documents.load(content))
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as exc:
        why = " ".join(str(exc).split())
        raise errors.bad_request(f"error converting YAML to JSON: yaml: {why}") from exc


def decode_json(content: bytes, kind: str = "") -> Any:
    """Return what JSON says; 400 when it is malformed, or nested deeper than we survive.

    *kind* is what the JSON is to be, for the message.
    """
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        text = content.decode(errors="replace") if len(content) <= EXPLAINED else ""
        why = (text and syntax_error(text)) or str(exc)
        raise errors.unrecognized(kind, f"json parse error: {why}", content) from exc
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
