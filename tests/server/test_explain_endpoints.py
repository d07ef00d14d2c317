"""``/explain``, asked in process."""

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import count

import httpx
import pytest
from fastapi import FastAPI

from app.explain.explanation import Explanation
from app.server.explain_endpoints import MOST_WAITING, explain_endpoints
from tests.builders import node, pod, taint
from tests.explain.asking import explain, explainer
from tests.harness import Harness
from tests.loop_turns import watched_loop

numbers = count()


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


async def test_many_nodes_keep_nobody_waiting(harness: Harness, client: httpx.AsyncClient) -> None:
    harness.put(*(node(f"more-{i}", cpu=1) for i in range(1_600)))
    before = time.thread_time()
    async with watched_loop() as turns:
        answer = await client.get("/explain/pods/default/big?nodes=all")
    took = time.thread_time() - before

    assert len(answer.json()["judgement"]["nodes"]) == 1_602
    assert turns.longest < took / 2


async def test_an_answer_is_true_of_its_beginning(
    harness: Harness, client: httpx.AsyncClient
) -> None:
    harness.put(*(node(f"more-{i}", cpu=1, taints=[taint("a")]) for i in range(100)))
    want = explain(harness, "default/big")
    asked = asyncio.create_task(client.get("/explain/pods/default/big?nodes=all"), name="asked")
    while not asked.done():
        await asyncio.sleep(0)
        number = next(numbers)
        harness.put(node(f"more-{number % 100}", cpu=32, taints=[taint(f"t{number}")]))
        harness.put(pod(f"p{number}", cpu=1, node="n1"))
    told = Explanation.model_validate_json((await asked).content)
    assert told.judgement == want.judgement


async def test_one_at_a_time_and_not_too_many_that_wait() -> None:
    asked: list[str] = []
    may_answer = asyncio.Event()

    class Slow:
        async def explain_in_turns(self, key: str, *, limit: int | None) -> None:
            asked.append(f"{key} {limit}")
            await may_answer.wait()

    app = FastAPI()
    app.include_router(explain_endpoints(Slow()))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as slow:

        async def ask() -> int:
            return (await slow.get("/explain/pods/default/p")).status_code

        waiting = [asyncio.create_task(ask(), name="waiting") for _ in range(1 + MOST_WAITING)]
        for _ in range(200):
            await asyncio.sleep(0)
        assert asked == ["default/p 20"]
        assert await ask() == 429
        may_answer.set()
        assert set(await asyncio.gather(*waiting)) == {404}
        assert len(asked) == 1 + MOST_WAITING
