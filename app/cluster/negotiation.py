"""Content negotiation: how a client wants its answer, and how its body is read."""

import json
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import msgspec
import yaml

from app.cluster import errors

JSON = "application/json"
YAML = "application/yaml"
APPLY_PATCH = "application/apply-patch+yaml"
META_GROUP = "meta.k8s.io"


class Representation(Enum):
    """The forms an object can be served in, all of them JSON."""

    OBJECT = auto()
    TABLE = auto()
    PARTIAL = auto()
    """Its metadata only."""


_AS = {
    None: Representation.OBJECT,
    "Table": Representation.TABLE,
    "PartialObjectMetadata": Representation.PARTIAL,
    "PartialObjectMetadataList": Representation.PARTIAL,
}


def representation(accept: str) -> Representation:
    """Return the first form in an ``Accept`` header that we speak; 406 if there is none.

    Clients list a protobuf form first and JSON after it; the order counts, as in the API server.
    """
    for offer in accept.split(","):
        media_type, *parameters = (part.strip() for part in offer.split(";"))
        if media_type not in (JSON, "*/*", "application/*", ""):
            continue
        wanted = dict(p.split("=", 1) for p in parameters if "=" in p)
        form = _AS.get(wanted.get("as"))
        if form is Representation.OBJECT:
            return form
        if form is not None and (wanted.get("g"), wanted.get("v")) == (META_GROUP, "v1"):
            return form
    raise errors.not_acceptable()


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded request body and the keys that it says twice, as paths."""

    value: Any
    duplicates: tuple[str, ...] = ()


def media_type(content_type: str) -> str:
    """Return a ``Content-Type`` without its parameters; nothing said means JSON."""
    return content_type.split(";")[0].strip().lower() or JSON


def decode(content: bytes, content_type: str, *, strict: bool = False) -> Body:
    """Read a JSON or YAML body. 400 when it is malformed, 415 for other content types.

    *strict* also looks for duplicate keys, which a decoder passes over in silence.
    """
    kind = media_type(content_type)
    if kind == JSON:
        return decode_json(content, strict=strict)
    if kind == YAML:
        return _decode_yaml(content)
    raise errors.unsupported_media_type([JSON, YAML])


def decode_json(content: bytes, *, strict: bool = False) -> Body:
    """Read JSON, whatever the content type says it means."""
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise errors.bad_request(f"the object provided is unrecognized: {exc}") from exc
    return Body(value, tuple(_duplicates(content)) if strict else ())


def _decode_yaml(content: bytes) -> Body:
    try:
        return Body(yaml.load(content, _Loader))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as exc:
        raise errors.bad_request(f"error converting YAML to JSON: {exc}") from exc


class _Loader(yaml.SafeLoader):
    """YAML as JSON has it: times stay strings."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Members(list[tuple[str, Any]]):
    """A JSON object with every member as written: the only way to see a key twice."""


def _duplicates(content: bytes) -> list[str]:
    """Return the paths of repeated keys. Three times slower than decoding; asked for by name."""
    found: list[str] = []
    stack: list[tuple[str, Any]] = [("", json.loads(content, object_pairs_hook=_Members))]
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
