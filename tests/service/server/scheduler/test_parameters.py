"""Query parameters that are misspelt, as people send them."""

from typing import Annotated

import httpx
import pytest
from fastapi import APIRouter, Depends, Query

from berth.service.server.application import Application
from berth.service.server.scheduler.debug.responses import OfPod
from berth.service.server.scheduler.parameters import ONLY_KNOWN


async def after(token: Annotated[str, Query(alias="continue")] = "") -> str:
    return token


@pytest.fixture
def client() -> httpx.AsyncClient:
    router, app = APIRouter(dependencies=[ONLY_KNOWN]), Application()

    @router.get("/things")
    async def things(token: Annotated[str, Depends(after)], pod: OfPod = "") -> list[str]:
        return [token, pod]

    app.include_router(router)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://berth")


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("", id="none"),
        pytest.param("pod=default/web", id="its own"),
        pytest.param("pod=", id="an empty one, which is none"),
        pytest.param("continue=x&pod=a/b", id="those of its dependencies"),
    ],
)
async def test_known_ones_are_taken(client: httpx.AsyncClient, query: str) -> None:
    assert (await client.get(f"/things?{query}")).status_code == 200


async def test_an_unknown_one_is_named_with_those_that_there_are(client: httpx.AsyncClient) -> None:
    answer = await client.get("/things?Pod=a/b")
    assert answer.status_code == 422
    assert answer.json() == {
        "detail": [
            {
                "type": "extra_forbidden",
                "loc": ["query", "Pod"],
                "msg": "There is no such parameter; there are: continue, pod",
            }
        ]
    }


@pytest.mark.parametrize("pod", ["web", "a/b/c", "/web", "default/"])
async def test_a_pod_is_asked_for_with_its_namespace(client: httpx.AsyncClient, pod: str) -> None:
    answer = await client.get("/things", params={"pod": pod})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", "pod"]


async def test_of_many_unknown_ones_the_first_are_named(client: httpx.AsyncClient) -> None:
    names = [f"n{i:03}" for i in range(500)]
    answer = await client.get("/things?" + "&".join(f"{name}=secret" for name in names))
    told = answer.json()["detail"]
    assert [problem["loc"] for problem in told] == [*(["query", name] for name in names[:10]), []]
    assert told[-1]["msg"] == "and 490 problems more"
    assert "secret" not in answer.text


async def test_a_long_name_is_cut(client: httpx.AsyncClient) -> None:
    answer = await client.get("/things?" + "x" * 5_000 + "=1")
    assert answer.json()["detail"][0]["loc"] == ["query", "x" * 100 + "…"]
