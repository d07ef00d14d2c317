"""What kubectl asked of a real API server, and what it was answered: read from ``recorded/``."""

import functools
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType

RECORDING = Path(__file__).parent / "recorded" / "kubectl.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names."""

    resource: ResourceType
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer."""

    command: str
    """The kubectl command that it was part of."""
    number: int
    """Its place among the requests of the command, from 0."""
    method: str
    url: str
    headers: Mapping[str, str]
    request: Any
    status: int
    content_type: str | None
    response: Any

    def __str__(self) -> str:
        return f"{self.command} [{self.number}] {self.method} {self.url}"

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.url).query))

    @property
    def target(self) -> Target | None:
        """What the request is about; None when it is none of the kinds that berth serves."""
        return target_of(self.path)

    @property
    def body(self) -> Object:
        """The answer; empty when the recording has no JSON of it."""
        return self.response if isinstance(self.response, dict) else {}


def target_of(path: str) -> Target | None:
    """Read a path as the API server does."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *_ = [*rest, "", "", ""]
    try:
        resource = find(group, version, plural)
    except KeyError:
        return None
    return Target(resource, namespace, name, subresource)


@functools.cache
def exchanges() -> tuple[Exchange, ...]:
    """Return the recording in order; empty when it is absent."""
    return tuple(_read())


def _read() -> Iterator[Exchange]:
    command, number = "", 0
    with gzip.open(RECORDING, "rt") as lines:
        for line in lines:
            entry = json.loads(line)
            if "command" in entry:
                command, number = entry["command"], 0
            elif "method" in entry:
                yield Exchange(
                    command=command,
                    number=number,
                    method=entry["method"],
                    url=entry["path"],
                    headers=entry["headers"],
                    request=entry["request"],
                    status=entry["status"],
                    content_type=entry["content_type"],
                    response=entry["response"],
                )
                number += 1


def full_objects(exchange: Exchange) -> list[Object]:
    """Return the objects that the answer gives whole, with their type."""
    target, body = exchange.target, exchange.body
    if target is None or exchange.status >= 300 or target.subresource:
        return []
    kind = target.resource.kind
    type_of_kind = {"kind": kind, "apiVersion": target.resource.group_version}
    if body.get("kind") == f"{kind}List":
        return [{**type_of_kind, **item} for item in body["items"]]
    return [body] if body.get("kind") == kind else []
