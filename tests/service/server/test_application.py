"""What the application does by itself."""

import re

import httpx
import pytest
from fastapi import APIRouter

from berth.service.server.application import Application


@pytest.fixture
def client() -> httpx.AsyncClient:
    router, app = APIRouter(), Application()

    @router.get("/things")
    @router.get("/things/{name}")
    async def things(name: str = "", number: int = 0) -> str:
        return name

    app.include_router(router)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://berth")


async def test_the_root_lists_what_is_included(client: httpx.AsyncClient) -> None:
    assert (await client.get("/")).json() == {"paths": ["/openapi.json", "/things"]}


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        pytest.param(BROWSER, "text/html; charset=utf-8", id="a browser"),
        pytest.param("*/*", "application/json", id="curl"),
        pytest.param("application/json", "application/json", id="a program"),
        pytest.param("", "application/json", id="who says nothing"),
        pytest.param("text/html;q=0, */*", "application/json", id="who refuses HTML"),
    ],
)
async def test_who_sees_the_root_as_a_page(
    client: httpx.AsyncClient, accept: str, media_type: str
) -> None:
    answer = await client.get("/", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)


async def test_links_of_the_root_work_behind_any_prefix(client: httpx.AsyncClient) -> None:
    answer = await client.get("/", headers={"Accept": BROWSER})
    assert re.findall(r'href="([^"]*)"', answer.text) == ["openapi.json", "things", "openapi.json"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["vary"] == "Accept"


async def test_a_path_that_is_not_served(client: httpx.AsyncClient) -> None:
    answer = await client.get("/nothing")
    assert (answer.status_code, answer.text) == (404, "404 page not found\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_another_method(client: httpx.AsyncClient) -> None:
    assert (await client.post("/things")).status_code == 405


async def test_everything_is_described(client: httpx.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()
    assert set(described["paths"]) == {"/", "/things", "/things/{name}"}


async def test_the_head_of_whatever_can_be_got(client: httpx.AsyncClient) -> None:
    answer = await client.head("/things/x")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "number", [pytest.param("9" * 5_000, id="digits"), pytest.param("x" * 5_000, id="letters")]
)
async def test_what_is_wrong_is_told_but_not_repeated(
    client: httpx.AsyncClient, number: str
) -> None:
    answer = await client.get("/things", params={"number": number})
    assert answer.status_code == 422
    (problem,) = answer.json()["detail"]
    assert (problem["loc"], problem.keys()) == (["query", "number"], {"loc", "msg", "type"})
    assert len(answer.content) < 500


async def test_a_path_has_an_end(client: httpx.AsyncClient) -> None:
    answer = await client.get("/things?" + "&".join(f"n{i}" for i in range(5_000)))
    assert (answer.status_code, answer.text) == (414, "414 URI too long\n")
    assert (await client.get("/things/" + "x" * 10_000)).status_code == 414


async def test_a_head_has_an_end(client: httpx.AsyncClient) -> None:
    answer = await client.get("/things", headers={"Accept": "text/html," * 10_000})
    assert (answer.status_code, answer.text) == (431, "431 request header fields too large\n")
