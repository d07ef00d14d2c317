"""The page beside the endpoints of ``berth run --serve-ui``, and what the root tells without it."""

import random
from collections.abc import AsyncIterator

import httpx
import pytest

from berth.kube.client.connect import Endpoint, client_of
from berth.runtime.clock import FakeClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.service.applications import scheduler_application
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE

BROWSER = {"Accept": "text/html,*/*;q=0.8"}


@pytest.fixture(params=[pytest.param(True, id="served"), pytest.param(False, id="not served")])
async def scheduler(
    request: pytest.FixtureRequest,
) -> AsyncIterator[tuple[bool, httpx.AsyncClient]]:
    """Yield whether a scheduler serves the page, and what asks it."""
    clock = FakeClock()
    client = client_of(
        Endpoint("http://127.0.0.1:1"), qps=0, burst=1, user_agent="test", clock=clock
    )
    config = default_configuration(args_models(IN_TREE))
    service = SchedulerService(client, config, clock=clock, rng=random.Random(0))
    transport = httpx.ASGITransport(scheduler_application(service, serves_page=request.param))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asks:
        yield request.param, asks
    await client.close()


async def test_the_page(scheduler: tuple[bool, httpx.AsyncClient]) -> None:
    serves_page, asks = scheduler
    for path in ("/ui/", "/ui/js/main.js", "/ui/css/base.css"):
        assert (await asks.get(path)).status_code == (200 if serves_page else 404), path
    assert (await asks.get("/ui/../debug/queue")).status_code == 200, "as clients mean it"
    assert (await asks.get("/ui/nothing")).text == "404 page not found\n"
    if serves_page:
        answer = await asks.get("/ui")
        assert (answer.status_code, answer.headers["location"]) == (308, "ui/")
        assert (await asks.head("/ui/")).status_code == 200
        assert (await asks.post("/ui/", json={})).status_code == 405


async def test_the_root_tells_where_the_page_is(
    scheduler: tuple[bool, httpx.AsyncClient],
) -> None:
    serves_page, asks = scheduler
    assert ("/ui/" in (await asks.get("/")).json()["paths"]) is serves_page
    told = (await asks.get("/", headers=BROWSER)).text
    assert ('<a href="ui/">The page</a>' in told) is serves_page
    assert ("berth ui" in told) is not serves_page
    assert '<a href="debug/queue">/debug/queue</a>' in told


async def test_the_page_is_no_endpoint(scheduler: tuple[bool, httpx.AsyncClient]) -> None:
    _, asks = scheduler
    described = (await asks.get("/openapi.json")).json()["paths"]
    assert [path for path in described if path.startswith("/ui")] == []
