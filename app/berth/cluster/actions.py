"""Changes that controllers and kubelets want, as values, and the one way they are made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from berth.cluster.resources import Object
from berth.kube.client.api import Api

STRATEGIC_MERGE = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"

Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class Get:
    """Read *path*: an object, or a list narrowed by *params*."""

    path: str
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Create:
    """POST *body* to the collection at *path*."""

    path: str
    body: Object
    note: str = field(default="", compare=False)
    """What an event is to say of it."""


@dataclass(frozen=True, slots=True)
class Replace:
    """PUT *body* at *path*."""

    path: str
    body: Object


@dataclass(frozen=True, slots=True)
class Patch:
    """PATCH the object at *path*. A uid or resourceVersion in *body* is a precondition."""

    path: str
    body: Object
    content_type: str = MERGE
    note: str = field(default="", compare=False)
    """What an event is to say of it."""


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE the object at *path*, if it is still the one with *uid*."""

    path: str
    uid: str
    grace_seconds: int | None = None
    """None: what the object says."""
    propagation: Propagation = "Background"
    resource_version: str = ""
    """If it is not empty, only if the object is still at it."""


@dataclass(frozen=True, slots=True)
class DeleteCollection:
    """DELETE everything at *path*; the garbage collector sees to what it owns."""

    path: str


Action = Get | Create | Replace | Patch | Delete | DeleteCollection


async def perform(client: Api, action: Action) -> bytes:
    """Do *action*; return the answer's body or raise :class:`berth.kube.client.errors.ApiError`."""
    match action:
        case Get(path, params):
            return await client.request("GET", path, params=params or None)
        case Create(path, body, _):
            return await client.request("POST", path, body=msgspec.json.encode(body))
        case Replace(path, body):
            return await client.request("PUT", path, body=msgspec.json.encode(body))
        case Patch(path, body, content_type, _):
            encoded = msgspec.json.encode(body)
            return await client.request("PATCH", path, body=encoded, content_type=content_type)
        case Delete():
            options = msgspec.json.encode(_delete_options(action))
            return await client.request("DELETE", action.path, body=options)
        case DeleteCollection(path):
            return await client.request("DELETE", path, body=_ALL)


_ALL = msgspec.json.encode(
    {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
)


def _delete_options(action: Delete) -> Object:
    preconditions = {"uid": action.uid}
    if action.resource_version:
        preconditions["resourceVersion"] = action.resource_version
    options: Object = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": preconditions,
        "propagationPolicy": action.propagation,
    }
    if action.grace_seconds is not None:
        options["gracePeriodSeconds"] = action.grace_seconds
    return options
