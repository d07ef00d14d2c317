"""Requests about objects, their collections, and their parts."""

import asyncio
import itertools

from starlette.types import ASGIApp

from berth.cluster import errors, options, views
from berth.cluster.access.attributes import Attributes
from berth.cluster.errors import StatusError
from berth.cluster.http import negotiation, reads
from berth.cluster.http.bodies import read_patch, read_plain
from berth.cluster.http.call import Call
from berth.cluster.http.chunks import chunks, taking_turns
from berth.cluster.http.list_options import ListOptions
from berth.cluster.http.negotiation import JSON
from berth.cluster.http.rendering import Renderer, pretty
from berth.cluster.http.requests import Answer
from berth.cluster.http.watches import Watch, lasting
from berth.cluster.options import DeleteOptions
from berth.cluster.schemas import builtin
from berth.cluster.storage.stored import Stored
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.subresources.table import PARTS

NOT_FOUND = 404

DELETED_AT_ONCE = 100
"""Objects of a collection that are deleted before others on the event loop get a turn."""

STATUS = builtin.meta("Status")
DELETE_OPTIONS = builtin.meta("DeleteOptions")


async def get(call: Call) -> ASGIApp:
    render = call.renderer(call.target.resource)
    resource, namespace, name, _ = call.target
    reads.check_version(call.services.store, call.request.query)
    return _shown(call, render, call.services.writes.get(resource, namespace, name))


async def list_or_watch(call: Call) -> ASGIApp:
    resource, namespace, _, _ = call.target
    render = call.renderer(resource)
    wanted, asked = reads.asked(resource, namespace, call.request.query)
    if asked.watch:
        return _watch(call, render, wanted, asked)
    portion = await reads.list_objects(call.services.store, wanted, asked, call.services.clock)
    call.services.metrics.listed(resource, fetched=portion.fetched, returned=len(portion.objects))
    return _listed(call, render, portion)


async def watch(call: Call) -> ASGIApp:
    """Watch what a path below ``/watch/`` names."""
    resource, namespace, name, _ = call.target
    render = call.renderer(resource)
    query = call.request.query
    wanted, how = reads.asked(resource, namespace, query, name=name, watch=True)
    return _watch(call, render, wanted, how)


def _watch(call: Call, render: Renderer, wanted: reads.Selection, asked: ListOptions) -> ASGIApp:
    resource, services = call.target.resource, call.services
    watching = Watch(
        services.store,
        wanted,
        asked,
        clock=services.clock,
        render=render,
        frames=services.frames,
        series=services.metrics.watches(resource),
        seconds=lasting(asked.timeout_seconds, services.rng),
        pace=call.pace(),
    )
    return call.stream(watching.lines(lambda: services.is_open), render.stream_media_type)


async def create(call: Call) -> ASGIApp:
    resource, namespace, _, _ = call.target
    if resource.namespaced and not namespace:
        raise errors.method_not_allowed()
    render = call.renderer(resource)
    request = call.request
    content = await request.body()
    context, bodies = call.writing(resource)
    body = bodies.read(content, request.content_type)
    stored = await call.services.writes.create(resource, namespace, body, context)
    return call.answer(render, render.object(stored), 201)


async def put(call: Call) -> ASGIApp:
    request = call.request
    content = await request.body()
    resource, namespace, name, subresource = call.target
    context, bodies = call.writing(PARTS[subresource].kind(resource))
    render = call.renderer(resource)
    stored, is_new = await call.services.writes.replace(
        resource,
        namespace,
        name,
        lambda: bodies.read(content, request.content_type),
        context,
        subresource=subresource,
        creating=lambda: _authorize_creation(call),
    )
    return _shown(call, render, stored, 201 if is_new else 200)


async def patch(call: Call) -> ASGIApp:
    request = call.request
    content = await request.body()
    if negotiation.media_type(request.content_type) == negotiation.APPLY_PATCH:
        return await _apply(call, content)
    wanted = read_patch(content, request.content_type)
    resource, namespace, name, subresource = call.target
    context, bodies = call.writing(PARTS[subresource].kind(resource))
    render = call.renderer(resource)
    stored = await call.services.writes.update(
        resource,
        namespace,
        name,
        lambda current: bodies.patched(wanted, current),
        context,
        subresource=subresource,
    )
    return _shown(call, render, stored)


async def delete(call: Call) -> ASGIApp:
    resource, namespace, name, _ = call.target
    render = call.renderer(resource)
    how = await _delete_options(call)
    stored, is_gone = await call.services.writes.delete(
        resource, namespace, name, how, _deleting(call, how)
    )
    if is_gone and not resource.returned_when_gone:
        details = errors.details_of(resource, stored.name, uid=stored.uid)
        return call.answer(render, render.other(errors.success(details=details), STATUS))
    code = 202 if how.awaits_dependents and not is_gone else 200
    return call.answer(render, render.object(stored), code)


async def delete_collection(call: Call) -> ASGIApp:
    resource, namespace, _, _ = call.target
    render = call.renderer(resource)
    how = await _delete_options(call)
    context = _deleting(call, how)
    wanted, asked = reads.asked(resource, namespace, call.request.query, watch=False)
    portion = await reads.list_objects(call.services.store, wanted, asked, call.services.clock)
    for number, stored in enumerate(portion.objects, 1):
        try:
            await call.services.writes.delete(resource, *stored.key, how, context)
        except StatusError as exc:
            if exc.code != NOT_FOUND:  # somebody was faster
                raise
        if number % DELETED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return _listed(call, render, portion)


async def _apply(call: Call, content: bytes) -> Answer:
    resource, namespace, name, subresource = call.target
    render = call.renderer(resource)
    context, bodies = call.writing(resource, applies=True)
    applied = bodies.applied(content)
    stored, is_new = await call.services.writes.apply(
        resource,
        namespace,
        name,
        applied,
        context,
        force=options.flag(call.request.query, "force"),
        subresource=subresource,
        creating=lambda: _authorize_creation(call),
    )
    return _shown(call, render, stored, 201 if is_new else 200)


def _authorize_creation(call: Call) -> None:
    """Raise a 403 unless who may change the object may create it, too."""
    resource, namespace, name, _ = call.target
    creation = Attributes("create", resource.group, resource.plural, "", namespace, name)
    call.services.gate.authorize(call.request.user, creation)


def _shown(call: Call, render: Renderer, stored: Stored, code: int = 200) -> Answer:
    """Answer with an object, or the part of it that the request is about."""
    resource = call.target.resource
    part = PARTS[call.target.subresource]
    if part.speaks_own_kind:
        return call.answer(render, render.object(stored), code)
    shown = part.shown(resource, views.as_object(resource, stored))
    shown["metadata"].pop("managedFields", None)
    return call.answer(render, render.other(shown, part.kind(resource).schema))


def _listed(call: Call, render: Renderer, portion: reads.Portion) -> ASGIApp:
    """Return the answer that a list makes: at once when it is short, else while it is sent."""
    pieces = render.list(portion)
    if call.request.wants_pretty and render.media_type == JSON:
        pieces = pretty(pieces)
    ahead = chunks(pieces, call.services.clock)
    first, second = next(ahead), next(ahead, None)
    if second is None:
        return call.answer(render, first)
    rest = taking_turns(itertools.chain((first, second), ahead), call.pace())
    return call.stream(rest, render.media_type)


async def _delete_options(call: Call) -> DeleteOptions:
    content = await call.request.body()
    body = None
    if content.strip():
        body = read_plain(content, call.request.content_type, DELETE_OPTIONS)
        kind, version = body.get("kind"), body.get("apiVersion") or "v1"
        if kind not in (None, "DeleteOptions"):
            scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
            raise errors.bad_request(errors.not_registered(kind, version, scheme))
    found = options.delete_options(call.request.query, body)
    warning = call.target.resource.deletion_warning
    if warning and not found.propagation:
        call.warnings.append(warning)
    return found


def _deleting(call: Call, how: DeleteOptions) -> WriteContext:
    """Return what a deletion knows beside the object: its body may say ``dryRun``, too."""
    return WriteContext(call.request.user, "", how.dry_run, call.warnings)
