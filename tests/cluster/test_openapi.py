"""The OpenAPI documents: whole, and with what kubectl reads from them."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from berth.cluster.http import openapi
from berth.cluster.http.bodies import PATCH_TYPES
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.kinds.registry import by_path
from berth.cluster.kinds.resource_metrics import MEASURED
from berth.cluster.resources import Object, ResourceType

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


async def test_who_takes_protobuf_only_gets_an_empty_document(client: httpx.AsyncClient) -> None:
    accept = {"Accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
    response = await client.get("/openapi/v2", headers=accept)
    want = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert (response.status_code, response.headers["content-type"]) == (200, want)
    info = b"\n\nKubernetes\x12\x0bunversioned"
    assert response.content == b"\n\x032.0\x12" + bytes([len(info)]) + info + b"B\0"


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
