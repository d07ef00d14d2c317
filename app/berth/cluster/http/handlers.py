"""The handlers of requests: one table."""

from collections.abc import Mapping
from typing import Final

from berth.cluster import errors
from berth.cluster.http import actions, objects, resource_metrics
from berth.cluster.http.call import Handler
from berth.cluster.http.paths import Target
from berth.cluster.http.subresources import connections, pod_logs
from berth.cluster.resource_paths import WATCH

Methods = Mapping[str, Handler]

COLLECTION: Final[Methods] = {
    "DELETE": objects.delete_collection,
    "GET": objects.list_or_watch,
    "POST": objects.create,
}
OBJECT: Final[Methods] = {
    "DELETE": objects.delete,
    "GET": objects.get,
    "PATCH": objects.patch,
    "PUT": objects.put,
}
QUESTION: Final[Methods] = {"POST": actions.answer}
"""Of kinds that are not stored."""

MEASURED_COLLECTION: Final[Methods] = {"GET": resource_metrics.list_all}
MEASURED_OBJECT: Final[Methods] = {"GET": resource_metrics.get}
"""Of kinds whose objects are made when somebody asks."""

PART: Final[Methods] = {"GET": objects.get, "PATCH": objects.patch, "PUT": objects.put}
ACTION: Final[Methods] = {"POST": actions.act}


def connecting(handler: Handler) -> Methods:
    """Return the methods of a connection to a container: GET for WebSockets, POST for SPDY."""
    return {"GET": handler, "POST": handler}


def proxied(handler: Handler) -> Methods:
    """Return the methods that are passed on to somebody behind the API server."""
    return dict.fromkeys(("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"), handler)


SUBRESOURCES: Final[Mapping[str, Methods]] = {
    "approval": PART,
    "attach": connecting(connections.attach),
    "binding": ACTION,
    "ephemeralcontainers": PART,
    "eviction": ACTION,
    "exec": connecting(connections.execute),
    "finalize": {"PUT": objects.put},
    "log": {"GET": pod_logs.logs},
    "portforward": connecting(connections.port_forward),
    "proxy": proxied(connections.proxy),
    "resize": PART,
    "scale": PART,
    "status": PART,
    "token": ACTION,
    WATCH: {"GET": objects.watch},
}
"""By name: watches by path, and what
:data:`~berth.cluster.kinds.builtin.SERVED_SUBRESOURCES` announces."""

COLLECTION_VERBS: Final = {"DELETE": "deletecollection", "GET": "list", "POST": "create"}
OBJECT_VERBS: Final = {"DELETE": "delete", "GET": "get", "PATCH": "patch", "PUT": "update"}


def handler_of(method: str, target: Target) -> Handler:
    """Return who answers *method* on *target*, or raise a 405."""
    resource = target.resource
    is_custom = resource.structural is not None
    if is_custom and resource.namespaced and not target.namespace and method != "GET":
        # Its handler in Kubernetes does not know such a path; that of built-in kinds does.
        raise errors.path_not_found()
    if target.subresource:
        methods, is_served = SUBRESOURCES[target.subresource], True
    elif resource.is_measured:
        methods, is_served = MEASURED_OBJECT if target.name else MEASURED_COLLECTION, True
    elif not resource.is_stored:
        if target.name:
            raise errors.path_not_found()
        methods, is_served = QUESTION, True
    elif target.name:
        methods, is_served = OBJECT, OBJECT_VERBS.get(method) in resource.verbs
    else:
        methods, is_served = COLLECTION, COLLECTION_VERBS.get(method) in resource.verbs
    handler = methods.get(method)
    if handler is None or not is_served:
        raise errors.method_not_allowed()
    return handler
