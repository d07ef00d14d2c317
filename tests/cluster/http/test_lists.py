"""Lists: selectors, pages, versions, forms."""

import asyncio
from typing import Any

import pytest

from berth.cluster.http.list_options import list_options
from berth.cluster.http.reads import LOOKED_AT, asked, list_objects
from berth.cluster.kinds.builtin import find
from berth.cluster.storage.store import Store
from berth.runtime.clock import FakeClock
from tests.cluster.serving import Serving, pod, status

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def serving() -> Serving:
    return Serving()


def names(answer: Any) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]


async def test_items_do_not_say_their_kind(serving: Serving) -> None:
    await serving.pods("p")
    one = await serving.get(f"{PODS}/p")
    want = {key: value for key, value in one.items() if key not in ("kind", "apiVersion")}
    assert await serving.get(PODS) == {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "2"},
        "items": [want],
    }


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/api/v1/pods", ["a", "b", "c"], id="all namespaces"),
        pytest.param("/api/v1/namespaces/two/pods", ["c"], id="one namespace"),
        pytest.param("/api/v1/namespaces/none/pods", [], id="an empty namespace"),
        pytest.param("/api/v1/pods?labelSelector=app%3Dx", ["a", "c"], id="labels"),
        pytest.param("/api/v1/pods?labelSelector=app%21%3Dx", ["b"], id="labels, not"),
        pytest.param("/api/v1/pods?fieldSelector=metadata.name%3Db", ["b"], id="a name"),
        pytest.param(
            "/api/v1/pods?fieldSelector=metadata.namespace%3D%3Dtwo", ["c"], id="a namespace"
        ),
        pytest.param("/api/v1/pods?fieldSelector=spec.nodeName%3Dn", ["b"], id="a node"),
        pytest.param("/api/v1/pods?fieldSelector=spec.nodeName%3D", ["a", "c"], id="no node"),
        pytest.param(
            "/api/v1/pods?fieldSelector=spec.nodeName%21%3Dn,metadata.name%21%3Da", ["c"], id="both"
        ),
        pytest.param(
            "/api/v1/pods?labelSelector=&fieldSelector=", ["a", "b", "c"], id="empty ones"
        ),
    ],
)
async def test_selectors(serving: Serving, path: str, want: list[str]) -> None:
    await serving.post("/api/v1/namespaces/two/pods", pod("c", labels={"app": "x"}))
    await serving.post("/api/v1/namespaces/one/pods", pod("a", labels={"app": "x"}))
    placed = pod("b")
    placed["spec"]["nodeName"] = "n"
    await serving.post("/api/v1/namespaces/one/pods", placed)
    assert names(await serving.get(path)) == want


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param(
            "fieldSelector=spec.x%3D1",
            status(400, "BadRequest", "field label not supported: spec.x"),
            id="an unknown field",
        ),
        pytest.param(
            "fieldSelector=spec.nodeName",
            status(
                400,
                "BadRequest",
                "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'",
            ),
            id="no operator",
        ),
        pytest.param(
            "resourceVersion=9",
            status(
                504,
                "Timeout",
                "Timeout: Too large resource version: 9, current: 1",
                {
                    "causes": [
                        {
                            "reason": "ResourceVersionTooLarge",
                            "message": "Too large resource version",
                        }
                    ],
                    "retryAfterSeconds": 1,
                },
            ),
            id="a state that is yet to come",
        ),
    ],
)
async def test_lists_that_are_refused(serving: Serving, query: str, want: Any) -> None:
    assert await serving.request("GET", f"{PODS}?{query}") == want


async def test_a_malformed_label_selector(serving: Serving) -> None:
    code, answer = await serving.request("GET", f"{PODS}?labelSelector=a%3D%3D%3Db")
    assert (code, answer["reason"]) == (400, "BadRequest")


class Hurried(FakeClock):
    """A clock by which everything takes long."""

    def monotonic(self) -> float:
        self.advance(1.0)
        return super().monotonic()


async def test_others_get_turns_while_a_selector_is_evaluated() -> None:
    store = Store()
    for number in range(3 * LOOKED_AT):
        metadata = {"name": f"p-{number:03}", "namespace": "default"}
        store.create("pods", {"metadata": metadata, "spec": {"nodeName": f"n{number % 2}"}})
    resource = find("", "v1", "pods")
    wanted = asked(resource, "", {"fieldSelector": "spec.nodeName=n1"})[0]
    options = list_options({})
    at_once = await list_objects(store, wanted, options, FakeClock())
    listing = asyncio.create_task(list_objects(store, wanted, options, Hurried()))
    await asyncio.sleep(0)
    assert not listing.done()
    store.delete("pods", "default", "p-149")
    assert (await listing).objects == at_once.objects
    assert len(at_once.objects) == at_once.fetched / 2 == 1.5 * LOOKED_AT


async def test_pages_show_one_state(serving: Serving) -> None:
    await serving.pods("a", "b", "c", "d", "e")
    first = await serving.get(f"{PODS}?limit=2")
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    await serving.pods("bb", "z")
    await serving.request("DELETE", f"{PODS}/d")
    second = await serving.get(f"{PODS}?limit=2&continue={first['metadata']['continue']}")
    assert (names(second), second["metadata"]["resourceVersion"]) == (["c", "d"], "6")
    third = await serving.get(f"{PODS}?limit=2&continue={second['metadata']['continue']}")
    assert (names(third), third["metadata"]) == (["e"], {"resourceVersion": "6"})
    assert names(await serving.get(PODS)) == ["a", "b", "bb", "c", "e", "z"]
    assert names(await serving.get(f"{PODS}?resourceVersion=6&resourceVersionMatch=Exact")) == [
        *"abcde"
    ]


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TABLE_BETA = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        pytest.param("*/*", "PodList", id="anything"),
        pytest.param("", "PodList", id="nothing said"),
        pytest.param("application/json, */*", "PodList", id="kubectl"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", "PodList", id="typed"),
        pytest.param(f"{TABLE},{TABLE_BETA},application/json", "Table", id="kubectl get"),
        pytest.param(f"{TABLE_BETA},application/json", "Table", id="an old table"),
        pytest.param(
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            "PartialObjectMetadataList",
            id="metadata only",
        ),
    ],
)
async def test_forms(serving: Serving, accept: str, kind: str) -> None:
    await serving.pods("p")
    code, answer = await serving.request("GET", PODS, accept=accept)
    assert (code, answer["kind"]) == (200, kind)
    assert len(answer["rows" if kind == "Table" else "items"]) == 1


async def test_one_object_as_metadata(serving: Serving) -> None:
    await serving.pods("p")
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    _, answer = await serving.request("GET", f"{PODS}/p", accept=accept)
    assert answer == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": (await serving.get(f"{PODS}/p"))["metadata"],
    }
