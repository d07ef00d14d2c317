"""An HTTP proxy on loopback that makes a server misbehave, request by request.

It speaks as much HTTP/1.1 as the two sides do: requests have a Content-Length or no body, answers a
Content-Length or chunks of whole lines (watches). Each request gets a connection of its own to the
server, so what a fault does to one does nothing to others.
"""

import asyncio
import re
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

LOOPBACK: Final = "127.0.0.1"
RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of no time: closing tells the peer "connection reset by peer"."""

Lines = Callable[[bytes], Sequence[bytes] | None]
"""What is sent in place of one line of a watch; None resets the connection."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in place of the server's."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def encode(self) -> bytes:
        headers = {**self.headers, "Content-Length": str(len(self.body))}
        head = [f"HTTP/1.1 {self.status} Fault", *(f"{k}: {v}" for k, v in headers.items())]
        return "\r\n".join([*head, "\r\n"]).encode() + self.body


@dataclass(slots=True)
class Fault:
    """What happens to the next *times* requests of *method* whose unquoted target has *target*.

    Both are regular expressions. In this order: the request waits for *delay* seconds,
    reaches the server if *forwarded*, and then the connection is reset, or *answer* is sent, or the
    server's own answer, the lines of which go through *lines* if it is a watch.
    """

    method: str
    target: str
    times: int = 1
    delay: float = 0.0
    forwarded: bool = True
    reset: bool = False
    answer: Answer | None = None
    lines: Lines | None = None

    hits: int = 0
    """How many requests it has happened to."""

    def is_for(self, request: "Request") -> bool:
        return (
            self.hits < self.times
            and re.fullmatch(self.method, request.method) is not None
            and re.search(self.target, unquote(request.target)) is not None
        )


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    raw: bytes


class Proxy:
    """Stands before the server at port *server_port*, which may be changed at any time.

    The first of ``faults`` that is for a request happens to it. ``bound`` counts the bindings that
    the server accepted, whatever the client heard of it, by the path of the pod.
    """

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.faults: list[Fault] = []
        self.bound: Counter[str] = Counter()
        self.page_size: int | None = None
        """How many objects the server is asked for at most where the client limits a list."""
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen; return the URL."""
        self._server = await asyncio.start_server(self._accepted, LOOPBACK, 0)
        return f"http://{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for _ in range(3):  # asyncio makes a connection of what it accepted last
            await asyncio.sleep(0)
        self.reset_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def reset_all(self) -> None:
        """Reset every connection to a client."""
        for client in tuple(self._clients):
            reset(client)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._clients.add(writer)
        try:
            while (request := await read_request(reader)) is not None:
                await self._serve(request, writer)
        except (OSError, asyncio.IncompleteReadError):
            reset(writer)
        except asyncio.CancelledError:
            pass  # only by stop(); asyncio's streams would log it
        finally:
            self._clients.discard(writer)
            writer.close()

    async def _serve(self, request: Request, client: asyncio.StreamWriter) -> None:
        planned = (fault for fault in self.faults if fault.is_for(request))
        fault = next(planned, Fault("", ""))
        fault.hits += 1
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if not fault.forwarded:
            await self._instead(fault, client)
            return
        reader, server = await asyncio.open_connection(LOOPBACK, self.server_port)
        try:
            server.write(self._limited(request.raw))
            head = await reader.readuntil(b"\r\n\r\n")
            self._count(request, head)
            if fault.reset or fault.answer is not None:
                await reader.readexactly(content_length(head))
                await self._instead(fault, client)
            elif b"transfer-encoding: chunked" in head.lower():
                client.write(head)
                await pass_lines(reader, client, fault.lines)
            else:
                client.write(head + await reader.readexactly(content_length(head)))
                await client.drain()
        finally:
            server.transport.abort()

    def _limited(self, raw: bytes) -> bytes:
        if self.page_size is None:
            return raw
        return re.sub(rb"([?&]limit=)\d+", rb"\g<1>%d" % self.page_size, raw, count=1)

    async def _instead(self, fault: Fault, client: asyncio.StreamWriter) -> None:
        if fault.answer is None:
            raise ConnectionResetError
        client.write(fault.answer.encode())
        await client.drain()

    def _count(self, request: Request, head: bytes) -> None:
        path, _, subresource = request.target.rpartition("/")
        if request.method == "POST" and subresource == "binding" and head[9:10] == b"2":
            self.bound[path] += 1


async def pass_lines(
    reader: asyncio.StreamReader, client: asyncio.StreamWriter, change: Lines | None
) -> None:
    """Pass the chunks of a watch on, line by line through *change*."""
    async for chunk in chunks(reader):
        for line in [chunk] if change is None else chunk.splitlines(keepends=True):
            instead = [line] if change is None else change(line)
            if instead is None:
                raise ConnectionResetError
            if data := b"".join(instead):
                client.write(b"%x\r\n%b\r\n" % (len(data), data))
        await client.drain()
    client.write(b"0\r\n\r\n")
    await client.drain()


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline() or b"0", 16):
        yield (await reader.readexactly(size + 2))[:-2]


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Return the next request of a connection; None when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
    return Request(method, target, head + await reader.readexactly(content_length(head)))


def content_length(head: bytes) -> int:
    found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    return int(found[1]) if found else 0


def reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection so that the peer is told of a failure, not of an end."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    writer.transport.abort()
