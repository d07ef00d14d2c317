"""One request to a resource, and what its handler needs to answer it."""

import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp

from berth.cluster import options, warnings
from berth.cluster.access.flows import is_exempt
from berth.cluster.access.gate import Gate
from berth.cluster.access.reviews import Reviews
from berth.cluster.http import negotiation
from berth.cluster.http.bodies import Bodies
from berth.cluster.http.metrics import ApiMetrics
from berth.cluster.http.negotiation import JSON
from berth.cluster.http.outgoing import Outgoing, Pace
from berth.cluster.http.paths import Target
from berth.cluster.http.rendering import Renderer
from berth.cluster.http.requests import Answer, Request
from berth.cluster.http.watches import Frames
from berth.cluster.kubelet.containers import Containers
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.types import Schema
from berth.cluster.shares import Shares
from berth.cluster.storage.store import Store
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.pipeline import Writes
from berth.cluster.writes.subresources.action import Action
from berth.runtime.clock import Clock

OPTIONS = {
    "DELETE": "DeleteOptions",
    "PATCH": "PatchOptions",
    "POST": "CreateOptions",
    "PUT": "UpdateOptions",
}
"""The kind of what a request says beside its body, by method."""


@dataclass(slots=True)
class Services:
    """What all requests share."""

    store: Store
    writes: Writes
    actions: Mapping[str, Action]
    """By the name of the subresource."""
    reviews: Reviews
    gate: Gate
    clock: Clock
    metrics: ApiMetrics
    rng: random.Random
    containers: list[Containers] = field(default_factory=list)
    """Those of kubelets in this process."""
    frames: Frames = field(default_factory=Frames)
    outgoing: Outgoing = field(init=False)
    shares: Shares = field(init=False)
    is_open: bool = True
    """Whether watches may go on."""

    def __post_init__(self) -> None:
        self.outgoing = Outgoing(self.clock)
        self.shares = Shares(self.clock)


class Call:
    """One request."""

    __slots__ = ("request", "services", "target", "warnings")

    def __init__(self, request: Request, target: Target, services: Services) -> None:
        self.request = request
        self.target = target
        self.services = services
        deprecation = target.resource.deprecation
        self.warnings = [deprecation] if deprecation else []
        """What the answer is to say in ``Warning`` headers."""

    def pace(self) -> Pace | None:
        """Return how fast a long answer may be made; None: as fast as can be."""
        user, services = self.request.user, self.services
        if is_exempt(user):
            return None
        return Pace(user, services.outgoing, services.shares, services.clock)

    def writing(
        self, resource: ResourceType, *, applies: bool = False
    ) -> tuple[WriteContext, Bodies]:
        """Return what a write knows beside the object, and what reads objects of *resource*.

        415 for a body that cannot be read, 422 for options that cannot be.
        """
        request = self.request
        if request.method != "PATCH":
            negotiation.check_readable(request.content_type)
        asked = options.write_options(
            request.query, request.user_agent, kind=OPTIONS[request.method], applies=applies
        )
        context = WriteContext(request.user, asked.field_manager, asked.dry_run, self.warnings)
        repeated = request.repeated_keys
        return context, Bodies(resource, asked.field_validation, self.warnings, repeated)

    def renderer(self, resource: ResourceType) -> Renderer:
        """Return what writes objects of *resource* in the form that the client accepts."""
        target = self.target
        form = negotiation.representation(
            self.request.accept,
            tables="list" in resource.verbs,
            streams=self.request.method == "GET" and not (target.name or target.subresource),
        )
        include = self.request.query.get("includeObject", "")
        return Renderer(resource, form, include_object=include, clock=self.services.clock)

    def other(self, obj: Object, schema: Schema, code: int = 200) -> Answer:
        """Answer with an object that is not of the resource."""
        render = self.renderer(self.target.resource)
        return self.answer(render, render.other(obj, schema), code)

    def answer(self, render: Renderer, body: bytes, code: int = 200) -> Answer:
        """Answer with what *render* made, and the warnings."""
        headers = warnings.headers(self.warnings) if self.warnings else None
        if self.request.wants_pretty and render.media_type == JSON:
            body = msgspec.json.format(body, indent=2)
        return Answer(body, code, headers, media_type=render.media_type)

    def stream(self, body: AsyncIterator[bytes], media_type: str) -> StreamingResponse:
        """Answer with *body* while it is made, and the warnings there are so far."""
        response = StreamingResponse(body, media_type=media_type)
        response.raw_headers += warnings.headers(self.warnings)
        return response


Handler = Callable[[Call], Coroutine[Any, Any, ASGIApp]]
"""Answers a request; a refusal is a StatusError."""
