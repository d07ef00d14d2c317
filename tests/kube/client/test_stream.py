"""Streams: how answers are read while they come."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from berth.kube.client.errors import UnavailableError
from berth.kube.client.stream import Stream
from berth.kube.client.transport import READ_BUFFER

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HANG_UP = b""
"""In a script: the server closes the connection."""


class Wire(asyncio.Transport):
    """The other end of a connection, in a test's hand."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.pauses: list[bool] = []
        self.is_open = True
        self.stream = Stream()
        self._socket = socket.socket()
        self.stream.connection_made(self)

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._socket if name == "socket" else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def pause_reading(self) -> None:
        self.pauses.append(True)

    def resume_reading(self) -> None:
        self.pauses.append(False)

    def abort(self) -> None:
        if self.is_open:
            self.is_open = False
            self.stream.connection_lost(None)

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            if piece == HANG_UP:
                self.abort()
            elif self.is_open:
                self.stream.data_received(piece)


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    made = Wire()
    yield made
    made.stream.close()
    made._socket.close()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def read(wire: Wire) -> list[bytes]:
    await wire.stream.ask(b"GET / HTTP/1.1\r\n\r\n", timeout=None)
    async with aclosing(wire.stream.chunks()) as chunks:
        return [each async for each in chunks]


END = chunk(b"")


@pytest.mark.parametrize(
    ("said", "status", "body"),
    [
        pytest.param([CHUNKED, chunk(b"a"), chunk(b"b"), END], 200, b"ab", id="in chunks"),
        pytest.param(
            [CHUNKED[:20], CHUNKED[20:] + chunk(b"ab")[:4], b"b\r\n" + END], 200, b"ab",
            id="cut anywhere",
        ),
        pytest.param(
            [b"HTTP/1.1 100 Continue\r\n\r\n", CHUNKED, chunk(b"a"), END], 200, b"a",
            id="after a 1xx",
        ),
        pytest.param(
            [b"HTTP/1.1 410 Gone\r\nContent-Length: 2\r\n\r\n", b"no"], 410, b"no",
            id="a refusal",
        ),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\n\r\n", b"a", b"b", HANG_UP], 200, b"ab",
            id="until the connection ends",
        ),
    ],
)  # fmt: skip
async def test_answers(wire: Wire, said: list[bytes], status: int, body: bytes) -> None:
    reading = asyncio.create_task(read(wire))
    for piece in said:
        await asyncio.sleep(0)
        wire.say(piece)
    assert b"".join(await reading) == body
    assert wire.stream.status == status


@pytest.mark.parametrize(
    ("said", "error", "sent"),
    [
        pytest.param([HANG_UP], "the server closed the connection", None, id="no answer"),
        pytest.param([b"hello\r\n\r\n"], "the answer is garbled", None, id="not HTTP"),
        pytest.param(
            [CHUNKED, chunk(b"a"), HANG_UP], "the answer broke off", True, id="in the middle"
        ),
        pytest.param([CHUNKED, b"zz\r\n"], "the answer is garbled", True, id="no length"),
    ],
)
async def test_failures(wire: Wire, said: list[bytes], error: str, sent: bool | None) -> None:
    reading = asyncio.create_task(read(wire))
    for piece in said:
        await asyncio.sleep(0)
        wire.say(piece)
    with pytest.raises(UnavailableError, match=error) as raised:
        await reading
    assert raised.value.sent is sent


async def test_what_has_come_is_read_before_the_failure(wire: Wire) -> None:
    asking = asyncio.create_task(wire.stream.ask(b"", timeout=None))
    await asyncio.sleep(0)
    wire.say(CHUNKED, chunk(b"a"), HANG_UP)
    await asking
    async with aclosing(wire.stream.chunks()) as chunks:
        assert await anext(chunks) == b"a"
        with pytest.raises(UnavailableError):
            await anext(chunks)


async def test_the_server_is_held_back_while_nobody_reads(wire: Wire) -> None:
    asking = asyncio.create_task(wire.stream.ask(b"", timeout=None))
    await asyncio.sleep(0)
    wire.say(CHUNKED, chunk(b"x" * READ_BUFFER), chunk(b"x" * READ_BUFFER))
    assert wire.pauses == []
    wire.say(chunk(b"x"))
    assert wire.pauses == [True]
    await asking
    async with aclosing(wire.stream.chunks()) as chunks:
        assert len(await anext(chunks)) == 2 * READ_BUFFER + 1
        assert wire.pauses == [True, False]
