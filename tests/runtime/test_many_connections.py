"""More clients than a server wants, on real sockets: counted, not timed."""

import asyncio
import gc
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

import pytest
import uvloop
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from berth.runtime import http_server, open_files
from berth.runtime.addresses import LOOPBACK
from berth.runtime.certificates import self_signed, server_context
from berth.runtime.connection_limit import MOST as MOST_BY_DEFAULT
from berth.runtime.connection_limit import ConnectionCounts
from berth.runtime.event_loop import in_loop
from berth.runtime.http_server import SEAT, SHARE_OF_FILES, GoesFirst, HttpServer

pytestmark = pytest.mark.wall

MOST: Final = 4
RESERVED: Final = 2
CROWD: Final = 30
PAIR: Final = self_signed([LOOPBACK], now=datetime.now(UTC), name="test")

Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Test = Callable[[], Awaitable[None]]


class World:
    """A server whose ``/slow`` answers when it is let, and its clients."""

    def __init__(self, *, tls: bool, goes_first: GoesFirst | None = None) -> None:
        self.slow = 0
        """Requests that it has begun to answer."""
        self.go_on = asyncio.Event()
        self.server = HttpServer(
            self._answer,
            tls=server_context(PAIR) if tls else None,
            most_connections=MOST,
            reserved_connections=RESERVED,
            goes_first=goes_first,
        )
        self._tls = ssl.create_default_context(cadata=PAIR.certificate.decode()) if tls else None
        self._peers: list[asyncio.StreamWriter] = []

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        owner = request.headers.get("owner")
        if owner:
            scope["state"][SEAT].lasts(owner)
        if request.url.path.endswith("slow"):
            self.slow += 1
            await self.go_on.wait()
        if request.url.path.endswith("body"):
            await request.body()
        if request.url.path.endswith("large"):
            await StreamingResponse(self._pieces())(scope, receive, send)
            return
        await PlainTextResponse("ok")(scope, receive, send)

    async def _pieces(self) -> AsyncIterator[bytes]:
        for number in range(32):
            yield bytes(1 << 20)
            self.slow += number == 0

    @property
    def counts(self) -> ConnectionCounts:
        return self.server.connections

    async def connect(self, *, silent: bool = False) -> Peer:
        """Connect; *silent*: without a word, not even of TLS."""
        peer = await asyncio.open_connection(
            LOOPBACK, self.server.port, ssl=None if silent else self._tls
        )
        self._peers.append(peer[1])
        return peer

    async def ask(self, path: str, *, method: str = "GET", more: str = "") -> Peer:
        """Send a request on a connection of its own."""
        peer = await self.connect()
        peer[1].write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())
        return peer

    async def get(self, path: str) -> int:
        """Return the status of the answer, 0 for none."""
        return await answered(await self.ask(path))

    async def close(self) -> None:
        self.go_on.set()
        for writer in self._peers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        await self.server.stop()


async def answered(peer: Peer) -> int:
    try:
        head = await peer[0].readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, OSError):
        return 0
    return int(head.split()[1])


@asynccontextmanager
async def world(*, tls: bool = False, goes_first: GoesFirst | None = None) -> AsyncIterator[World]:
    made = World(tls=tls, goes_first=goes_first)
    await made.server.start(LOOPBACK, 0)
    try:
        yield made
    finally:
        await made.close()


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)


LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
on_both_loops = pytest.mark.parametrize("loop", LOOPS)


def run(loop: str, test: Test) -> None:
    """Run *test* on another event loop than the one of other tests."""

    async def in_time() -> None:
        async with asyncio.timeout(30):
            await test()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(in_time())


@on_both_loops
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_silent_clients_make_room(loop: str, *, tls: bool) -> None:
    async def test() -> None:
        async with world(tls=tls) as berth:
            for _ in range(CROWD):
                await berth.connect(silent=True)
            assert await berth.get("/readyz") == 200
            assert await berth.get("/metrics") == 200
            assert berth.counts.open <= MOST
            assert berth.counts.displaced == CROWD + 2 - berth.counts.open
            assert berth.counts.refused == 0

    run(loop, test)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("GET /readyz HTTP/1.1\r\n", id="half a head"),
        pytest.param("POST /body HTTP/1.1\r\nContent-Length: 9\r\n\r\nx", id="half a body"),
        pytest.param("GET /readyz HTTP/1.1\r\n\r\n", id="and is answered"),
    ],
)
async def test_a_client_that_does_not_go_on_makes_room(said: str) -> None:
    async with world() as berth:
        for _ in range(CROWD):
            _, writer = await berth.connect()
            writer.write(said.encode())
        await until(lambda: berth.counts.displaced >= CROWD - MOST)
        assert await berth.get("/readyz") == 200
        assert berth.counts.refused == 0


@on_both_loops
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_while_all_have_work_health_is_told_and_nothing_else(loop: str, *, tls: bool) -> None:
    async def test() -> None:
        async with world(tls=tls) as berth:
            busy = [await berth.ask("/slow") for _ in range(MOST)]
            await until(lambda: berth.slow == MOST)

            assert await berth.get("/readyz") == 200
            assert await berth.get("/livez/ping") == 200
            assert await berth.get("/metrics") == 503
            assert await berth.get("/readyzx") == 503
            assert (berth.counts.refused, berth.counts.open <= MOST + RESERVED) == (2, True)

            berth.go_on.set()
            assert [await answered(peer) for peer in busy] == [200] * MOST
            assert await berth.get("/metrics") == 200

    run(loop, test)


async def test_of_many_that_come_at_once_one_is_let_in_at_a_time() -> None:
    async with world() as berth:
        at_once: list[int] = []
        greet = http_server._Server._greet

        async def counted(server: Any, accepted: socket.socket, seat: Any) -> None:
            at_once[-1] += 1
            await greet(server, accepted, seat)

        async def turns() -> None:
            while True:
                at_once.append(0)
                await asyncio.sleep(0)

        clients = [socket.socket() for _ in range(CROWD)]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(http_server._Server, "_greet", counted)
            turning = asyncio.create_task(turns())
            for client in clients:
                client.connect((LOOPBACK, berth.server.port))
            await until(lambda: sum(at_once) == CROWD)
            turning.cancel()
        for client in clients:
            client.close()
        assert max(at_once) <= 2


async def test_some_requests_go_first() -> None:
    def goes_first(scope: Scope) -> bool:
        return (b"admin", b"yes") in scope["headers"]

    async with world(goes_first=goes_first) as berth:
        for _ in range(MOST):
            await berth.ask("/slow")
        await until(lambda: berth.slow == MOST)
        assert await berth.get("/metrics") == 503
        assert await answered(await berth.ask("/metrics", more="Admin: yes\r\n")) == 200


@on_both_loops
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_who_has_many_long_answers_makes_room(loop: str, *, tls: bool) -> None:
    async def test() -> None:
        async with world(tls=tls) as berth:
            modest = await berth.ask("/slow", more="Owner: modest\r\n")
            greedy = [await berth.ask("/slow", more="Owner: greedy\r\n") for _ in range(MOST - 1)]
            await until(lambda: berth.slow == MOST)
            for _ in range(CROWD):
                assert await berth.get("/metrics") == 200
            assert berth.counts.refused == 0
            berth.go_on.set()
            assert await answered(modest) == 200
            assert sum([await answered(peer) == 0 for peer in greedy]) == 1

    run(loop, test)


@on_both_loops
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_a_client_that_takes_no_answer_is_hung_up_on(
    loop: str, *, tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with world(tls=tls) as berth:
            _, writer = await berth.ask("/large")
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # it can
            await until(lambda: berth.slow == 1)
            await until(lambda: berth.counts.open == 0)

    assert http_server.STALLED_SECONDS <= 60
    monkeypatch.setattr(http_server, "STALLED_SECONDS", 0.1)
    run(loop, test)


async def test_who_is_one_too_many_is_turned_away() -> None:
    async with world() as berth:
        paths = ("/slow",) * MOST + ("/readyz/slow",) * RESERVED
        busy = [await berth.ask(path) for path in paths]
        await until(lambda: berth.slow == MOST + RESERVED)
        assert await berth.get("/readyz") == 0
        assert (berth.counts.open, berth.counts.refused) == (MOST + RESERVED, 1)
        berth.go_on.set()
        assert [await answered(peer) for peer in busy] == [200] * len(paths)
        assert await berth.get("/readyz") == 200


async def test_a_client_that_takes_no_answer_makes_room() -> None:
    async with world() as berth:
        for _ in range(MOST):
            _, writer = await berth.ask("/large")
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # it can
        await until(lambda: berth.slow == MOST)
        for _ in range(MOST):
            assert await berth.get("/metrics") == 200
        assert (berth.counts.displaced, berth.counts.refused) == (MOST, 0)


@on_both_loops
def test_a_handshake_ends_in_time(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with world(tls=True) as berth:
            reader, _ = await berth.connect(silent=True)
            assert await reader.read() == b""
            await until(lambda: berth.counts.failed_handshakes == 1)
            _, writer = await berth.connect(silent=True)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await until(lambda: berth.counts.failed_handshakes == 2)
            assert berth.counts.open == 0

    assert http_server.HANDSHAKE_SECONDS <= 10
    monkeypatch.setattr(http_server, "HANDSHAKE_SECONDS", 0.02)
    run(loop, test)


async def test_no_file_descriptors_are_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    accept = socket.socket.accept

    def accept_if_there_is_room(listener: socket.socket) -> Any:
        if berth.counts.open and not berth.counts.displaced:
            raise OSError(24, "Too many open files")
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", accept_if_there_is_room)
    monkeypatch.setattr(http_server, "ACCEPT_PAUSE", 0.0)
    async with world() as berth:
        idle, _ = await berth.connect()
        assert await idle.read() == b""  # it has gone, lest nobody else be heard
        assert await berth.get("/readyz") == 200
        counts = berth.counts
        assert counts.displaced == 1
        assert counts.failed_accepts >= 1
    assert "HTTP connections cannot be accepted" in caplog.text


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_that_comes_as_the_server_stops_is_closed(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, shut_down = socket.socket(), http_server._Server.shutdown

    async def connected_first(server: Any, sockets: list[socket.socket]) -> None:
        client.connect((LOOPBACK, berth.server.port))
        for _ in range(turns):
            await asyncio.sleep(0)
        await shut_down(server, sockets)

    monkeypatch.setattr(http_server._Server, "shutdown", connected_first)
    async with world() as berth:
        pass
    with client, suppress(ConnectionResetError):
        assert client.recv(1) == b""
    gc.collect()  # a socket that nobody closed would warn, which fails the test


async def test_connections_under_way_end_with_the_server() -> None:
    async with world(tls=True) as berth:
        peers = [await berth.connect(silent=True) for _ in range(MOST)]
        await until(lambda: berth.counts.open == MOST)
    assert [await reader.read() for reader, _ in peers] == [b""] * MOST
    assert berth.counts.open == 0


def test_heads_that_never_end_take_little_memory() -> None:
    """All connections together, before anybody has said who he is."""
    assert MOST_BY_DEFAULT * http_server.LARGEST_HEAD <= 128 << 20


def test_a_system_that_gives_less_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def setrlimit(_what: int, limits: tuple[int, int]) -> None:
        asked.append(limits)
        if limits[0] > open_files.MOST_ON_MACOS:
            raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _what: (256, 1 << 62))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    open_files.raise_limit()
    assert asked == [(1 << 62, 1 << 62), (open_files.MOST_ON_MACOS, 1 << 62)]


async def nothing() -> int:
    return 0


def test_the_limit_of_files_is_raised_and_counts() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        few = HttpServer(PlainTextResponse("ok"))
        assert few._limit.most == 256 // SHARE_OF_FILES
        assert in_loop(nothing()) == 0  # as every command runs
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        assert open_files.raise_limit() == open_files.limit() >= hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
