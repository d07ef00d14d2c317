"""Connections to one server, each taken by one user at a time.

::

    Connections.take --> Connection.exchange --> answers read to their end --> idle, taken again
                                 |
                                 +--> broken, too late, given up --> closed

An exchange is a request and its answer, or several of which all are sent before the first is
answered, as HTTP/1.1 has it (RFC 9112, section 9.3.2): servers answer them one after the other.

    Connections.stream --> an answer that is read while it comes --> closed

Decision (2026-11): only requests to a server behind a proxy go through aiohttp's session
(:mod:`berth.kube.client.proxied`). A request through the session costs 100 µs of CPU, here 10, and
a bound pod takes two of them (``berth bench throughput``); and to import aiohttp is a seventh of
the start of a scheduler. The parsing is httptools'.

Decision (2026-11): a binding has a connection to itself, though four that leave together over one
would take 20 µs of CPU less each, of 75 with their events. Whoever waits behind a request that
hangs may be carried out long after it was given up: when its room is another's, or another replica
leads. Events may be late, or be written twice.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar, cast
from urllib.parse import urlsplit

import httptools

from berth.kube.client.errors import UnavailableError
from berth.kube.client.stream import Stream
from berth.kube.client.transport import CONNECT_TIMEOUT, Headers, Response
from berth.runtime.clock import Clock

P = TypeVar("P", bound=asyncio.Protocol)

IDLE_LIMIT: Final = 15.0
"""Seconds after which an unused connection is not used again: less than servers and load balancers
keep one, so that a request seldom meets a connection that is being closed."""


def header_lines(headers: Mapping[str, str]) -> bytes:
    """Return *headers* as they are sent, each with the end of its line."""
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")


class Connections:
    """Makes and keeps connections to the server at *url*, whose path comes before all targets.

    The usual :class:`~berth.kube.client.transport.Transport`. There are as many connections as are
    taken at the same time; how many that may be is up to who takes them.
    """

    def __init__(
        self, url: str, *, tls: ssl.SSLContext | bool, server_hostname: str | None, clock: Clock
    ) -> None:
        """*server_hostname* is the name that the certificate must have, None: that of *url*."""
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self._path = parts.path.rstrip("/").encode("latin-1")
        self._host_line = f"Host: {host}\r\n".encode("latin-1")
        self._is_secure = parts.scheme == "https"
        self._name = parts.hostname or ""
        self._port = parts.port or (443 if self._is_secure else 80)
        self._tls = tls
        self._server_hostname = server_hostname
        self.clock = clock
        self._all: set[Connection] = set()
        self._idle: list[Connection] = []
        self._streams: set[Stream] = set()

    @property
    def idle(self) -> int:
        """How many connections are open and not in use."""
        return len(self._idle)

    async def take(self) -> "Connection":
        """Return a connection for one exchange. Raises UnavailableError, ``sent`` being False."""
        oldest_useful = self.clock.monotonic() - IDLE_LIMIT
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since >= oldest_useful:
                return connection
            connection.close()
        return await self._connect(lambda: Connection(self))

    async def exchange(
        self,
        method: str,
        target: str,
        *,
        headers: Headers,
        body: bytes | None,
        timeout: float,
        guard: Callable[[], None],
    ) -> Response:
        """Send a request and return the answer, as ``Transport`` has it."""
        connection = await self._take_guarded(guard)
        request = self.request(method, target, headers=headers.lines, body=body)
        (answer,) = await connection.exchange(request, 1, timeout=timeout)
        if isinstance(answer, UnavailableError):
            raise answer
        return answer

    async def post_all(
        self,
        posts: Sequence[tuple[str, bytes]],
        *,
        headers: Headers,
        timeout: float,
        guard: Callable[[], None],
    ) -> list[Response | UnavailableError]:
        """Post over one connection, as ``Transport`` has it.

        What a server leaves unanswered that hangs up after some answers is sent again over another
        connection: some keep none for a second request. It may have acted on it.
        """
        answers: list[Response | UnavailableError] = []
        while True:
            connection = await self._take_guarded(guard)
            left = posts[len(answers) :]
            requests = [
                self.request("POST", target, headers=headers.lines, body=body)
                for target, body in left
            ]
            new = await connection.exchange(b"".join(requests), len(left), timeout=timeout)
            answered = [answer for answer in new if isinstance(answer, Response)]
            if not answered or not connection.was_hung_up:
                return answers + new
            answers += answered
            if len(answers) == len(posts):
                return answers

    async def _take_guarded(self, guard: Callable[[], None]) -> "Connection":
        connection = await self.take()
        try:
            guard()
        except BaseException:
            self.give_back(connection)
            raise
        return connection

    @asynccontextmanager
    async def stream(
        self, target: str, *, headers: Headers, timeout: float | None
    ) -> AsyncIterator[Stream]:
        """Get *target* on a connection of its own, as ``Transport`` has it."""
        stream = await self._connect(Stream)
        self._streams.add(stream)
        try:
            request = self.request("GET", target, headers=headers.lines, body=None)
            await stream.ask(request, timeout=timeout)
            yield stream
        finally:
            self._streams.discard(stream)
            stream.close()

    async def _connect(self, protocol: Callable[[], P]) -> P:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                _, made = await asyncio.get_running_loop().create_connection(
                    protocol,
                    self._name,
                    self._port,
                    ssl=self._tls if self._is_secure else None,
                    server_hostname=self._server_hostname if self._is_secure else None,
                )
        except TimeoutError as exc:
            raise UnavailableError("the connection was not accepted in time", sent=False) from exc
        except OSError as exc:
            raise UnavailableError(str(exc), sent=False) from exc
        return made

    def request(self, method: str, target: str, *, headers: bytes, body: bytes | None) -> bytes:
        """Return a request as it is sent.

        *headers* are :func:`header_lines` without Host and Content-Length.
        """
        length = b"" if body is None else b"Content-Length: %d\r\n" % len(body)
        return b"%b %b%b HTTP/1.1\r\n%b%b%b\r\n%b" % (
            method.encode("latin-1"),
            self._path,
            target.encode("latin-1"),
            self._host_line,
            headers,
            length,
            body or b"",
        )

    def opened(self, connection: "Connection") -> None:
        self._all.add(connection)

    def give_back(self, connection: "Connection") -> None:
        """Keep a connection that was taken and is fit for another exchange."""
        connection.idle_since = self.clock.monotonic()
        self._idle.append(connection)

    def lost(self, connection: "Connection") -> None:
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    async def close(self) -> None:
        """Close all connections at once; exchanges that are under way fail."""
        for connection in tuple(self._all):
            connection.close()
        for stream in tuple(self._streams):
            stream.close()
        await asyncio.sleep(0)  # the loop tells each of them in its next turn


class Connection(asyncio.Protocol):
    """One connection, taken from *pool* for one exchange and given back when that is complete."""

    def __init__(self, pool: Connections) -> None:
        self.idle_since = 0.0
        self.was_hung_up = False
        """Whether the server has closed it, or said that it would, where an answer could begin."""
        self._pool = pool
        self._headers: dict[bytes, bytes] = {}
        self.on_header = self._headers.__setitem__  # few answers need any of them
        self._parser = httptools.HttpResponseParser(self)
        self._waiting: asyncio.Future[list[Response | UnavailableError]] | None = None
        self._answers: list[Response | UnavailableError] = []
        self._count = 0
        self._body: list[bytes] = []
        self._begin()

    async def exchange(
        self, requests: bytes, count: int, *, timeout: float
    ) -> list[Response | UnavailableError]:
        """Send *count* requests, and return what came of each. *timeout* is in seconds, for all.

        ``sent`` of an UnavailableError is None when there was no answer, True when it broke off.
        """
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[list[Response | UnavailableError]] = loop.create_future()
        self._waiting, self._answers, self._count = waiting, [], count
        too_late = loop.call_later(timeout, self._give_up, waiting)
        self._transport.write(requests)
        try:
            return await waiting
        finally:
            too_late.cancel()
            if waiting.cancelled():
                self.close()  # the answer may yet come, and must not be taken for another one

    def close(self) -> None:
        self._pool.lost(self)  # now: what the loop tells comes in its next turn
        self._transport.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._pool.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            self.close()  # nothing was asked
            return
        self._has_begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as exc:
            self._fail(f"the answer is garbled: {exc}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.lost(self)
        if exc is None and self._ends_with_connection:
            self._finish()
        elif self._has_begun:
            self._fail(f"the answer broke off: {exc or 'the server closed the connection'}")
        else:
            self.was_hung_up |= self._waiting is not None
            self._fail(f"{exc or 'the server closed the connection'}")

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._waiting is None:  # two answers to one request: there is no telling which is whose
            self.close()

    def on_headers_complete(self) -> None:
        self._has_headers = True

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._waiting is None:
            return
        if self._parser.get_status_code() < 200:
            self._begin()  # 1xx: the answer is still to come
            return
        keeps_alive = self._parser.should_keep_alive()
        was_last = self._finish()
        if not keeps_alive:
            self.was_hung_up = True
            self._fail("the server closed the connection")
        elif was_last:
            self._pool.give_back(self)

    # One answer.

    def _begin(self) -> None:
        """Be ready for an answer."""
        self._body.clear()
        self._headers.clear()
        self._has_begun = False
        self._has_headers = False

    def _header(self, name: bytes) -> bytes | None:
        """Return a header of the answer by its name in lower case."""
        return next((value for key, value in self._headers.items() if key.lower() == name), None)

    @property
    def _ends_with_connection(self) -> bool:
        """Whether the answer has no end of its own (RFC 9112, section 6.3)."""
        lengths = (self._header(name) for name in (b"content-length", b"transfer-encoding"))
        return self._has_headers and not any(length is not None for length in lengths)

    def _finish(self) -> bool:
        """Take an answer that is complete; say whether it is the last of the exchange."""
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        status = self._parser.get_status_code()
        wait = self._header(b"retry-after") if status >= 300 else None
        retry_after = None if wait is None else wait.decode("latin-1")
        self._answers.append(Response(status, retry_after, body))
        self._begin()
        was_last = len(self._answers) == self._count
        if was_last:
            self._tell()
        return was_last

    def _tell(self) -> None:
        """End the exchange with the answers that there are."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(self._answers)

    def _give_up(
        self, waiting: "asyncio.Future[list[Response | UnavailableError]]", turns: int = 2
    ) -> None:
        """Fail, unless the answer has arrived and is only not read yet: the loop may be late.

        uvloop looks at its timers before it reads, so it is let read once more.
        """
        if waiting is not self._waiting:
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._give_up, waiting, turns - 1)
        else:
            self._fail("timed out")

    def _fail(self, why: str) -> None:
        """Give up what is not answered; whether the server acted on it can only be told by looking.

        Of several requests, at most the first of these can have an answer that had begun.
        """
        if self._waiting is not None:
            missing = self._count - len(self._answers)
            has_begun = [True if self._has_begun else None, *[None] * missing]
            self._answers += [UnavailableError(why, sent=sent) for sent in has_begun[:missing]]
            self._tell()
        self.close()
