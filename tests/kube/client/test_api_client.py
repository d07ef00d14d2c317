"""The client against a real HTTP server on loopback: what goes over the wire, and how it fails."""

import asyncio
import socket
from contextlib import aclosing

import pytest
from aiohttp import web

from berth.kube.client.api_client import ApiClient, LineBuffer
from berth.kube.client.connect import Endpoint, client_of, connect
from berth.kube.client.connections import Connections
from berth.kube.client.errors import (
    ConflictError,
    FencedError,
    GoneError,
    TooManyRequestsError,
    UnavailableError,
)
from berth.kube.client.rate_limit import TokenBucket
from berth.runtime.clock import RealClock
from tests.kube.client.serving import serving


async def lines_of(client: ApiClient, path: str = "/things", **params: str) -> list[bytes]:
    async with aclosing(client.watch(path, params)) as lines:
        opened, *heard = [line async for line in lines]
        assert opened == b""
        return heard


@pytest.mark.wall
async def test_a_request_arrives_as_it_was_given() -> None:
    seen: list[object] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        names = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type", "Authorization")
        seen.append((request.method, request.raw_path, await request.read()))
        seen.append({name: request.headers.get(name) for name in names})
        return web.Response(body=b'{"ok":true}')

    async with serving(handle) as client:
        answer = await client.request(
            "PATCH",
            "/api/v1/pods",
            params={"fieldSelector": "status.phase!=Failed"},
            body=b"{}",
            content_type="application/strategic-merge-patch+json",
        )

    assert answer == b'{"ok":true}'
    assert seen == [
        ("PATCH", "/api/v1/pods?fieldSelector=status.phase!%3DFailed", b"{}"),
        {
            "User-Agent": "test/1",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/strategic-merge-patch+json",
            "Authorization": None,
        },
    ]


@pytest.mark.wall
async def test_an_unlimited_client_waits_for_no_turn_and_shares_connections() -> None:
    arrived: list[str] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        arrived.append(request.path)
        return web.Response()

    async with serving(handle) as client:
        client.limiter = TokenBucket(qps=1e-9, burst=1, clock=RealClock())
        await client.request("POST", "/the-only-one", body=b"{}")
        for _ in range(3):
            await client.unlimited().request("POST", "/more", body=b"{}")
        assert isinstance(client._transport, Connections)
        assert client._transport.idle == 1

    assert arrived == ["/the-only-one", *["/more"] * 3]


@pytest.mark.wall
async def test_fences_add_up_and_cost_neither_a_turn_nor_a_connection() -> None:
    arrived: list[str] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        arrived.append(request.path)
        return web.Response()

    allowed = {"leads": True, "is wanted": True}
    async with serving(handle) as client:
        leading = client.fenced(lambda: allowed["leads"])
        both = leading.fenced(lambda: allowed["is wanted"], otherwise="nobody waits")
        await both.request("POST", "/both", body=b"{}")
        client.limiter = TokenBucket(qps=1e-9, burst=1, clock=RealClock())
        both.limiter = client.limiter
        allowed["is wanted"] = False
        with pytest.raises(FencedError, match="POST /x: not sent, nobody waits"):
            await both.request("POST", "/x", body=b"{}")
        allowed.update({"leads": False, "is wanted": True})
        with pytest.raises(FencedError, match="POST /x: not sent, another replica may lead"):
            await both.request("POST", "/x", body=b"{}")
        assert isinstance(client._transport, Connections)
        assert client._transport.idle == 1
        await client.request("POST", "/not-fenced", body=b"{}")

    assert arrived == ["/both", "/not-fenced"]


@pytest.mark.wall
async def test_a_connection_for_what_is_fenced_at_the_last_moment_is_kept() -> None:
    async def handle(request: web.BaseRequest) -> web.Response:
        return web.Response()

    asked = iter((True, False))  # before the turn, and when there is a connection
    async with serving(handle) as client:
        with pytest.raises(FencedError):
            await client.fenced(lambda: next(asked)).request("POST", "/x", body=b"{}")
        assert isinstance(client._transport, Connections)
        assert client._transport.idle == 1


@pytest.mark.wall
async def test_requests_share_a_connection() -> None:
    ports = set()

    async def handle(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.Response()

    async with serving(handle) as client:
        for _ in range(5):
            await client.request("GET", "/")

    assert len(ports) == 1


@pytest.mark.wall
async def test_a_server_behind_a_proxy_is_asked_through_it() -> None:
    seen: list[object] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        seen.append((request.method, str(request.url)))
        seen.append(await request.read())
        return web.Response(status=201, body=b"made")

    clock = RealClock()
    async with serving(handle) as proxy:
        endpoint = Endpoint("http://api.example/base", proxy=proxy.url)
        client = client_of(endpoint, qps=0, burst=1, user_agent="test/1", clock=clock)
        answer = await client.request("POST", "/x", params={"a": "b c"}, body=b"{}")
        await client.close()

    assert answer == b"made"
    assert seen == [("POST", "http://api.example/base/x?a=b%20c"), b"{}"]


@pytest.mark.wall
async def test_a_failing_status_is_its_error() -> None:
    async def handle(request: web.BaseRequest) -> web.Response:
        return web.json_response({"reason": "Conflict", "message": "assigned"}, status=409)

    async with serving(handle) as client:
        with pytest.raises(ConflictError, match=r"^assigned"):
            await client.request("POST", "/api/v1/namespaces/ns/pods/p/binding", body=b"{}")


@pytest.mark.wall
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_busy_server_is_asked_again_when_it_says_so(method: str) -> None:
    asked = 0

    async def handle(request: web.BaseRequest) -> web.Response:
        nonlocal asked
        asked += 1
        if asked < 3:
            return web.Response(status=429, headers={"Retry-After": "0"})
        return web.Response(body=b"done")

    async with serving(handle) as client:
        assert await client.request(method, "/") == b"done"
    assert asked == 3


@pytest.mark.wall
@pytest.mark.parametrize(
    ("headers", "want"),
    [
        pytest.param({"Retry-After": "0"}, 4, id="a few times only"),
        pytest.param({}, 1, id="not at all when it does not say when"),
    ],
)
async def test_a_server_that_stays_busy_is_left_alone(headers: dict[str, str], want: int) -> None:
    asked = 0

    async def handle(request: web.BaseRequest) -> web.Response:
        nonlocal asked
        asked += 1
        return web.Response(status=429, headers=headers)

    async with serving(handle) as client:
        with pytest.raises(TooManyRequestsError):
            await client.request("GET", "/")
    assert asked == want


@pytest.mark.wall
async def test_a_refused_connection_was_certainly_not_used() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    client = await connect(kubeconfig=None, master=f"http://127.0.0.1:{port}")

    with pytest.raises(UnavailableError, match="POST /x: ") as caught:
        await client.request("POST", "/x", body=b"{}")
    await client.close()

    assert caught.value.sent is False


@pytest.mark.wall
async def test_a_connection_that_breaks_before_the_answer_leaves_it_open() -> None:
    async def handle(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with serving(handle) as client:
        with pytest.raises(UnavailableError) as caught:
            await client.request("POST", "/x", body=b"{}")

    assert caught.value.sent is None


@pytest.mark.wall
async def test_an_answer_that_does_not_come_in_time_leaves_it_open() -> None:
    over = asyncio.Event()

    async def handle(request: web.BaseRequest) -> web.Response:
        await over.wait()
        return web.Response()

    async with serving(handle) as client:
        with pytest.raises(UnavailableError, match="timed out") as caught:
            await client.request("POST", "/x", body=b"{}", timeout=0.05)
        over.set()

    assert caught.value.sent is None


@pytest.mark.wall
async def test_a_watch_yields_lines_of_any_size_until_the_server_ends_it() -> None:
    huge = b'{"huge":"' + b"x" * 5_000_000 + b'"}'
    seen = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(request.raw_path)
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in (b'{"a":1}\n{"b"', b":2}\n", huge + b'\n{"c":3}\n{"cut of'):
            await response.write(chunk)
        return response

    async with serving(handle) as client:
        lines = await lines_of(client, resourceVersion="5")

    assert lines == [b'{"a":1}', b'{"b":2}', huge, b'{"c":3}']
    assert seen == ["/things?resourceVersion=5&watch=true"]


@pytest.mark.wall
async def test_a_watch_that_is_refused_is_its_error() -> None:
    async def handle(request: web.BaseRequest) -> web.Response:
        return web.json_response({"reason": "Expired", "message": "too old"}, status=410)

    async with serving(handle) as client:
        with pytest.raises(GoneError, match=r"^too old"):
            await lines_of(client)


@pytest.mark.wall
async def test_a_watch_whose_connection_breaks_has_yielded_what_came() -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"a":1}\n')
        await asyncio.sleep(0.01)
        assert request.transport is not None
        request.transport.abort()
        return response

    async with serving(handle) as client, aclosing(client.watch("/things", {})) as lines:
        assert [await anext(lines), await anext(lines)] == [b"", b'{"a":1}']
        with pytest.raises(UnavailableError):
            await anext(lines)


@pytest.mark.wall
async def test_a_watch_that_stays_silent_beyond_its_time_is_ended() -> None:
    over = asyncio.Event()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await over.wait()
        return response

    clock = RealClock()
    async with serving(handle) as client:
        impatient = ApiClient(
            Connections(client.url, tls=True, server_hostname=None, clock=clock),
            client.url,
            user_agent="test/1",
            limiter=TokenBucket(qps=0, burst=0, clock=clock),
            clock=clock,
            watch_grace=0.05,
        )
        with pytest.raises(UnavailableError, match="watch /things: timed out"):
            await lines_of(impatient, timeoutSeconds="0")
        over.set()
        await impatient.close()


@pytest.mark.parametrize(
    ("chunks", "want"),
    [
        pytest.param([b"a\nb\n"], [b"a", b"b"], id="whole lines"),
        pytest.param([b"a", b"b", b"c\nd"], [b"abc"], id="a line in three chunks, one begun"),
        pytest.param([b"a", b"\n", b"b\n"], [b"a", b"b"], id="the end in a chunk of its own"),
        pytest.param([b"\n\na\n\n"], [b"a"], id="empty lines"),
        pytest.param([b"", b"a\n", b""], [b"a"], id="empty chunks"),
    ],
)
def test_line_buffer(chunks: list[bytes], want: list[bytes]) -> None:
    buffer = LineBuffer()

    assert [line for chunk in chunks for line in buffer.feed(chunk)] == want
