"""Discovery: ``/api``, ``/apis`` and what is below.

Two forms of the same: the old one, a document per group and version, and the aggregated one, all
in two documents, which kubectl asks for. Both are computed once for the kinds of the moment.
"""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from berth.cluster.kinds.registry import by_group, by_path
from berth.cluster.resources import Object, ResourceType
from berth.runtime.media_types import accepted

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
JSON = "application/json"

HASH_BYTES = 8
"""Of a SHA-256, those in ``storageVersionHash``."""


def routes(resources: Sequence[ResourceType]) -> list[Route]:
    """Return the routes of discovery for these kinds."""
    core = [resource for resource in resources if not resource.group]
    grouped = [resource for resource in resources if resource.group]
    found = [
        _route("/api", lambda address: api_versions(core, address), aggregated(core)),
        _route("/apis", api_group_list(grouped), aggregated(grouped)),
        *(_route(path, resource_list(each)) for path, each in by_path(resources).items()),
    ]
    for group, members in by_group(grouped).items():
        document = {"kind": "APIGroup", "apiVersion": "v1", **api_group(group, members)}
        found.append(_route(f"/apis/{group}", document))
    return found


def aggregated(resources: Iterable[ResourceType]) -> Object:
    """Return an ``apidiscovery.k8s.io/v2`` APIGroupDiscoveryList."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": members[0].version,
                        "resources": [
                            aggregated_resource(member)
                            for member in sorted(members, key=lambda each: each.plural)
                        ],
                        "freshness": "Current",
                    }
                    for members in by_path(group_members).values()
                ],
            }
            for group, group_members in by_group(resources).items()
        ],
    }


def aggregated_resource(resource: ResourceType) -> Object:
    """Return one kind as the aggregated form says it: with its subresources inside."""
    found: Object = {
        "resource": resource.plural,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    if resource.subresources:
        found["subresources"] = [
            {
                "subresource": each.name,
                "responseKind": {
                    "group": each.group,
                    "version": each.version,
                    "kind": each.kind or resource.kind,
                },
                "verbs": list(each.verbs),
            }
            for _, each in sorted(resource.subresources.items())
        ]
    return found


def api_versions(resources: Iterable[ResourceType], address: str) -> Object:
    """Return what the old form says at ``/api``; *address* is where the server is reached."""
    return {
        "kind": "APIVersions",
        "versions": list(dict.fromkeys(resource.version for resource in resources)),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_group_list(resources: Iterable[ResourceType]) -> Object:
    """Return what the old form says at ``/apis``."""
    groups = [api_group(group, members) for group, members in by_group(resources).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(group: str, resources: Iterable[ResourceType]) -> Object:
    """Return a group with its versions, the preferred one first."""
    versions = [
        {"groupVersion": members[0].group_version, "version": members[0].version}
        for members in by_path(resources).values()
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def resource_list(resources: Sequence[ResourceType]) -> Object:
    """Return what the old form says of one group and version."""
    entries: list[Object] = []
    for resource in resources:
        entry: Object = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(resource.verbs),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        if "create" in resource.verbs and resource.is_stored:
            entry["storageVersionHash"] = storage_version_hash(resource)
        entries.append(entry)
        for subresource in resource.subresources.values():
            group, version = subresource.group, subresource.version
            foreign = {"group": group, "version": version} if group else {}
            entries.append(
                {
                    "name": f"{resource.plural}/{subresource.name}",
                    "singularName": "",
                    "namespaced": resource.namespaced,
                    **foreign,
                    "kind": subresource.kind or resource.kind,
                    "verbs": list(subresource.verbs),
                }
            )
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": resources[0].group_version,
        "resources": sorted(entries, key=lambda entry: entry["name"]),
    }


def storage_version_hash(resource: ResourceType) -> str:
    """Return what changes when objects are kept in another version: a hash of it."""
    stored_as = resource.storage_version or resource.group_version
    if "/" not in stored_as:
        stored_as = f"/{stored_as}"
    digest = hashlib.sha256(f"{stored_as}/{resource.kind}".encode()).digest()
    return b64encode(digest[:HASH_BYTES]).decode()


def _route(
    path: str,
    document: Object | Callable[[str], Object],
    aggregated_document: Object | None = None,
) -> Route:
    """Serve *document* at *path*, in the aggregated form to clients that prefer it.

    It may depend on the address at which the client reaches the server.
    """
    plain = b"" if callable(document) else msgspec.json.encode(document)
    whole = None if aggregated_document is None else msgspec.json.encode(aggregated_document)

    async def answer(request: Request) -> Response:
        if whole is not None and wants_aggregated(request.headers.get("accept", "")):
            return cacheable(request, whole, AGGREGATED)
        if callable(document):
            made = msgspec.json.encode(document(address_of(request)))
            return cacheable(request, made, JSON)
        return cacheable(request, plain, JSON)

    return Route(path, answer, methods=["GET"])


def address_of(request: Request) -> str:
    """Return host and port at which the client reached this server."""
    host, port = request.scope.get("server") or ("localhost", None)
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if port else host


def wants_aggregated(accept: str) -> bool:
    """Tell whether the aggregated form is the first in *accept* that this server has."""
    (aggregated,) = accepted(AGGREGATED)
    for media_range in accepted(accept):
        if media_range.type in (JSON, "application/*", "*/*"):
            asked = {k: v for k, v in media_range.parameters.items() if k != "q"}
            if asked == aggregated.parameters:
                return True
            if not asked:
                return False
    return False


def cacheable(request: Request, body: bytes, content_type: str) -> Response:
    """Return *body*, or 304 when the client says by its ETag that it has it already."""
    etag = f'"{content_hash(body)}"'
    headers = {"ETag": etag, "Vary": "Accept", "Content-Type": content_type}
    if etag in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers={"ETag": etag, "Vary": "Accept"})
    return Response(body, headers=headers)


def content_hash(body: bytes) -> str:
    """Return what names this content in ETags and in the ``hash`` of OpenAPI URLs."""
    return hashlib.sha512(body).hexdigest().upper()
