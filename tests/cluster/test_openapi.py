"""The OpenAPI documents: whole, and with what kubectl reads from them."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import yaml
from starlette.applications import Starlette

from berth.cluster.http import openapi
from berth.cluster.http.bodies import PATCH_TYPES
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.kinds.registry import by_path
from berth.cluster.kinds.resource_metrics import MEASURED
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.protobuf import raw_fields

WRITTEN = [each for each in RESOURCES if "patch" in each.verbs]


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = Starlette(routes=openapi.routes(RESOURCES, openapi.Documents()))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as client:
        yield client


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def resolve(document: Object, reference: str) -> Any:
    found: Any = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


async def documents(client: httpx.AsyncClient) -> dict[str, Object]:
    index = (await client.get("/openapi/v3")).json()
    return {
        path: (await client.get(entry["serverRelativeURL"])).json()
        for path, entry in index["paths"].items()
    }


async def test_the_index_leads_to_a_document_per_group_and_version(
    client: httpx.AsyncClient,
) -> None:
    found = await documents(client)
    assert {path.strip("/") for path in by_path(RESOURCES)} == found.keys()
    assert len(found) == 24
    assert sorted(found)[:3] == [
        "api/v1",
        "apis/admissionregistration.k8s.io/v1",
        "apis/apiextensions.k8s.io/v1",
    ]


async def test_every_reference_leads_somewhere(client: httpx.AsyncClient) -> None:
    found = [*(await documents(client)).values(), (await client.get("/openapi/v2")).json()]
    for document in found:
        targets = {*references(document)}
        assert targets
        assert all(isinstance(resolve(document, target), dict) for target in targets)


@pytest.mark.parametrize("resource", WRITTEN, ids=lambda each: each.group_version + each.kind)
def test_kubectl_finds_each_kind_and_what_its_patch_takes(resource: ResourceType) -> None:
    document = openapi.document(by_path(RESOURCES)[resource.path])
    gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    schemas = document["components"]["schemas"].values()
    assert [schema for schema in schemas if schema.get(openapi.GVK) == [gvk]]
    [patch] = [
        item["patch"]
        for path, item in document["paths"].items()
        if path.endswith("{name}") and item["patch"][openapi.GVK] == gvk
    ]
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    parameters = {parameter["name"]: parameter["in"] for parameter in patch["parameters"]}
    assert parameters["fieldValidation"] == parameters["dryRun"] == "query"


def test_a_kind_says_what_it_is() -> None:
    document = openapi.document(by_path(RESOURCES)["/apis/apps/v1"])
    said = "Deployment enables declarative updates for Pods and ReplicaSets."
    schemas = document["components"]["schemas"]
    assert schemas["io.k8s.api.apps.v1.Deployment"]["description"] == said


def test_a_merging_list_says_so() -> None:
    document = openapi.document(by_path(RESOURCES)["/api/v1"])
    properties = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    containers = dict(properties["containers"])
    assert containers.pop("description")
    assert containers == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "name",
    }
    assert "x-kubernetes-patch-strategy" not in properties["tolerations"]


async def test_swagger_says_the_same(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi/v2")).json()
    assert document["swagger"] == "2.0"
    pod = document["definitions"]["io.k8s.api.core.v1.Pod"]
    assert pod[openapi.GVK] == [{"group": "", "kind": "Pod", "version": "v1"}]
    spec = dict(pod["properties"]["spec"])
    assert spec.pop("description").startswith("Specification of the desired behavior of the pod.")
    assert spec == {"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert patch["consumes"] == [*PATCH_TYPES]
    assert {"name": "dryRun", "in": "query", "type": "string"}.items() <= patch["parameters"][
        0
    ].items()
    assert patch["parameters"][-1]["in"] == "body"


async def test_swagger_tells_of_lists_and_watches(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi/v2")).json()
    services = document["definitions"]["io.k8s.api.core.v1.ServiceList"]
    assert services[openapi.GVK] == [{"group": "", "kind": "ServiceList", "version": "v1"}]
    items = services["properties"]["items"]
    assert items["items"] == {"$ref": "#/definitions/io.k8s.api.core.v1.Service"}
    assert items["description"].startswith("List of services.")
    found = document["paths"]["/api/v1/namespaces/{namespace}/services"]["get"]["parameters"]
    parameters = {each["name"]: each for each in found}
    assert parameters["watch"]["type"] == "boolean"
    assert "Watch for changes to the described resources" in parameters["watch"]["description"]
    assert "list of returned" in parameters["labelSelector"]["description"]


async def test_a_document_asked_for_by_its_hash_is_good_for_a_year(
    client: httpx.AsyncClient,
) -> None:
    index = (await client.get("/openapi/v3")).json()
    url = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
    by_hash, plain = await client.get(url), await client.get("/openapi/v3/apis/apps/v1")
    assert by_hash.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "cache-control" not in plain.headers
    assert by_hash.content == plain.content


async def test_an_old_hash_is_sent_to_the_new_one(client: httpx.AsyncClient) -> None:
    response = await client.get("/openapi/v3/apis/apps/v1?hash=OLD")
    assert response.status_code == 301
    index = (await client.get("/openapi/v3")).json()
    assert response.headers["location"] == index["paths"]["apis/apps/v1"]["serverRelativeURL"]


async def test_the_index_is_cached_and_has_the_content_type_of_a_real_one(
    client: httpx.AsyncClient,
) -> None:
    first = await client.get("/openapi/v3")
    assert first.headers["content-type"] == "text/plain; charset=utf-8"
    again = {"If-None-Match": first.headers["etag"]}
    assert (await client.get("/openapi/v3", headers=again)).status_code == 304


def entries(message: Any, number: int) -> dict[str, bytes]:
    """Return what a message has in a field of names and values."""
    pairs = (dict(raw_fields(value)) for field, value in raw_fields(message) if field == number)
    return {bytes(pair[1]).decode(): bytes(pair[2]) for pair in pairs}


def only(message: Any, *numbers: int) -> Any:
    """Return what is in a field of a message, in a field of that, and so on."""
    for number in numbers:
        (message,) = (value for field, value in raw_fields(message) if field == number)
    return message


async def test_swagger_as_protobuf_says_the_same(client: httpx.AsyncClient) -> None:
    accept = {"Accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
    response = await client.get("/openapi/v2", headers=accept)
    want = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert (response.status_code, response.headers["content-type"]) == (200, want)
    json, message = (await client.get("/openapi/v2")).json(), response.content
    assert bytes(only(message, 1)) == b"2.0"
    assert bytes(only(message, 2, 1)) == b"Kubernetes"

    definitions = entries(only(message, 9), 1)
    assert definitions.keys() == json["definitions"].keys()
    name = "io.k8s.api.apps.v1.DeploymentSpec"
    said, spec = json["definitions"][name], definitions[name]
    assert bytes(only(spec, 22, 1)).decode() == said["type"] == "object"
    assert [bytes(v).decode() for n, v in raw_fields(spec) if n == 19] == said["required"]
    properties = entries(only(spec, 25), 1)
    assert properties.keys() == said["properties"].keys()
    template = said["properties"]["template"]
    assert bytes(only(properties["template"], 1)).decode() == template["$ref"]
    kinds = only(definitions["io.k8s.api.apps.v1.Deployment"], 31)
    assert bytes(only(kinds, 1)) == b"x-kubernetes-group-version-kind"
    assert yaml.safe_load(bytes(only(kinds, 2, 2))) == [
        {"group": "apps", "kind": "Deployment", "version": "v1"}
    ]
    items = definitions["io.k8s.api.core.v1.PodSpec"]
    assert only(entries(only(items, 25), 1)["nodeSelector"], 21, 1)
    assert bytes(only(entries(only(items, 25), 1)["containers"], 23, 1, 1)).endswith(b".Container")

    paths = entries(only(message, 8), 2)
    assert paths.keys() == json["paths"].keys()
    create = only(paths["/api/v1/namespaces/{namespace}/pods"], 4)
    (body,) = (
        only(parameter, 1, 1)
        for number, parameter in raw_fields(create)
        if number == 8 and [field for field, _ in raw_fields(only(parameter, 1))] == [1]
    )
    assert bytes(only(body, 5, 1)) == b"#/definitions/io.k8s.api.core.v1.Pod"
    assert entries(only(create, 9), 1).keys() == {"200"}


def empty_parts(value: Any, path: str = "") -> Iterator[str]:
    """Yield where OpenAPI says nothing where it could be silent; what a schema allows may be {}."""
    if isinstance(value, dict):
        for key, each in value.items():
            if each in ([], {}) and key in ("parameters", "required", "tags", "enum", "allOf"):
                yield f"{path}/{key}"
            yield from empty_parts(each, f"{path}/{key}")
    elif isinstance(value, list):
        for each in value:
            yield from empty_parts(each, path)


async def test_nothing_is_said_by_empty_lists(client: httpx.AsyncClient) -> None:
    """A client in Go drops them, and finds another document when it writes it again."""
    for document in [*(await documents(client)).values(), (await client.get("/openapi/v2")).json()]:
        assert list(empty_parts(document)) == []


async def test_swagger_has_types_for_what_may_be_several(client: httpx.AsyncClient) -> None:
    found = (await client.get("/openapi/v2")).json()["definitions"]
    port = found["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert port == {"type": "string", "format": "int-or-string"}
    assert found["io.k8s.apimachinery.pkg.api.resource.Quantity"] == {"type": "string"}
    properties = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    assert {"allOf", "anyOf", "oneOf"} <= found[properties]["properties"].keys()


async def test_other_documents_are_json_only(client: httpx.AsyncClient) -> None:
    accept = {"Accept": "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"}
    response = await client.get("/openapi/v3", headers=accept)
    assert (response.status_code, response.json()["reason"]) == (406, "NotAcceptable")


def test_a_question_can_only_be_asked() -> None:
    found = openapi.document([each for each in RESOURCES if "list" not in each.verbs])
    assert {path: sorted(set(item) - {"parameters"}) for path, item in found["paths"].items()} == {
        "/api/v1/namespaces/{namespace}/bindings": ["post"],
        "/apis/authentication.k8s.io/v1/selfsubjectreviews": ["post"],
        "/apis/authentication.k8s.io/v1/tokenreviews": ["post"],
        "/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews": ["post"],
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": ["post"],
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": ["post"],
        "/apis/authorization.k8s.io/v1/subjectaccessreviews": ["post"],
    }


def test_what_is_measured_can_only_be_read() -> None:
    found = openapi.document(MEASURED)
    item = "/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/{name}"
    assert {key for path in found["paths"].values() for key in path} == {"parameters", "get"}
    assert item in found["paths"]
    assert (
        "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetricsList" in found["components"]["schemas"]
    )
