"""Answers without an end pass through as they come, and end with either side."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from berth.kube.client.connect import Endpoint
from berth.runtime.addresses import LOOPBACK
from berth.runtime.http_server import HttpServer
from berth.service.ui.forwarder import forwarder

pytestmark = pytest.mark.wall

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

EVENT = b"data: 1\n\n"


@asynccontextmanager
async def serving(application: Application) -> AsyncIterator[str]:
    server = HttpServer(application)
    await server.start(LOOPBACK, 0)
    try:
        yield server.url
    finally:
        await server.stop()


@asynccontextmanager
async def stream_of(upstream: Application) -> AsyncIterator[httpx.Response]:
    """Yield the answer of *upstream*, through the forwarder, with nothing of its body read yet."""
    async with (
        serving(upstream) as url,
        forwarder(Endpoint(url)) as forwards,
        serving(forwards) as address,
        httpx.AsyncClient() as browser,
        browser.stream("GET", f"{address}/debug/overview/stream") as answer,
    ):
        yield answer


async def start(send: Send, *, length: int | None = None) -> None:
    headers = [(b"content-type", b"text/event-stream")]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": EVENT, "more_body": True})


async def test_events_come_as_they_happen() -> None:
    go_on = asyncio.Event()

    async def upstream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await start(send)
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"data: 2\n\n", "more_body": False})

    async with stream_of(upstream) as answer:
        pieces = answer.aiter_raw()
        assert answer.headers["content-type"] == "text/event-stream"
        assert await anext(pieces) == EVENT
        go_on.set()
        assert b"".join([piece async for piece in pieces]) == b"data: 2\n\n"


async def test_a_browser_that_leaves_ends_the_stream_of_the_scheduler() -> None:
    left = asyncio.Event()

    async def upstream(_scope: Scope, receive: Receive, send: Send) -> None:
        await start(send)
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    async with stream_of(upstream) as answer:
        assert await anext(answer.aiter_raw()) == EVENT
        await answer.aclose()
        await left.wait()


@pytest.mark.parametrize(
    "length", [pytest.param(None, id="of any length"), pytest.param(1_000, id="of a known length")]
)
async def test_a_scheduler_that_dies_breaks_the_stream_off(length: int | None) -> None:
    """It must not look as if the answer were complete."""
    die = asyncio.Event()

    async def upstream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await start(send, length=length)
        await die.wait()  # then nothing: the server closes the connection

    async with stream_of(upstream) as answer:
        pieces = answer.aiter_raw()
        assert await anext(pieces) == EVENT
        die.set()
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(pieces)


async def test_a_stream_ends_with_the_forwarder() -> None:
    """It looks complete, and the server need not wait for it."""

    async def upstream(_scope: Scope, receive: Receive, send: Send) -> None:
        await start(send)
        while (await receive())["type"] != "http.disconnect":
            pass

    async with (
        serving(upstream) as url,
        forwarder(Endpoint(url)) as forwards,
        serving(forwards) as address,
        httpx.AsyncClient() as browser,
        browser.stream("GET", f"{address}/debug/overview/stream") as answer,
    ):
        pieces = answer.aiter_raw()
        assert await anext(pieces) == EVENT
        forwards.end()
        assert [piece async for piece in pieces] == []


async def test_nobody_listens() -> None:
    async with serving(PlainTextResponse("gone soon")) as url:
        pass
    async with (
        forwarder(Endpoint(url)) as forwards,
        serving(forwards) as address,
        httpx.AsyncClient() as browser,
    ):
        answer = await browser.get(f"{address}/debug/queue")
    assert answer.status_code == 502
    assert answer.json()["detail"].startswith(f"no scheduler answers at {url}: ")
