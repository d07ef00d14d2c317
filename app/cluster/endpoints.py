"""Requests to responses: read what HTTP says, let the synchronous parts act, render the answer."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from app.clock import Clock
from app.cluster import (
    discovery,
    errors,
    negotiation,
    options,
    protobuf,
    reads,
    subresources,
    views,
)
from app.cluster.bodies import Bodies, read_patch
from app.cluster.errors import StatusError
from app.cluster.negotiation import JSON
from app.cluster.paths import Paths, Target
from app.cluster.rendering import Renderer
from app.cluster.resources import Object
from app.cluster.store import Store, Stored
from app.cluster.watches import Watch, watch_options
from app.cluster.writes import Change, Writes

log = logging.getLogger(__name__)

RETURNED_WHEN_GONE = frozenset({"pods", "services"})
"""A DELETE of these answers with the object; of others, when it is gone at once, with a Status."""

NO_EVICTION = "eviction is not served by the embedded cluster: delete the pod instead"

Handler = Callable[[Request, Target], Awaitable[Response]]


def json_response(body: bytes, code: int = 200) -> Response:
    return Response(body, code, media_type=JSON)


def status_response(error: StatusError) -> Response:
    body = msgspec.json.encode(error.status())
    return Response(body, error.code, error.headers, media_type=JSON)


class Endpoints:
    """Everything below the URL of a group and version."""

    def __init__(self, paths: Paths, store: Store, writes: Writes, *, clock: Clock) -> None:
        self._paths = paths
        self._store = store
        self._writes = writes
        self._clock = clock
        self._is_open = True
        self._handlers: dict[tuple[str, str], Handler] = {
            ("collection", "GET"): self._list,
            ("collection", "POST"): self._create,
            ("collection", "DELETE"): self._delete_collection,
            ("object", "GET"): self._get,
            ("object", "PUT"): self._put,
            ("object", "PATCH"): self._patch,
            ("object", "DELETE"): self._delete,
            ("status", "GET"): self._get,
            ("status", "PUT"): self._put,
            ("status", "PATCH"): self._patch,
            ("finalize", "PUT"): self._put,
            ("scale", "GET"): self._get_scale,
            ("scale", "PUT"): self._put_scale,
            ("scale", "PATCH"): self._patch_scale,
            ("binding", "POST"): self._bind,
            ("eviction", "POST"): self._evict,
        }

    def close(self) -> None:
        """End all watches."""
        self._is_open = False
        self._store.wake()

    async def answer(self, request: Request) -> Response:
        """Answer any request; a refusal is a Status, and so is a bug."""
        try:
            target = self._paths.target(request.url.path)
            level = target.subresource or ("object" if target.name else "collection")
            handler = self._handlers.get((level, request.method))
            if handler is None:
                raise errors.method_not_allowed()
            return await handler(request, target)
        except StatusError as exc:
            return status_response(exc)
        except ClientDisconnect:
            raise
        except Exception as exc:
            log.exception(
                "request failed", extra={"method": request.method, "path": request.url.path}
            )
            return status_response(errors.internal(f"{type(exc).__name__}: {exc}"))

    async def _get(self, request: Request, target: Target) -> Response:
        render = self._renderer(request, target)
        stored = self._writes.get(target.resource, target.namespace, target.name)
        return json_response(render.object(stored))

    async def _list(self, request: Request, target: Target) -> Response:
        render = self._renderer(request, target)
        query = request.query_params
        wanted = reads.selection(target.resource, target.namespace, query)
        if options.flag(query, "watch"):
            watch = Watch(
                self._store, wanted, watch_options(query), clock=self._clock, render=render
            )
            return StreamingResponse(self._stream(watch), media_type=JSON)
        return json_response(render.list(reads.list_objects(self._store, wanted, query)))

    def _stream(self, watch: Watch) -> AsyncIterator[bytes]:
        return watch.lines(lambda: self._is_open)

    async def _create(self, request: Request, target: Target) -> Response:
        if target.resource.namespaced and not target.namespace:
            raise errors.method_not_allowed()
        render = self._renderer(request, target)
        bodies = Bodies(target.resource, options.field_validation(request.query_params))
        body = bodies.read(await request.body(), request.headers.get("content-type", ""))
        stored = self._writes.create(
            target.resource,
            target.namespace,
            body,
            dry_run=options.dry_run(request.query_params),
        )
        return _warned(json_response(render.object(stored), 201), bodies)

    async def _put(self, request: Request, target: Target) -> Response:
        bodies = Bodies(target.resource, options.field_validation(request.query_params))
        body = bodies.read(await request.body(), request.headers.get("content-type", ""))
        return self._updated(request, target, lambda _current: body, bodies)

    async def _patch(self, request: Request, target: Target) -> Response:
        patch = read_patch(await request.body(), request.headers.get("content-type", ""))
        bodies = Bodies(target.resource, options.field_validation(request.query_params))

        def change(current: Object) -> Any:
            return bodies.patched(patch, current)

        return self._updated(request, target, change, bodies)

    def _updated(
        self, request: Request, target: Target, change: Change, bodies: Bodies
    ) -> Response:
        render = self._renderer(request, target)
        stored = self._update(request, target, change)
        return _warned(json_response(render.object(stored)), bodies)

    def _update(self, request: Request, target: Target, change: Change) -> Stored:
        return self._writes.update(
            target.resource,
            target.namespace,
            target.name,
            change,
            subresource="" if target.subresource == "scale" else target.subresource,
            dry_run=options.dry_run(request.query_params),
        )

    async def _delete(self, request: Request, target: Target) -> Response:
        render = self._renderer(request, target)
        resource = target.resource
        how = await _delete_options(request)
        stored, is_gone = self._writes.delete(resource, target.namespace, target.name, how)
        if is_gone and resource.storage_key not in RETURNED_WHEN_GONE:
            details = errors.details_of(resource, stored.name, uid=stored.uid)
            return json_response(msgspec.json.encode(errors.success(details=details)))
        return json_response(render.object(stored))

    async def _delete_collection(self, request: Request, target: Target) -> Response:
        if "deletecollection" not in discovery.verbs(target.resource):
            raise errors.method_not_allowed()
        render = self._renderer(request, target)
        how = await _delete_options(request)
        query = request.query_params
        wanted = reads.selection(target.resource, target.namespace, query)
        portion = reads.list_objects(self._store, wanted, query)
        for stored in portion.objects:
            self._writes.delete(target.resource, *stored.key, how)
        return json_response(render.list(portion))

    async def _get_scale(self, _request: Request, target: Target) -> Response:
        return self._scale(self._writes.get(target.resource, target.namespace, target.name), target)

    async def _put_scale(self, request: Request, target: Target) -> Response:
        content_type = request.headers.get("content-type", "")
        scale = negotiation.decode(await request.body(), content_type).value

        def change(current: Object) -> Object:
            return subresources.rescaled(current, scale)

        return self._scale(self._update(request, target, change), target)

    async def _patch_scale(self, request: Request, target: Target) -> Response:
        patch = read_patch(await request.body(), request.headers.get("content-type", ""))

        def change(current: Object) -> Object:
            scale = patch.apply(subresources.scale_of(current), subresources.SCALE)
            return subresources.rescaled(current, scale)

        return self._scale(self._update(request, target, change), target)

    def _scale(self, stored: Stored, target: Target) -> Response:
        obj = views.as_object(target.resource, stored)
        return json_response(msgspec.json.encode(subresources.scale_of(obj)))

    async def _bind(self, request: Request, target: Target) -> Response:
        content_type = request.headers.get("content-type", "")
        binding = negotiation.decode(await request.body(), content_type).value
        subresources.bind(
            self._store,
            target.resource,
            self._writes.get(target.resource, target.namespace, target.name),
            binding,
            clock=self._clock,
            dry_run=options.dry_run(request.query_params),
        )
        return json_response(msgspec.json.encode(errors.success(code=201)), 201)

    async def _evict(self, _request: Request, target: Target) -> Response:
        self._writes.get(target.resource, target.namespace, target.name)
        raise StatusError(405, "MethodNotAllowed", NO_EVICTION, details={})

    def _renderer(self, request: Request, target: Target) -> Renderer:
        form = negotiation.representation(request.headers.get("accept", ""))
        include = request.query_params.get("includeObject", "")
        return Renderer(target.resource, form, include_object=include, clock=self._clock)


async def _delete_options(request: Request) -> options.DeleteOptions:
    content = await request.body()
    content_type = request.headers.get("content-type", "")
    if not content.strip():
        body = None
    elif negotiation.media_type(content_type) == protobuf.MEDIA_TYPE:
        body = protobuf.decode(content, "V1DeleteOptions")
    else:
        body = negotiation.decode(content, content_type).value
    return options.delete_options(request.query_params, body)


def _warned(response: Response, bodies: Bodies) -> Response:
    for warning in bodies.warnings:
        text = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.append("Warning", f'299 - "{text}"')
    return response
