"""``/explain``, asked in process."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from app.explain.explanation import Explanation
from app.server.explain_endpoints import explain_endpoints
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
    app = FastAPI()
    app.include_router(explain_endpoints(explainer(harness)))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as made:
        yield made


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


async def test_nothing_can_be_written(client: httpx.AsyncClient) -> None:
    assert (await client.post("/explain/pods/default/big")).status_code == 405
