"""The OpenAPI documents: what ``kubectl apply``, ``explain`` and ``diff`` ask before they act.

One document per group and version (``/openapi/v3``), and all in one in the older form
(``/openapi/v2``), which is derived from the same. kubectl reads from them which fields there are,
how lists merge, and that the server validates fields itself. JSON, and the older form in protobuf,
too; else 406.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from berth.cluster import errors
from berth.cluster.http import custom_openapi, swagger, swagger_protobuf
from berth.cluster.http.bodies import PATCH_TYPES, PATCH_TYPES_OF_CUSTOM_RESOURCES
from berth.cluster.http.discovery import cacheable, content_hash
from berth.cluster.kinds.registry import by_path
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import (
    Field,
    ListOf,
    MapOf,
    Scalar,
    Schema,
    Type,
    reachable,
)
from berth.runtime.media_types import accepted

INDEX_TYPE = "text/plain; charset=utf-8"
"""The API server's content type for the index of documents, JSON though it is."""

JSON_TYPES = ("application/json", "application/*", "*/*")
INFO = {"title": "Kubernetes", "version": "unversioned"}
GVK = "x-kubernetes-group-version-kind"
ONE_YEAR = 365 * 86400

SCALARS: Mapping[str, Object] = {
    "boolean": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "number": {"type": "number", "format": "double"},
    "string": {"type": "string"},
}
META = "io.k8s.apimachinery.pkg."
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
NAMED_SCALARS: Mapping[str, tuple[str, Object]] = {
    "FieldsV1": (META + "apis.meta.v1.FieldsV1", {"type": "object"}),
    "IntOrString": (
        META + "util.intstr.IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    "JSON": (EXTENSIONS + "JSON", {}),
    "JSONSchemaPropsOrArray": (EXTENSIONS + "JSONSchemaPropsOrArray", {}),
    "JSONSchemaPropsOrBool": (EXTENSIONS + "JSONSchemaPropsOrBool", {}),
    "JSONSchemaPropsOrStringArray": (EXTENSIONS + "JSONSchemaPropsOrStringArray", {}),
    "MicroTime": (META + "apis.meta.v1.MicroTime", {"type": "string", "format": "date-time"}),
    "Quantity": (
        META + "api.resource.Quantity",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    "RawExtension": (META + "runtime.RawExtension", {"type": "object"}),
    "Time": (META + "apis.meta.v1.Time", {"type": "string", "format": "date-time"}),
}
"""Scalars that are schemas of their own: their name, and what they are."""

WRITE_PARAMETERS = {
    "dryRun": "All: check everything, store nothing.",
    "fieldManager": "Who makes the change.",
    "fieldValidation": "What happens to unknown fields: Ignore, Warn or Strict.",
}

LIST_PARAMETERS = {
    "allowWatchBookmarks": ("boolean", "Whether a watch has bookmarks."),
    "continue": ("string", "Where the previous page ended."),
    "fieldSelector": ("string", "Restricts the list of returned objects by their fields."),
    "labelSelector": ("string", "Restricts the list of returned objects by their labels."),
    "limit": ("integer", "How many objects a page has at most."),
    "resourceVersion": ("string", "How new the objects must be, or where a watch begins."),
    "resourceVersionMatch": ("string", "What resourceVersion means: NotOlderThan or Exact."),
    "sendInitialEvents": ("boolean", "Whether a watch begins with the objects that are there."),
    "timeoutSeconds": ("integer", "When a watch ends."),
    "watch": (
        "boolean",
        "Watch for changes to the described resources, instead of a list: a stream of events.",
    ),
}


class Document(NamedTuple):
    """The document of a group and version, as it is sent."""

    resources: Sequence[ResourceType]
    body: bytes
    hash: str


class Documents:
    """The documents of groups and versions, each made once for the kinds that it describes.

    They outlive the routes, which are made anew whenever a kind comes or goes; those of a group and
    version without kinds go with the last of them.
    """

    def __init__(self) -> None:
        self._made: dict[str, Document] = {}

    def keep(self, paths: Collection[str]) -> None:
        """Forget the documents of other paths."""
        self._made = {path: made for path, made in self._made.items() if path in paths}

    def of(self, path: str, resources: Sequence[ResourceType]) -> Document:
        """Return the document of these kinds, which are all below *path*."""
        made = self._made.get(path)
        if made is None or [*map(id, made.resources)] != [*map(id, resources)]:
            body = msgspec.json.encode(document(resources))
            made = self._made[path] = Document(resources, body, content_hash(body))
        return made


def routes(resources: Sequence[ResourceType], documents: Documents) -> list[Route]:
    """Return the routes of both OpenAPI forms for these kinds."""
    paths = by_path(resources)
    documents.keep(paths)

    def body(path: str) -> bytes:
        return documents.of(path, paths[path]).body

    @cache
    def index() -> bytes:
        urls = {
            path.removeprefix("/"): {
                "serverRelativeURL": f"{_url(path)}?hash={documents.of(path, members).hash}"
            }
            for path, members in paths.items()
        }
        return msgspec.json.encode({"paths": urls})

    @cache
    def whole() -> bytes:
        return msgspec.json.encode(swagger.from_v3(document(resources, v2=True)))

    @cache
    def whole_as_protobuf() -> bytes:
        return swagger_protobuf.as_protobuf(msgspec.json.decode(whole()))

    return [
        _route("/openapi/v2", whole, protobuf=whole_as_protobuf),
        _route("/openapi/v3", index, content_type=INDEX_TYPE),
        *(_route(_url(path), partial(body, path)) for path in paths),
    ]


def document(resources: Sequence[ResourceType], *, v2: bool = False) -> Object:
    """Return the OpenAPI 3.0 document of these kinds; with *v2* one that becomes Swagger 2.0."""
    paths: Object = {}
    for resource in resources:
        paths.update(paths_of(resource))
    return {
        "openapi": "3.0.0",
        "info": INFO,
        "paths": paths,
        "components": {"schemas": schemas_of(resources, v2=v2)},
    }


def schemas_of(resources: Sequence[ResourceType], *, v2: bool = False) -> Object:
    """Return the schemas of the kinds and of everything that their fields lead to."""
    kinds = {each.schema: _gvk(each) for each in resources if each.structural is None}
    found: Object = dict(NAMED_SCALARS.values())
    roots = [*kinds, builtin.meta("ObjectMeta"), builtin.meta("ListMeta")]
    for schema in {each: None for root in roots for each in reachable(root)}:
        found[schema.name] = _schema(schema)
    for schema, gvk in kinds.items():
        found[schema.name][GVK] = [gvk]
    for resource in resources:
        if resource.structural is not None:
            found |= custom_openapi.schemas_of(resource, v2=v2)
        elif "list" in resource.verbs:
            found |= custom_openapi.schema_of_list(resource)
    return dict(sorted(found.items()))


def paths_of(resource: ResourceType) -> Object:
    """Return the operations on a kind, by URL."""
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{resource.path}{scope}/{resource.plural}"
    item = f"{collection}/{{name}}"
    placeholders = ["namespace"] if resource.namespaced else []
    of_all, of_one = _in_path(placeholders), _in_path([*placeholders, "name"])
    if resource.is_measured:
        return {
            collection: {**of_all, "get": _list_operation(resource)},
            item: {**of_one, "get": _operation(resource, "get")},
        }
    if not resource.is_stored:
        return {collection: {**of_all, "post": _operation(resource, "post", body=True)}}
    paths = {
        collection: {
            **of_all,
            "get": _list_operation(resource),
            "post": _operation(resource, "post", body=True),
        },
        item: {
            **of_one,
            "get": _operation(resource, "get"),
            "put": _operation(resource, "put", body=True),
            "patch": _patch_operation(resource),
            "delete": _operation(resource, "delete"),
        },
    }
    if "status" in resource.subresources:
        paths[f"{item}/status"] = {
            **of_one,
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
        content = {"application/json": {"schema": _ref(resource.schema.name)}}
        found["requestBody"] = {"content": content, "required": True}
        found["parameters"] = [
            _query_parameter(name, about) for name, about in WRITE_PARAMETERS.items()
        ]
    return found


def _patch_operation(resource: ResourceType) -> Object:
    found = _operation(resource, "patch", body=True)
    schema_of_patch = {"type": "object", "description": "The change, as its content type defines."}
    types = PATCH_TYPES if resource.structural is None else PATCH_TYPES_OF_CUSTOM_RESOURCES
    found["requestBody"]["content"] = {each: {"schema": schema_of_patch} for each in types}
    return found


def _list_operation(resource: ResourceType) -> Object:
    parameters = [
        _query_parameter(name, about, type_) for name, (type_, about) in LIST_PARAMETERS.items()
    ]
    return {**_operation(resource, "list"), "parameters": parameters}


def _query_parameter(name: str, about: str, type_: str = "string") -> Object:
    return {"name": name, "in": "query", "description": about, "schema": {"type": type_}}


def _in_path(names: Sequence[str]) -> Object:
    """Return the parameters of a path; nothing where it has none."""
    said = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]
    return {"parameters": said} if said else {}


def _gvk(resource: ResourceType) -> Object:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _ref(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}


def _schema(schema: Schema) -> Object:
    said = builtin.descriptions(schema.name)
    properties = {name: _property(each, said.get(name, "")) for name, each in schema.fields.items()}
    found: Object = {"type": "object", "properties": properties}
    if description := builtin.description(schema.name):
        found["description"] = description
    required = [name for name, field in schema.fields.items() if field.is_required]
    if required:
        found["required"] = required
    if schema.map_type:
        found["x-kubernetes-map-type"] = schema.map_type
    return found


def _property(field: Field, description: str) -> Object:
    found = _type(field.type)
    if "$ref" in found:
        found = {"allOf": [found]}  # beside a bare reference, OpenAPI 3.0 ignores everything
    for key, value in (
        ("description", description),
        ("default", field.default),
        ("enum", list(field.enum)),
        ("x-kubernetes-list-type", field.list_type),
        ("x-kubernetes-list-map-keys", list(field.list_keys)),
        ("x-kubernetes-map-type", field.map_type),
        ("x-kubernetes-patch-strategy", field.patch_strategy),
        ("x-kubernetes-patch-merge-key", field.merge_key),
    ):
        if value:
            found[key] = value
    return found


def _type(each: Type) -> Object:
    match each:
        case Scalar(name) if name in SCALARS:
            return dict(SCALARS[name])
        case Scalar(name):
            return _ref(NAMED_SCALARS[name][0])
        case ListOf(item):
            return {"type": "array", "items": _type(item)}
        case MapOf(value):
            return {"type": "object", "additionalProperties": _type(value)}
        case Schema():
            return _ref(each.name)


def _url(path: str) -> str:
    return f"/openapi/v3{path}"


def _route(
    path: str,
    make: Callable[[], bytes],
    *,
    content_type: str = "application/json",
    protobuf: Callable[[], bytes] | None = None,
) -> Route:
    """Serve a document, made when it is asked for.

    It is good for ever to those who ask for it by its hash, as the index says.

    *protobuf* makes it for those who take :data:`berth.cluster.http.swagger.PROTOBUF_TYPES` only.
    """

    async def answer(request: Request) -> Response:
        accept = request.headers.get("accept", "*/*")
        offers = {media_range.type for media_range in accepted(accept)}
        if offers.isdisjoint(JSON_TYPES):
            if protobuf is not None and not offers.isdisjoint(swagger.PROTOBUF_TYPES):
                return cacheable(request, protobuf(), swagger.PROTOBUF_TYPES[0])
            refusal = msgspec.json.encode(errors.not_acceptable(JSON_TYPES[:1]).status())
            return Response(refusal, 406, media_type="application/json")
        body = make()
        asked, current = request.query_params.get("hash"), content_hash(body)
        if asked not in (None, current):
            return RedirectResponse(f"{path}?hash={current}", status_code=301)
        response = cacheable(request, body, content_type)
        if asked:
            response.headers["Cache-Control"] = f"public, max-age={ONE_YEAR}, immutable"
        return response

    return Route(path, answer, methods=["GET"])
