"""Connections: how answers are read, and which connections are used again."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from berth.kube.client.connections import (
    IDLE_LIMIT,
    Connection,
    Connections,
    header_lines,
)
from berth.kube.client.errors import UnavailableError
from berth.kube.client.transport import Headers, Response
from berth.runtime.clock import FakeClock
from tests.kube.client.wire import HANG_UP, OK, Wire, pool


async def exchanged(connection: Connection, *, timeout: float = 10.0) -> Response:
    (answer,) = await connection.exchange(b"GET / HTTP/1.1\r\n\r\n", 1, timeout=timeout)
    if isinstance(answer, UnavailableError):
        raise answer
    return answer


async def asked(wire: Wire, *, timeout: float = 10.0) -> "asyncio.Task[Response]":
    """Begin an exchange, and return it once the request is sent."""
    exchange = asyncio.create_task(exchanged(wire.connection, timeout=timeout))
    await asyncio.sleep(0)
    return exchange


async def test_what_is_sent() -> None:
    connections = pool()
    wire = Wire(connections)
    connections.give_back(wire.connection)
    fields = {"Accept": "a", "User-Agent": "u"}
    exchange = asyncio.create_task(
        connections.exchange(
            "POST",
            "/x?y=z",
            headers=Headers(fields, header_lines(fields)),
            body=b"hello",
            timeout=9,
            guard=lambda: None,
        )
    )
    await asyncio.sleep(0)
    wire.say(OK)

    assert await exchange == Response(200, None, b"ok")
    assert wire.sent == (
        b"POST /base/x?y=z HTTP/1.1\r\nHost: server:8001\r\nAccept: a\r\nUser-Agent: u\r\n"
        b"Content-Length: 5\r\n\r\nhello"
    )


@pytest.mark.parametrize(
    ("script", "want", "is_kept"),
    [
        pytest.param([OK], Response(200, None, b"ok"), True, id="with a length"),
        pytest.param(
            [OK[n : n + 1] for n in range(len(OK))], Response(200, None, b"ok"), True, id="in bytes"
        ),
        pytest.param(
            [
                b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r",
                b"\n0\r\n\r\n",
            ],
            Response(201, None, b"ok"),
            True,
            id="in chunks",
        ),
        pytest.param(
            [b"HTTP/1.1 204 No Content\r\n\r\n"],
            Response(204, None, b""),
            True,
            id="without a body",
        ),
        pytest.param(
            [b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n", OK],
            Response(200, None, b"ok"),
            True,
            id="announced by a 1xx",
        ),
        pytest.param(
            [b"HTTP/1.1 429 Busy\r\nretry-after: 7\r\nContent-Length: 0\r\n\r\n"],
            Response(429, "7", b""),
            True,
            id="a refusal for now",
        ),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"],
            Response(200, None, b"ok"),
            False,
            id="the last on its connection",
        ),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\n\r\no", b"k", HANG_UP],
            Response(200, None, b"ok"),
            False,
            id="as long as the connection lasts",
        ),
    ],
)
async def test_an_answer(script: list[bytes], want: Response, is_kept: bool) -> None:
    connections = pool()
    wire = Wire(connections)
    exchange = await asked(wire)
    wire.say(*script)

    assert await exchange == want
    assert (wire.is_open, connections.idle) == (is_kept, int(is_kept))


@pytest.mark.parametrize(
    ("script", "sent", "why"),
    [
        pytest.param([HANG_UP], None, "closed the connection", id="none"),
        pytest.param([OK[:-1], HANG_UP], True, "broke off", id="cut short"),
        pytest.param([OK[:20], HANG_UP], True, "broke off", id="cut in its head"),
        pytest.param([b"SSH-2.0-x\r\n"], True, "garbled", id="not HTTP"),
    ],
)
async def test_no_answer(script: list[bytes], sent: bool | None, why: str) -> None:
    connections = pool()
    wire = Wire(connections)
    exchange = await asked(wire)
    wire.say(*script)

    with pytest.raises(UnavailableError, match=why) as caught:
        await exchange
    assert (caught.value.sent, wire.is_open, connections.idle) == (sent, False, 0)


async def test_an_answer_is_not_waited_for_longer_than_that() -> None:
    connections = pool()
    wire = Wire(connections)
    exchange = await asked(wire, timeout=0.0)

    with pytest.raises(UnavailableError, match="timed out") as caught:
        await exchange
    assert (caught.value.sent, wire.is_open, connections.idle) == (None, False, 0)


async def test_a_connection_whose_exchange_was_given_up_is_closed() -> None:
    connections = pool()
    wire = Wire(connections)
    exchange = await asked(wire)
    exchange.cancel()

    with pytest.raises(asyncio.CancelledError):
        await exchange
    assert (wire.is_open, connections.idle) == (False, 0)


async def test_an_idle_connection_on_which_the_server_speaks_unasked_is_closed() -> None:
    connections = pool()
    wire = Wire(connections)
    exchange = await asked(wire)
    wire.say(OK)
    await exchange
    assert connections.idle == 1

    wire.say(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")

    assert (wire.is_open, connections.idle) == (False, 0)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(OK, id="whole"),
        pytest.param(OK[:10], id="begun"),
        pytest.param(b"nonsense", id="none"),
    ],
)
async def test_a_connection_with_a_second_answer_is_not_used_again(more: bytes) -> None:
    connections = pool()
    wire = Wire(connections)
    exchange = await asked(wire)
    wire.say(OK + more)

    assert (await exchange).body == b"ok"
    assert (wire.is_open, connections.idle) == (False, 0)


async def test_an_idle_connection_that_is_lost_is_forgotten() -> None:
    connections = pool()
    wire = Wire(connections)
    exchange = await asked(wire)
    wire.say(OK)
    await exchange

    wire.say(HANG_UP)

    assert connections.idle == 0


@pytest.mark.parametrize(
    ("url", "host"),
    [
        pytest.param("http://server", "server", id="no port"),
        pytest.param("https://[::1]:6443/", "[::1]:6443", id="IPv6"),
        pytest.param("http://me:pw@server:80/x", "server:80", id="without the user"),
    ],
)
def test_the_host_header(url: str, host: str) -> None:
    lines = pool(url).request("GET", "/", headers=b"", body=None).split(b"\r\n")
    assert f"Host: {host}".encode() in lines


class Echo(asyncio.Protocol):
    """Answers every request with the port that it came from."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        port = str(self.transport.get_extra_info("peername")[1]).encode()
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(port) + port)


@asynccontextmanager
async def echoing(clock: FakeClock) -> AsyncIterator[Connections]:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connections = pool(f"http://127.0.0.1:{port}", clock=clock)
    try:
        yield connections
    finally:
        await connections.close()
        server.close()
        await server.wait_closed()


async def port_used(connections: Connections) -> bytes:
    connection = await connections.take()
    return (await exchanged(connection)).body


@pytest.mark.wall
@pytest.mark.parametrize(
    ("idle", "is_kept"),
    [
        pytest.param(IDLE_LIMIT, True, id="not too long"),
        pytest.param(IDLE_LIMIT + 1.0, False, id="too long"),
    ],
)
async def test_a_connection_that_was_idle(idle: float, is_kept: bool) -> None:
    clock = FakeClock()
    async with echoing(clock) as connections:
        first = await port_used(connections)
        clock.advance(idle)

        assert (await port_used(connections) == first) is is_kept


@pytest.mark.wall
async def test_exchanges_at_the_same_time_have_connections_of_their_own() -> None:
    async with echoing(FakeClock()) as connections:
        ports = await asyncio.gather(*(port_used(connections) for _ in range(3)))

        assert len(set(ports)) == 3
        assert await port_used(connections) in ports


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_an_answer_that_is_there_when_the_time_is_over_counts(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """On a loop that was busy meanwhile; some loops look at timers before they read."""
    (ours, theirs), (other, prompt) = socket.socketpair(), socket.socketpair()

    def keep_the_loop(loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(other)
        theirs.sendall(OK)
        time.sleep(0.01)

    async def exchange() -> Response:
        loop, connections = asyncio.get_running_loop(), pool()
        _, connection = await loop.create_connection(lambda: Connection(connections), sock=ours)
        asking = asyncio.create_task(exchanged(connection, timeout=0.005), name="ask")
        await asyncio.sleep(0)
        loop.add_reader(other, keep_the_loop, loop)
        prompt.sendall(b"!")
        answer = await asking
        await connections.close()
        return answer

    with theirs, other, prompt, asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(exchange()).body == b"ok"
