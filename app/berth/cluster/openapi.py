"""The OpenAPI documents: what ``kubectl apply``, ``explain`` and ``diff`` ask before they act.

One document per group and version (``/openapi/v3``), and all in one in the older form
(``/openapi/v2``), which is derived from the same. kubectl reads from them which fields there are,
how lists merge, and that the server validates fields itself. JSON, but for an empty document in
protobuf (see :mod:`berth.cluster.swagger`); else 406.
"""

from collections.abc import Mapping, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from berth.cluster import errors, swagger
from berth.cluster.bodies import PATCH_TYPES
from berth.cluster.descriptions import DESCRIPTIONS
from berth.cluster.discovery import by_path, cacheable, content_hash
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schema import (
    Field,
    ListOf,
    MapOf,
    Ref,
    Scalar,
    Type,
    model_of,
    reachable,
    schema,
    schema_name,
)
from berth.media_types import accepted

INDEX_TYPE = "text/plain; charset=utf-8"
"""The API server's content type for the index of documents, JSON though it is."""

JSON_TYPES = ("application/json", "application/*", "*/*")
GVK = "x-kubernetes-group-version-kind"
ONE_YEAR = 365 * 86400

SCALARS: Mapping[str, Object] = {
    "any": {"type": "object"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "string": {"type": "string"},
    "Time": {"type": "string", "format": "date-time"},
}
NAMED_SCALARS: Mapping[str, Object] = {
    "IntOrString": {
        "type": "string",
        "format": "int-or-string",
        "description": "A number, or a name or percentage.",
    },
    "Quantity": {
        "type": "string",
        "description": "A number with an optional unit, such as 500m, 1.5 or 2Gi.",
    },
}
"""Scalars that ``kubectl explain`` calls by a name of their own."""

WRITE_PARAMETERS = {
    "dryRun": "All: check everything, store nothing.",
    "fieldManager": "Who makes the change.",
    "fieldValidation": "What happens to unknown fields: Ignore, Warn or Strict.",
}


def routes(resources: Sequence[ResourceType]) -> list[Route]:
    """Return the routes of both OpenAPI forms for these kinds."""
    documents = {
        path: msgspec.json.encode(document(each)) for path, each in by_path(resources).items()
    }
    index = {
        "paths": {
            path.removeprefix("/"): {"serverRelativeURL": f"{_url(path)}?hash={content_hash(body)}"}
            for path, body in documents.items()
        }
    }
    whole = document(resources)
    return [
        _route(
            "/openapi/v2",
            msgspec.json.encode(swagger.from_v3(whole)),
            protobuf=swagger.empty_protobuf(whole["info"]),
        ),
        _route("/openapi/v3", msgspec.json.encode(index), content_type=INDEX_TYPE),
        *(_route(_url(path), body) for path, body in documents.items()),
    ]


def document(resources: Sequence[ResourceType]) -> Object:
    """Return the OpenAPI 3.0 document of these kinds."""
    paths: Object = {}
    for resource in resources:
        paths.update(paths_of(resource))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": schemas_of(resources)},
    }


def schemas_of(resources: Sequence[ResourceType]) -> Object:
    """Return the schemas of the kinds and of everything that their fields lead to."""
    kinds = {model_of(each): _gvk(each) for each in resources}
    found: Object = dict(NAMED_SCALARS)
    for model in sorted({each for kind in kinds for each in reachable(kind)}):
        found[schema_name(model)] = _schema(model)
    for model, gvk in kinds.items():
        found[schema_name(model)][GVK] = [gvk]
    return found


def paths_of(resource: ResourceType) -> Object:
    """Return the operations on a kind, by URL."""
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{resource.path}{scope}/{resource.plural}"
    item = f"{collection}/{{name}}"
    placeholders = ["namespace"] if resource.namespaced else []
    if not resource.is_stored:
        return {
            collection: {
                "parameters": [_path_parameter(each) for each in placeholders],
                "post": _operation(resource, "post", body=True),
            }
        }
    paths = {
        collection: {
            "parameters": [_path_parameter(each) for each in placeholders],
            "get": _operation(resource, "list"),
            "post": _operation(resource, "post", body=True),
        },
        item: {
            "parameters": [_path_parameter(each) for each in (*placeholders, "name")],
            "get": _operation(resource, "get"),
            "put": _operation(resource, "put", body=True),
            "patch": _patch_operation(resource),
            "delete": _operation(resource, "delete"),
        },
    }
    if "status" in resource.subresources:
        paths[f"{item}/status"] = {
            "parameters": [_path_parameter(each) for each in (*placeholders, "name")],
            "get": _operation(resource, "get"),
            "put": _operation(resource, "put", body=True),
            "patch": _patch_operation(resource),
        }
    return paths


def _operation(resource: ResourceType, action: str, *, body: bool = False) -> Object:
    found: Object = {
        "tags": [resource.group_version.replace("/", "_")],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        GVK: _gvk(resource),
    }
    if body:
        content = {"application/json": {"schema": _ref(schema_name(model_of(resource)))}}
        found["requestBody"] = {"content": content, "required": True}
        found["parameters"] = [
            _query_parameter(name, about) for name, about in WRITE_PARAMETERS.items()
        ]
    return found


def _patch_operation(resource: ResourceType) -> Object:
    found = _operation(resource, "patch", body=True)
    schema_of_patch = {"type": "object", "description": "The change, as its content type defines."}
    found["requestBody"]["content"] = {each: {"schema": schema_of_patch} for each in PATCH_TYPES}
    return found


def _query_parameter(name: str, about: str) -> Object:
    return {"name": name, "in": "query", "description": about, "schema": {"type": "string"}}


def _path_parameter(name: str) -> Object:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _gvk(resource: ResourceType) -> Object:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _ref(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}


def _schema(model: str) -> Object:
    fields = schema(model).fields
    found: Object = {
        "type": "object",
        "properties": {name: _property(field) for name, field in fields.items()},
    }
    if model in DESCRIPTIONS:
        found["description"] = DESCRIPTIONS[model]
    required = [name for name, field in fields.items() if field.required]
    if required:
        found["required"] = required
    return found


def _property(field: Field) -> Object:
    found = _type(field.type)
    if "$ref" in found:
        found = {"allOf": [found]}  # beside a bare reference, OpenAPI 3.0 ignores everything
    if field.description:
        found["description"] = field.description
    if field.merge is not None:
        found["x-kubernetes-patch-strategy"] = field.merge.strategy
        if field.merge.key:
            found["x-kubernetes-patch-merge-key"] = field.merge.key
    return found


def _type(each: Type) -> Object:
    match each:
        case Scalar(name) if name in SCALARS:
            return dict(SCALARS[name])
        case Scalar(name):
            return _ref(name)
        case ListOf(item):
            return {"type": "array", "items": _type(item)}
        case MapOf(value):
            return {"type": "object", "additionalProperties": _type(value)}
        case Ref(model):
            return _ref(schema_name(model))


def _url(path: str) -> str:
    return f"/openapi/v3{path}"


def _route(
    path: str,
    body: bytes,
    *,
    content_type: str = "application/json",
    protobuf: bytes | None = None,
) -> Route:
    """Serve a document; for ever to those who ask for it by its hash, as the index says.

    *protobuf* is for those who take :data:`berth.cluster.swagger.PROTOBUF_TYPES` only.
    """
    current = content_hash(body)

    async def answer(request: Request) -> Response:
        accept = request.headers.get("accept", "*/*")
        offers = {media_range.type for media_range in accepted(accept)}
        if offers.isdisjoint(JSON_TYPES):
            if protobuf is not None and not offers.isdisjoint(swagger.PROTOBUF_TYPES):
                return cacheable(request, protobuf, swagger.PROTOBUF_TYPES[0])
            refusal = msgspec.json.encode(errors.not_acceptable().status())
            return Response(refusal, 406, media_type="application/json")
        asked = request.query_params.get("hash")
        if asked not in (None, current):
            return RedirectResponse(f"{path}?hash={current}", status_code=301)
        response = cacheable(request, body, content_type)
        if asked:
            response.headers["Cache-Control"] = f"public, max-age={ONE_YEAR}, immutable"
        return response

    return Route(path, answer, methods=["GET"])
