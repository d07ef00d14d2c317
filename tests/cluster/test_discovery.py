"""Discovery: both forms, negotiated, and cached by content."""

import hashlib
import json
from base64 import b64encode
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette

from berth.cluster.http import discovery
from berth.cluster.http.discovery import AGGREGATED, wants_aggregated
from berth.cluster.kinds.builtin import RESOURCES, find
from berth.cluster.resources import VERBS

KUBECTL_ACCEPT = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = Starlette(routes=discovery.routes(RESOURCES))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as client:
        yield client


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        pytest.param(KUBECTL_ACCEPT, True, id="what kubectl says"),
        pytest.param("application/json, */*", False, id="plain JSON"),
        pytest.param("", False, id="nothing said"),
        pytest.param(f"application/json,{AGGREGATED}", False, id="plain JSON preferred"),
        pytest.param(f"application/vnd.kubernetes.protobuf,{AGGREGATED}", True, id="no protobuf"),
        pytest.param(
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
            False,
            id="only the beta form",
        ),
    ],
)
def test_negotiation(accept: str, want: bool) -> None:
    assert wants_aggregated(accept) is want


async def test_the_aggregated_form_has_every_kind_once(client: httpx.AsyncClient) -> None:
    found = []
    for path in ("/api", "/apis"):
        response = await client.get(path, headers={"Accept": KUBECTL_ACCEPT})
        assert response.headers["content-type"] == AGGREGATED
        for group in response.json()["items"]:
            for version in group["versions"]:
                name = group["metadata"].get("name", "")
                found += [(name, resource["resource"]) for resource in version["resources"]]
    assert sorted(found) == sorted((each.group, each.plural) for each in RESOURCES)


async def test_a_resource_of_the_aggregated_form(client: httpx.AsyncClient) -> None:
    response = await client.get("/apis", headers={"Accept": KUBECTL_ACCEPT})
    [apps] = [item for item in response.json()["items"] if item["metadata"]["name"] == "apps"]
    assert apps["versions"][0]["resources"][3] == {
        "resource": "replicasets",
        "responseKind": {"group": "", "version": "", "kind": "ReplicaSet"},
        "scope": "Namespaced",
        "singularResource": "replicaset",
        "verbs": [*VERBS],
        "shortNames": ["rs"],
        "categories": ["all"],
        "subresources": [
            {
                "subresource": "scale",
                "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                "verbs": ["get", "patch", "update"],
            },
            {
                "subresource": "status",
                "responseKind": {"group": "", "version": "", "kind": "ReplicaSet"},
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


async def test_the_old_form(client: httpx.AsyncClient) -> None:
    group_version = {"groupVersion": "coordination.k8s.io/v1", "version": "v1"}
    group = {
        "name": "coordination.k8s.io",
        "versions": [group_version],
        "preferredVersion": group_version,
    }
    assert (await client.get("/api")).json() == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "berth"}],
    }
    assert group in (await client.get("/apis")).json()["groups"]
    assert (await client.get("/apis/coordination.k8s.io")).json() == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        **group,
    }
    assert (await client.get("/apis/coordination.k8s.io/v1")).json() == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "coordination.k8s.io/v1",
        "resources": [
            {
                "name": "leases",
                "singularName": "lease",
                "namespaced": True,
                "kind": "Lease",
                "verbs": [*VERBS],
                "storageVersionHash": "gqkMMb/YqFM=",
            }
        ],
    }


async def test_evictions_are_announced_which_makes_kubectl_drain_evict(
    client: httpx.AsyncClient,
) -> None:
    resources = (await client.get("/api/v1")).json()["resources"]
    [eviction] = [resource for resource in resources if resource["name"] == "pods/eviction"]
    assert eviction == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }


async def test_nobody_deletes_all_namespaces_at_once(client: httpx.AsyncClient) -> None:
    resources = (await client.get("/api/v1")).json()["resources"]
    [namespaces] = [resource for resource in resources if resource["name"] == "namespaces"]
    assert "deletecollection" not in namespaces["verbs"]
    assert "delete" in namespaces["verbs"]


@pytest.mark.parametrize("accept", [KUBECTL_ACCEPT, "application/json"])
async def test_a_client_that_has_it_is_not_sent_it_again(
    client: httpx.AsyncClient, accept: str
) -> None:
    first = await client.get("/apis", headers={"Accept": accept})
    again = {"Accept": accept, "If-None-Match": first.headers["etag"]}
    second = await client.get("/apis", headers=again)
    assert (second.status_code, second.content) == (304, b"")
    assert json.loads(first.content)["kind"].startswith("APIGroup")


async def test_each_form_has_its_own_etag(client: httpx.AsyncClient) -> None:
    aggregated = await client.get("/api", headers={"Accept": KUBECTL_ACCEPT})
    plain = await client.get("/api")
    assert aggregated.headers["etag"] != plain.headers["etag"]
    assert plain.headers["vary"] == "Accept"


@pytest.mark.parametrize(
    ("path", "stored_as"),
    [
        pytest.param("apps/v1/deployments", "apps/v1/Deployment", id="in its own version"),
        pytest.param("events.k8s.io/v1/events", "/v1/Event", id="an event of the new group"),
        pytest.param(
            "autoscaling/v1/horizontalpodautoscalers",
            "autoscaling/v2/HorizontalPodAutoscaler",
            id="an autoscaler of the old version",
        ),
    ],
)
def test_the_hash_says_in_which_version_objects_are_kept(path: str, stored_as: str) -> None:
    digest = hashlib.sha256(stored_as.encode()).digest()
    resource = find(*path.split("/"))
    assert discovery.storage_version_hash(resource) == b64encode(digest[:8]).decode()
