"""Resources that are only posted: actions below objects, and reviews."""

from starlette.types import ASGIApp

from berth.cluster import errors
from berth.cluster.http.call import Call
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.subresources.action import Action
from berth.cluster.writes.subresources.binding import BINDING, BINDINGS

PODS = find("", "v1", "pods")


async def act(call: Call) -> ASGIApp:
    """Do to an object what the subresource stands for."""
    action = call.services.actions[call.target.subresource]
    context, body = await _read(call, action.kind)
    return await _acted(call, action, call.target.resource, call.target.name, body, context)


async def answer(call: Call) -> ASGIApp:
    """Answer an object of a kind that is not stored: a question, or a Binding that names a pod."""
    resource, namespace, _, _ = call.target
    if resource.namespaced and not namespace:
        raise errors.method_not_allowed()
    context, body = await _read(call, resource)
    if resource.storage_key == BINDINGS.storage_key:
        name = body["metadata"].get("name") or ""
        return await _acted(call, call.services.actions[BINDING], PODS, name, body, context)
    call.services.writes.own(None, body, resource, "", context)
    answered = call.services.reviews.answer(resource, body, call.request.user, namespace)
    return call.other(answered, resource.schema, 201)


async def _read(call: Call, kind: ResourceType) -> tuple[WriteContext, Object]:
    request = call.request
    content = await request.body()
    context, bodies = call.writing(kind)
    return context, bodies.read(content, request.content_type)


async def _acted(
    call: Call,
    action: Action,
    resource: ResourceType,
    name: str,
    body: Object,
    context: WriteContext,
) -> ASGIApp:
    outcome = await call.services.writes.act(
        action, resource, call.target.namespace, name, body, context
    )
    return call.other(outcome.obj, outcome.schema, 201)
