"""How connections are read and written: at once what is written, and no head without end."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from berth.runtime.connection_limit import ConnectionLimit
from berth.runtime.http_server import (
    CLOSE_SECONDS,
    HEAD_SECONDS,
    LARGEST_HEAD,
    HttpServer,
    Protocol,
)
from berth.runtime.http_transport import (
    HIGH_WATER,
    LINGER_BYTES,
    LINGER_SECONDS,
    QUIET_SECONDS,
    GatheringTransport,
)
from berth.runtime.upgrades import UPGRADE

EOF = b"<eof>"
"""Stands for the end of what is written."""


class Recorder(asyncio.Transport):
    """Remembers what reached it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        assert not self.closed
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        """The test says when something comes."""

    def resume_reading(self) -> None:
        """The same."""

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.written.append(EOF)

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The test says when it is full."""


def nothing(*, is_much: bool) -> None:
    raise AssertionError(f"told of little: {is_much}")


def ends() -> bool:
    """Tell that a connection need not linger."""
    return False


async def test_who_writes_much_in_one_turn_waits_for_its_end() -> None:
    told: list[bool] = []
    recorder = Recorder()
    transport = GatheringTransport(recorder, lambda *, is_much: told.append(is_much), ends)
    for _ in range(4):
        transport.write(bytes(HIGH_WATER // 2))
    assert told == [True]
    await asyncio.sleep(0)
    assert told == [True, False]
    assert [len(each) for each in recorder.written] == [2 * HIGH_WATER]
    transport.write(b"little")
    await asyncio.sleep(0)
    assert told == [True, False]


async def test_a_client_that_does_not_take_the_rest_is_hung_up_on() -> None:
    connection = Connection()
    connection.protocol.timeout_keep_alive_handler()
    assert connection.wire.closed
    assert CLOSE_SECONDS in connection.patience
    connection.protocol.connection_lost(None)
    assert CLOSE_SECONDS not in connection.patience


async def test_what_is_written_in_one_turn_is_one_write() -> None:
    recorder = Recorder()
    transport = GatheringTransport(recorder, nothing, ends)
    transport.write(b"head")
    transport.write(b"body")
    assert recorder.written == []
    await asyncio.sleep(0)
    transport.write(b"next")
    await asyncio.sleep(0)
    assert recorder.written == [b"headbody", b"next"]


async def test_closing_writes_the_rest_first() -> None:
    recorder = Recorder()
    transport = GatheringTransport(recorder, nothing, ends)
    transport.write(b"last words")
    transport.close()
    await asyncio.sleep(0)
    assert (recorder.written, recorder.closed) == ([b"last words"], True)


async def test_nothing_is_written_to_a_client_that_has_gone() -> None:
    recorder = Recorder()
    transport = GatheringTransport(recorder, nothing, ends)
    transport.write(b"too late")
    recorder.close()
    await asyncio.sleep(0)
    assert recorder.written == []


OK = PlainTextResponse("ok")
REFUSAL = PlainTextResponse("too large", 413, headers={"Connection": "close"})
REQUEST = b"GET / HTTP/1.1\r\n\r\n"


class Timer:
    """Can be cancelled, and does not go off by itself."""

    def __init__(self, seconds: float, go_off: Callable[[], None]) -> None:
        self.seconds = seconds
        self.go_off = go_off
        self.is_pending = True

    def cancel(self) -> None:
        self.is_pending = False


class Loop:
    """What a connection asks of its event loop."""

    def __init__(self) -> None:
        self._timers: list[Timer] = []

    def create_task(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.create_task(coroutine, name="request")

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        self._timers.append(Timer(seconds, callback))
        return self._timers[-1]

    @property
    def pending(self) -> list[Timer]:
        return [timer for timer in self._timers if timer.is_pending]


class Connection:
    """One that a client has just opened."""

    def __init__(self, app: ASGIApp = OK) -> None:
        config = Config(app, http=Protocol, ws="none", lifespan="off", log_config=None)
        self.loop, self.wire = Loop(), Recorder()
        loop = cast("asyncio.AbstractEventLoop", self.loop)
        seat = ConnectionLimit().enter()
        assert seat is not None
        self.protocol = Protocol(config, ServerState(), {}, _loop=loop, seat=seat)
        self.protocol.connection_made(self.wire)

    @property
    def patience(self) -> list[float]:
        """Seconds until it is hung up, if nothing more comes."""
        return [timer.seconds for timer in self.loop.pending]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([], id="nothing"),
        pytest.param([b"GET / HTTP/1.1\r\n"], id="a part of the first head"),
        pytest.param([b"GET / HTTP/1.1\r\na: ", b"b\r\n", b"c: d\r\n"], id="a line at a time"),
    ],
)
async def test_a_client_has_so_long_for_its_first_head(said: list[bytes]) -> None:
    connection = Connection()
    for data in said:
        connection.protocol.data_received(data)

    assert connection.patience == [HEAD_SECONDS]
    connection.loop.pending[0].go_off()
    assert connection.wire.closed


async def test_a_client_has_as_long_for_each_later_head() -> None:
    connection = Connection()
    connection.protocol.data_received(REQUEST)
    assert connection.patience == []
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert connection.patience == [5]  # what uvicorn gives it to begin, by default
    connection.protocol.data_received(REQUEST[:9])
    assert connection.patience == [HEAD_SECONDS]
    connection.protocol.data_received(REQUEST[9:])
    assert connection.patience == []


async def test_a_client_that_goes_is_not_waited_for() -> None:
    connection = Connection()
    connection.protocol.connection_lost(None)

    assert connection.patience == []


@pytest.mark.parametrize("separator", [b"", b"\r\na: "], ids=["in one header", "in many headers"])
async def test_a_head_is_not_kept_without_end(separator: bytes) -> None:
    connection = Connection()
    connection.protocol.data_received(b"GET / HTTP/1.1\r\na: ")
    piece = b"x" * 1024 + separator
    for _ in range(LARGEST_HEAD // len(piece) - 1):
        connection.protocol.data_received(piece)
    assert not connection.wire.closed
    connection.protocol.data_received(2 * piece)

    assert connection.wire.closed


async def test_a_body_may_be_larger_than_a_head() -> None:
    connection = Connection()
    connection.protocol.data_received(b"POST / HTTP/1.1\r\ncontent-length: 9999999\r\n\r\n")
    for _ in range(3):
        connection.protocol.data_received(b"x" * LARGEST_HEAD)

    assert not connection.wire.closed


@pytest.mark.parametrize("protocol", ["websocket", "SPDY/3.1"])
async def test_a_request_to_upgrade_is_answered_without_a_warning(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    """``kubectl exec`` sends it to an API server whose nodes run no containers."""
    connection = Connection()
    head = f"POST / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\r\n"
    connection.protocol.data_received(head.encode())
    for _ in range(3):
        await asyncio.sleep(0)

    assert b"".join(connection.wire.written).startswith(b"HTTP/1.1 200 OK\r\n")
    assert caplog.messages == []


UPLOAD = b"POST / HTTP/1.1\r\ncontent-length: 99999999\r\n\r\nx"


async def refused(said: bytes = UPLOAD) -> Connection:
    """Return a connection whose request was refused before it had ended."""
    connection = Connection(REFUSAL)
    connection.protocol.data_received(said)
    for _ in range(3):
        await asyncio.sleep(0)
    assert connection.wire.written[0].startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 400 "))
    return connection


def look(connection: Connection) -> None:
    """Let the only timer that is pending go off."""
    [timer] = connection.loop.pending
    timer.cancel()
    timer.go_off()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(UPLOAD, id="the body has not ended"),
        pytest.param(b"no HTTP" * 100, id="nobody knows what it is"),
        pytest.param(2 * b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n", id="another request"),
    ],
)
async def test_after_an_early_answer_the_rest_is_discarded(said: bytes) -> None:
    connection = await refused(said)
    assert connection.wire.written[1:] == [EOF]
    for _ in range(LINGER_BYTES >> 20):
        connection.protocol.data_received(bytes(1 << 20))
        assert not connection.wire.closed
    connection.protocol.data_received(b"x")
    assert connection.wire.closed
    assert connection.wire.written[1:] == [EOF]
    connection.protocol.connection_lost(None)
    assert connection.patience == []


async def test_a_client_that_goes_on_after_an_early_answer_is_hung_up_on_in_time() -> None:
    connection = await refused()
    for _ in range(int(LINGER_SECONDS / QUIET_SECONDS)):
        assert not connection.wire.closed
        assert connection.patience == [QUIET_SECONDS]
        connection.protocol.data_received(b"x")
        look(connection)
    assert connection.wire.closed
    assert connection.patience == [CLOSE_SECONDS]


async def test_a_client_that_says_nothing_after_an_early_answer_is_not_waited_for() -> None:
    connection = await refused()
    look(connection)
    assert connection.wire.closed


async def test_a_server_that_stops_does_not_linger() -> None:
    connection = await refused()
    connection.protocol.shutdown()
    assert connection.wire.closed
    assert connection.patience == [CLOSE_SECONDS]


async def test_a_request_that_has_ended_is_answered_and_the_connection_closed() -> None:
    connection = Connection(REFUSAL)
    connection.protocol.data_received(REQUEST)
    for _ in range(3):
        await asyncio.sleep(0)
    assert connection.wire.closed
    assert connection.patience == []


async def test_a_connection_that_leaves_http() -> None:
    read: list[bytes] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        upgraded = scope["state"][UPGRADE](b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        while data := await upgraded.read():
            read.append(data)
            upgraded.write(data.upper())
            if data == b"bye":
                upgraded.close()

    server = HttpServer(app)
    await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
    writer.write(b"no HTTP \xff\r\n\r\n")
    assert await reader.readexactly(13) == b"NO HTTP \xff\r\n\r\n"
    writer.write(b"bye")
    assert await reader.read() == b"BYE"
    writer.close()
    await writer.wait_closed()
    await server.stop()
    assert b"".join(read) == b"no HTTP \xff\r\n\r\nbye"
