"""Requests to answers: read what HTTP says, let the synchronous parts act, render what they say."""

import asyncio
import copy
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.clock import Clock
from berth.cluster import errors, options, views, warnings
from berth.cluster.access.escalation import Escalation
from berth.cluster.access.reviews import TOKEN_REQUESTS, Reviews
from berth.cluster.errors import StatusError
from berth.cluster.http import negotiation, reads
from berth.cluster.http.bodies import Bodies, read_patch, read_plain
from berth.cluster.http.chunks import chunks, taking_turns
from berth.cluster.http.list_options import list_options
from berth.cluster.http.negotiation import JSON
from berth.cluster.http.paths import WATCH, Paths, Target
from berth.cluster.http.rendering import Renderer
from berth.cluster.http.requests import Answer, Request, refusal
from berth.cluster.http.watches import Frames, Watch
from berth.cluster.kinds.builtin import find
from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import Schema
from berth.cluster.shares import Shares
from berth.cluster.storage.store import FullError, Store, Stored, TooLargeError
from berth.cluster.writes import subresources
from berth.cluster.writes.pipeline import Change, Writes

log = logging.getLogger(__name__)

WITH_BODY = frozenset({"DELETE", "PATCH", "POST", "PUT"})

Handler = Callable[[Request, Target], Awaitable[ASGIApp]]


class Endpoints:
    """Everything below the URL of a group and version."""

    def __init__(
        self,
        paths: Paths,
        store: Store,
        writes: Writes,
        *,
        reviews: Reviews,
        escalation: Escalation,
        clock: Clock,
    ) -> None:
        self._paths = paths
        self._store = store
        self._writes = writes
        self._reviews = reviews
        self._escalation = escalation
        self._clock = clock
        self._is_open = True
        self._shares = Shares(clock)
        self._frames = Frames()
        self._handlers: dict[tuple[str, str], Handler] = {
            ("collection", "GET"): self._list,
            (WATCH, "GET"): self._list,
            ("collection", "POST"): self._create,
            ("collection", "DELETE"): self._delete_collection,
            ("object", "GET"): self._get,
            ("object", "PUT"): self._put,
            ("object", "PATCH"): self._patch,
            ("object", "DELETE"): self._delete,
            **{
                (subresource, method): handler
                for subresource in ("approval", "status")
                for method, handler in (
                    ("GET", self._get),
                    ("PUT", self._put),
                    ("PATCH", self._patch),
                )
            },
            ("finalize", "PUT"): self._put,
            ("scale", "GET"): self._get_scale,
            ("scale", "PUT"): self._put_scale,
            ("scale", "PATCH"): self._patch_scale,
            ("binding", "POST"): self._bind,
            ("token", "POST"): self._issue_token,
            ("question", "POST"): self._review,
        }

    def close(self) -> None:
        """End all watches."""
        self._is_open = False
        self._store.wake()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer any request: an ASGI application."""
        answer = await self._answer(scope, receive)
        if answer is not None:
            await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> ASGIApp | None:
        """Return the answer: a refusal is a Status, and so is a bug. None: nobody waits for it."""
        accept = ""
        try:
            request = Request(scope, receive)
            accept = request.accept
            target = self._paths.target(request.path)
            handler = self._handler(request.method, target)
            options.check_timeout(request.query)
            if request.method in WITH_BODY:
                await request.body()  # so that all that follows is one step
            await self._shares.turn(request.user)
            started = self._clock.monotonic()
            try:
                return await handler(request, target)
            finally:
                self._shares.took(request.user, self._clock.monotonic() - started)
        except StatusError as exc:
            return refusal(exc, accept)
        except TooLargeError as exc:
            return refusal(errors.too_large(str(exc)), accept)
        except FullError as exc:
            return refusal(errors.no_room(str(exc)), accept)
        except ClientDisconnect:
            return None
        except Exception as exc:
            log.exception(
                "request failed", extra={"method": scope["method"], "path": scope["path"]}
            )
            return refusal(errors.internal(f"{type(exc).__name__}: {exc}"), accept)

    def _handler(self, method: str, target: Target) -> Handler:
        if target.subresource in target.resource.refused_subresources:
            # Those who evict take a 404 for a pod that is gone; so that is what it must mean.
            self._writes.get(target.resource, target.namespace, target.name)
            raise errors.method_not_allowed(
                target.resource.refused_subresources[target.subresource]
            )
        level = target.subresource or ("object" if target.name else "collection")
        if not target.resource.is_stored:
            if target.name:
                raise errors.path_not_found()
            level = "question"
        handler = self._handlers.get((level, method))
        if handler is None or not _is_served(target, method):
            raise errors.method_not_allowed()
        return handler

    async def _get(self, request: Request, target: Target) -> Answer:
        render = self._renderer(request, target)
        reads.check_version(self._store, request.query)
        stored = self._writes.get(target.resource, target.namespace, target.name)
        return _answer(render, render.object(stored))

    async def _list(self, request: Request, target: Target) -> ASGIApp:
        render = self._renderer(request, target)
        asked = list_options(request.query, watch=target.subresource == WATCH or None)
        wanted = reads.selection(target.resource, target.namespace, request.query, target.name)
        if asked.watch:
            watch = Watch(
                self._store,
                wanted,
                asked,
                clock=self._clock,
                render=render,
                frames=self._frames,
            )
            media_type = render.media_type
            if media_type != JSON:
                media_type += ";stream=watch"
            return StreamingResponse(watch.lines(lambda: self._is_open), media_type=media_type)
        return _listed(render, reads.list_objects(self._store, wanted, asked), self._clock)

    async def _create(self, request: Request, target: Target) -> Answer:
        if target.resource.namespaced and not target.namespace:
            raise errors.method_not_allowed()
        render = self._renderer(request, target)
        bodies = self._bodies(request, target)
        body = bodies.read(await request.body(), request.content_type)
        if self._escalation.concerns(target.resource, request.user):
            self._escalation.check(target.resource, target.namespace, body, request.user)
        stored = self._writes.create(
            target.resource,
            target.namespace,
            body,
            dry_run=options.dry_run(request.query),
        )
        return _warned(_answer(render, render.object(stored), 201), bodies)

    async def _put(self, request: Request, target: Target) -> Answer:
        bodies = self._bodies(request, target)
        body = bodies.read(await request.body(), request.content_type)
        return self._updated(request, target, lambda _current: body, bodies)

    async def _patch(self, request: Request, target: Target) -> Answer:
        patch = read_patch(await request.body(), request.content_type)
        bodies = self._bodies(request, target)
        return self._updated(
            request, target, lambda current: bodies.patched(patch, current), bodies
        )

    def _updated(self, request: Request, target: Target, change: Change, bodies: Bodies) -> Answer:
        render = self._renderer(request, target)
        stored = self._update(request, target, change)
        return _warned(_answer(render, render.object(stored)), bodies)

    def _update(self, request: Request, target: Target, change: Change) -> Stored:
        if self._escalation.concerns(target.resource, request.user):
            change = self._without_escalation(request, target, change)
        return self._writes.update(
            target.resource,
            target.namespace,
            target.name,
            change,
            subresource="" if target.subresource == "scale" else target.subresource,
            dry_run=options.dry_run(request.query),
        )

    def _without_escalation(self, request: Request, target: Target, change: Change) -> Change:
        """Make *change* refuse to grant what its author does not have."""

        def checked(current: Object) -> Object:
            before = _grants(current)
            new = change(current)
            if _grants(new) != before:
                self._escalation.check(target.resource, target.namespace, new, request.user)
            return new

        return checked

    async def _delete(self, request: Request, target: Target) -> Answer:
        render = self._renderer(request, target)
        resource = target.resource
        how = await _delete_options(request)
        stored, is_gone = self._writes.delete(resource, target.namespace, target.name, how)
        if is_gone and not resource.returned_when_gone:
            details = errors.details_of(resource, stored.name, uid=stored.uid)
            status = render.other(errors.success(details=details), STATUS)
            return _answer(render, status)
        return _answer(render, render.object(stored))

    async def _delete_collection(self, request: Request, target: Target) -> ASGIApp:
        render = self._renderer(request, target)
        how = await _delete_options(request)
        wanted = reads.selection(target.resource, target.namespace, request.query)
        asked = list_options(request.query, watch=False)
        portion = reads.list_objects(self._store, wanted, asked)
        for number, stored in enumerate(portion.objects, 1):
            try:
                self._writes.delete(target.resource, *stored.key, how)
            except StatusError as exc:
                if exc.code != NOT_FOUND:  # somebody was faster
                    raise
            if number % DELETED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return _listed(render, portion, self._clock)

    async def _get_scale(self, request: Request, target: Target) -> Answer:
        stored = self._writes.get(target.resource, target.namespace, target.name)
        return self._scale(request, stored, target)

    async def _put_scale(self, request: Request, target: Target) -> Answer:
        scale = read_plain(await request.body(), request.content_type, subresources.SCALE.schema)

        def change(current: Object) -> Object:
            return subresources.rescaled(current, scale)

        return self._scale(request, self._update(request, target, change), target)

    async def _patch_scale(self, request: Request, target: Target) -> Answer:
        patch = read_patch(await request.body(), request.content_type)

        def change(current: Object) -> Object:
            scale = subresources.scale_of(target.resource, current)
            return subresources.rescaled(current, patch.apply(scale, subresources.SCALE))

        return self._scale(request, self._update(request, target, change), target)

    def _scale(self, request: Request, stored: Stored, target: Target) -> Answer:
        scale = subresources.scale_of(target.resource, views.as_object(target.resource, stored))
        return self._other(request, target, scale, subresources.SCALE.schema)

    def _other(
        self, request: Request, target: Target, obj: Object, schema: Schema, code: int = 200
    ) -> Answer:
        """Answer with an object that is not of the kind."""
        render = self._renderer(request, target)
        return _answer(render, render.other(obj, schema), code)

    async def _bind(self, request: Request, target: Target) -> Answer:
        binding = read_plain(
            await request.body(), request.content_type, subresources.BINDINGS.schema
        )
        return self._bound(request, target.namespace, target.name, binding)

    def _bound(self, request: Request, namespace: str, name: str, binding: Any) -> Answer:
        subresources.bind(
            self._store,
            PODS,
            self._writes.get(PODS, namespace, name),
            binding,
            clock=self._clock,
            dry_run=options.dry_run(request.query),
        )
        target = Target(PODS, namespace, name)
        return self._other(request, target, errors.success(code=201), STATUS, 201)

    async def _issue_token(self, request: Request, target: Target) -> Answer:
        account = self._writes.get(target.resource, target.namespace, target.name)
        bodies = Bodies(TOKEN_REQUESTS, options.field_validation(request.query))
        asked = bodies.read(await request.body(), request.content_type)
        answered = self._reviews.issue(account, asked)
        return _warned(self._other(request, target, answered, TOKEN_REQUESTS.schema, 201), bodies)

    async def _review(self, request: Request, target: Target) -> Answer:
        if target.resource.namespaced and not target.namespace:
            raise errors.method_not_allowed()
        bodies = self._bodies(request, target)
        review = bodies.read(await request.body(), request.content_type)
        if target.resource is subresources.BINDINGS:
            name = review["metadata"].get("name") or ""
            return self._bound(request, target.namespace, name, review)
        answered = self._reviews.answer(target.resource, review, request.user, target.namespace)
        return _warned(self._other(request, target, answered, target.resource.schema, 201), bodies)

    def _bodies(self, request: Request, target: Target) -> Bodies:
        return Bodies(target.resource, options.field_validation(request.query))

    def _renderer(self, request: Request, target: Target) -> Renderer:
        form = negotiation.representation(request.accept)
        include = request.query.get("includeObject", "")
        return Renderer(target.resource, form, include_object=include, clock=self._clock)


def _is_served(target: Target, method: str) -> bool:
    """Tell whether the kind has the verb that a request without subresource stands for."""
    if target.subresource:
        return True
    verbs = VERBS_OF_OBJECT if target.name else VERBS_OF_COLLECTION
    return verbs[method] in target.resource.verbs


VERBS_OF_COLLECTION = {"DELETE": "deletecollection", "GET": "list", "POST": "create"}
VERBS_OF_OBJECT = {"DELETE": "delete", "GET": "get", "PATCH": "patch", "PUT": "update"}

PODS = find("", "v1", "pods")

NOT_FOUND = 404

DELETED_AT_ONCE = 100
"""Objects of a collection that are deleted before others on the event loop get a turn."""

STATUS = builtin.meta("Status")


def _answer(render: Renderer, body: bytes, code: int = 200) -> Answer:
    return Answer(body, code, media_type=render.media_type)


def _listed(render: Renderer, portion: reads.Portion, clock: Clock) -> ASGIApp:
    """Return the answer that a list makes: at once when it is short, else while it is sent."""
    ahead = chunks(render.list(portion), clock)
    first, second = next(ahead), next(ahead, None)
    if second is None:
        return _answer(render, first)
    return StreamingResponse(
        taking_turns(itertools.chain((first, second), ahead)), media_type=render.media_type
    )


def _grants(obj: Object) -> Object:
    """Return a copy of what a role or binding grants."""
    parts = ("rules", "aggregationRule", "roleRef", "subjects")
    return copy.deepcopy({part: obj.get(part) for part in parts})


async def _delete_options(request: Request) -> DeleteOptions:
    content = await request.body()
    body = None
    if content.strip():
        body = read_plain(content, request.content_type, builtin.meta("DeleteOptions"))
    return options.delete_options(request.query, body)


def _warned(answer: Answer, bodies: Bodies) -> Answer:
    answer.headers += warnings.headers(bodies.warnings)
    return answer
