"""``portforward``: connections to the ports of a pod, each a stream of bytes.

A client speaks SPDY, through a WebSocket if it can (KEP-4006), or has two channels of a WebSocket
for each port: data and errors. What listens in containers speaks HTTP.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

import httptools
from starlette.types import Receive, Scope, Send

from berth.cluster import errors
from berth.cluster.errors import StatusError
from berth.cluster.http.requests import refusal
from berth.cluster.http.subresources.spdy import Opened, SpdyConnection, SpdyError
from berth.cluster.http.subresources.websocket import (
    headers_of,
    open_websocket,
    wants_upgrade,
)
from berth.cluster.kubelet.processes.shell import HttpAnswer, HttpRequest
from berth.runtime.upgrades import UPGRADE

if TYPE_CHECKING:
    from berth.cluster.http.subresources.websocket_messages import WebSocket

TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
CHANNELS: Final = "v4.channel.k8s.io"
LARGEST_BODY: Final = 1 << 20

Answering = Callable[[HttpRequest], HttpAnswer]
Listener = Callable[[int], Answering | None]
"""Returns what answers requests to a port; None: nothing listens there."""


class PortForward:
    """An ASGI application: connections to the ports of the pod *name*."""

    def __init__(self, name: str, listener: Listener) -> None:
        self._name = name
        self._listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        try:
            if "spdy/3.1" in headers.get("upgrade", "").lower():
                await self._on_connection(scope)
                return
            socket = open_websocket(scope, (TUNNEL, CHANNELS))
        except StatusError as exc:
            await refusal(exc)(scope, receive, send)
            return
        try:
            if socket.protocol == TUNNEL:
                await self._spdy(socket.receive, socket.send)
            else:
                query = parse_qs(scope["query_string"].decode("latin-1"))
                texts = ",".join(query.get("ports", [])).split(",")
                await self._channels(socket, [int(text) for text in texts if text.isdigit()])
        finally:
            socket.close()

    async def _on_connection(self, scope: Scope) -> None:
        upgrade = scope["state"].get(UPGRADE)
        if upgrade is None or not wants_upgrade(headers_of(scope)):
            raise errors.bad_request("Upgrade request required")
        connection = upgrade(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n"
            b"X-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n"
        )

        async def read() -> bytes | None:
            return await connection.read() or None

        try:
            await self._spdy(read, connection.write)
        finally:
            connection.close()

    async def _spdy(
        self, read: Callable[[], Awaitable[bytes | None]], write: Callable[[bytes], None]
    ) -> None:
        """Serve streams: for each connection one for errors, and then one for data."""
        spdy = SpdyConnection()
        errors_of: dict[str, int] = {}
        connections: dict[int, tuple[HttpConnection, int]] = {}
        while (data := await read()) is not None:
            try:
                for event in spdy.receive(data):
                    if isinstance(event, Opened):
                        spdy.reply(event.stream)
                        request = event.headers.get("requestid", "")
                        port = event.headers.get("port", "")
                        if event.headers.get("streamtype") == "error":
                            errors_of[request] = event.stream
                            continue
                        error = errors_of.pop(request, 0)
                        answering = self._listener(int(port)) if port.isdigit() else None
                        if answering is not None:
                            connections[event.stream] = HttpConnection(answering), error
                            continue
                        spdy.send(error, self._refused(port), is_end=True)
                        spdy.send(event.stream, b"", is_end=True)
                    elif event.stream in connections:
                        connection, error = connections[event.stream]
                        answer = connection.feed(event.data)
                        is_end = event.is_end or connection.is_closed
                        if answer or is_end:
                            spdy.send(event.stream, answer, is_end=is_end)
                        if is_end:
                            spdy.send(error, b"", is_end=True)
                            del connections[event.stream]
            except SpdyError:
                return
            if spdy.outgoing:
                write(bytes(spdy.outgoing))
                spdy.outgoing.clear()

    async def _channels(self, socket: "WebSocket", ports: list[int]) -> None:
        """Serve two channels for each of *ports*; each begins with the number of the port."""
        connections: dict[int, HttpConnection] = {}
        for number, port in enumerate(ports):
            answering = self._listener(port)
            for channel in (2 * number, 2 * number + 1):
                socket.send(bytes([channel]) + port.to_bytes(2, "little"))
            if answering is None:
                socket.send(bytes([2 * number + 1]) + self._refused(str(port)))
            else:
                connections[2 * number] = HttpConnection(answering)
        while (message := await socket.receive()) is not None:
            connection = connections.get(message[0]) if message else None
            if connection is None:
                continue
            if answer := connection.feed(message[1:]):
                socket.send(message[:1] + answer)
            if connection.is_closed:
                return

    def _refused(self, port: str) -> bytes:
        return (
            f"error forwarding port {port} to pod {self._name}: dial tcp4 127.0.0.1:{port}: "
            "connect: connection refused"
        ).encode()


class HttpConnection:
    """A connection to a server in a container: bytes of HTTP/1.1 in, and out."""

    def __init__(self, answering: Answering) -> None:
        self.is_closed = False
        self._answering = answering
        self._parser = httptools.HttpRequestParser(self)
        self._answers = bytearray()
        self._url = self._body = b""

    def feed(self, data: bytes) -> bytes:
        """Take what the client sends; return what it gets."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._answer(HttpAnswer("", 400), is_last=True)
        answers = bytes(self._answers)
        self._answers.clear()
        return answers

    def on_message_begin(self) -> None:
        self._url = self._body = b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        if len(self._body) < LARGEST_BODY:
            self._body += body

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode()
        url = urlsplit(self._url.decode("latin-1"))
        request = HttpRequest(method, unquote(url.path), dict(parse_qsl(url.query)), self._body)
        answer = self._answering(request)
        self._answer(
            answer, is_last=not self._parser.should_keep_alive(), has_body=method != "HEAD"
        )

    def _answer(self, answer: HttpAnswer, *, is_last: bool, has_body: bool = True) -> None:
        body = answer.body.encode()
        phrase = HTTPStatus(answer.code).phrase if answer.code in set(HTTPStatus) else ""
        self._answers += (
            f"HTTP/1.1 {answer.code} {phrase}\r\nContent-Type: {answer.content_type}\r\n"
            f"Content-Length: {len(body)}\r\n"
            + ("Connection: close\r\n" if is_last else "")
            + "\r\n"
        ).encode()
        self._answers += body if has_body else b""
        self.is_closed = is_last
