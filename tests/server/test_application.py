"""The endpoints, asked in process."""

from collections.abc import AsyncIterator

import httpx
import pytest

from app.explain.explanation import Explanation, PastDecision
from app.server.application import make_application
from tests.builders import node, pod
from tests.explain.asking import explain, explainer
from tests.harness import Harness


@pytest.fixture
async def harness() -> Harness:
    """A scheduler that has placed one pod, and found no place for another."""
    made = Harness()
    made.put(node("n1"), node("n2", cpu=1), pod("small"), pod("big", cpu=16))
    await made.until_idle()
    return made


@pytest.fixture
async def client(harness: Harness) -> AsyncIterator[httpx.AsyncClient]:
    app = make_application(explainer(harness), is_ready=lambda: len(harness.cache.table) > 0)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as made:
        yield made


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_probes(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    assert (answer.status_code, answer.text) == (200, "ok")


async def test_not_ready_without_the_state_of_the_cluster() -> None:
    app = make_application(explainer(Harness()), is_ready=lambda: False)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://berth"
    ) as client:
        answer = await client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json() == {"detail": "the state of the cluster is not known yet"}


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        pytest.param("", None, id="as many nodes as usual"),
        pytest.param("?nodes=1", 1, id="one node"),
        pytest.param("?nodes=0", 0, id="no nodes"),
        pytest.param("?nodes=all", None, id="all nodes"),
    ],
)
async def test_an_explanation_comes_through_whole(
    client: httpx.AsyncClient, harness: Harness, query: str, limit: int | None
) -> None:
    answer = await client.get(f"/explain/pods/default/big{query}")

    assert answer.status_code == 200
    told = Explanation.model_validate_json(answer.content)
    assert told == explain(harness, "default/big", limit=limit)


async def test_json_is_in_camel_case(client: httpx.AsyncClient) -> None:
    judged = (await client.get("/explain/pods/default/big?nodes=1")).json()["judgement"]

    assert judged["numNodes"] == 2
    assert judged["nearestMiss"] == {
        "node": "n1",
        "isComplete": True,
        "words": "n1: request 12000m cpu less, or have a larger node",
        "changes": [
            {
                "kind": "RequestLess",
                "what": "cpu",
                "words": "request 12000m cpu less, or have a larger node",
                "amount": 12000,
                "shortfall": 0.75,
            }
        ],
    }


async def test_an_unknown_pod_is_refused_with_a_reason(client: httpx.AsyncClient) -> None:
    answer = await client.get("/explain/pods/default/nobody")

    assert answer.status_code == 404
    assert answer.json() == {"detail": "pod default/nobody: there is none, or it has finished"}


@pytest.mark.parametrize("nodes", ["-1", "some", ""])
async def test_a_wrong_number_of_nodes_is_refused(client: httpx.AsyncClient, nodes: str) -> None:
    answer = await client.get(f"/explain/pods/default/big?nodes={nodes}")

    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("query", "pods"),
    [
        pytest.param("", ["default/big", "default/small"], id="all, newest first"),
        pytest.param("?pod=default/small", ["default/small"], id="of one pod"),
        pytest.param("?limit=1", ["default/big"], id="the last one"),
        pytest.param("?pod=default/nobody", [], id="of nobody"),
    ],
)
async def test_decisions(client: httpx.AsyncClient, query: str, pods: list[str]) -> None:
    answer = await client.get(f"/decisions{query}")

    assert answer.status_code == 200
    assert [PastDecision.model_validate(past).pod for past in answer.json()] == pods


async def test_every_answer_is_described(client: httpx.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()

    assert set(described["paths"]) == {
        "/healthz",
        "/livez",
        "/readyz",
        "/explain/pods/{namespace}/{name}",
        "/decisions",
    }
    schemas = described["components"]["schemas"]
    assert "nearestMiss" in schemas["Judgement"]["properties"]
    assert {"Change", "Detail", "Explanation", "PastDecision", "Refusal"} <= set(schemas)


@pytest.mark.parametrize("path", ["/healthz", "/decisions", "/explain/pods/default/big"])
async def test_nothing_can_be_written(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.post(path)).status_code == 405
