"""The API of the embedded cluster for its own parts: the same application, without a socket.

Who asks is authenticated and authorized like everybody else, and measured like everybody else.
What is spared is TLS, HTTP and the system calls, which cost as much as a small write.
"""

import asyncio
import copy
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, Self
from urllib.parse import urlencode

from starlette.types import ASGIApp, Message, Scope

from berth.kube.client.api import post_each
from berth.kube.client.api_client import OTHER_LEADER, Fence, LineBuffer, check_fences
from berth.kube.client.contact import Contact
from berth.kube.client.errors import ApiError, UnavailableError, from_status
from berth.kube.client.request_observer import NOBODY, RequestObserver
from berth.runtime.clock import Clock

HOST: Final = "in-process"
"""What metrics call the server."""

FAILING = 400

FOR_CONNECTIONS: Final = frozenset({"allowWatchBookmarks", "timeoutSeconds"})
"""Parameters of a watch for clients whose connections break, or are shared out among servers."""

MOST_CHUNKS = 4
"""Of a watch, that wait for their reader; the server waits when there are more."""


REQUESTS_PER_TURN: Final = 8
"""Requests that may begin in one turn of the event loop; an ordinary one takes a fifth of a
millisecond."""


class Turns:
    """Lets few requests begin per turn of the event loop, so that others get theirs in between."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._left = 0
        """Requests that may still begin in this turn."""

    async def take(self) -> None:
        """Return when the next request may begin."""
        if not self._left or self._lock.locked():
            async with self._lock:
                await asyncio.sleep(0)
                self._left = REQUESTS_PER_TURN
        self._left -= 1


class InProcessApi:
    """A :class:`berth.kube.client.api.ObservedApi` of the ASGI application *app*, without rate
    limit.

    *authorization* is the value of that header, empty for none. All that share an event loop with
    *app* should share *turns*.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        user_agent: str,
        authorization: str = "",
        turns: Turns,
        clock: Clock,
    ) -> None:
        self.observer: RequestObserver = NOBODY
        self.contact = Contact(clock)
        self._app = app
        self._turns = turns
        self._clock = clock
        self._fences: tuple[Fence, ...] = ()
        self._headers = [(b"accept", b"application/json"), (b"user-agent", user_agent.encode())]
        if authorization:
            self._headers.append((b"authorization", authorization.encode()))

    def accepting(self, media_type: str) -> Self:
        """Return an Api that asks for answers of *media_type*, such as metadata only."""
        accepting = copy.copy(self)
        others = [(name, value) for name, value in self._headers if name != b"accept"]
        accepting._headers = [(b"accept", media_type.encode()), *others]
        return accepting

    def fenced(self, may_write: Callable[[], bool], *, otherwise: str = OTHER_LEADER) -> Self:
        """Return an Api whose writes leave only while *may_write* says so, else FencedError."""
        fenced = copy.copy(self)
        fenced._fences = (*self._fences, Fence(may_write, otherwise))
        return fenced

    def unlimited(self) -> Self:
        """Return itself: nothing is limited."""
        return self

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        """Make one request and return the body of its answer."""
        await self._turns.take()
        check_fences(self._fences, method, path)
        started = self._clock.monotonic()
        exchange = _Exchange(body or b"")
        scope = self._scope(method, path, params, None if body is None else content_type)
        try:
            async with asyncio.timeout(timeout):
                await self._app(scope, exchange.receive, exchange.send)
        except TimeoutError as exc:
            seconds = self._clock.monotonic() - started
            self.observer.unanswered(HOST, method, seconds=seconds)
            self.contact.missed()
            why = f"{method} {path}: no answer within {timeout} s"
            raise UnavailableError(why, sent=True) from exc
        self.contact.answered(exchange.status)
        self.observer.answered(
            HOST,
            method,
            exchange.status,
            seconds=self._clock.monotonic() - started,
            sent=len(body or b""),
            received=len(exchange.body),
        )
        if exchange.status >= FAILING:
            raise exchange.error()
        return exchange.body

    async def post_all(self, posts: Sequence[tuple[str, bytes]]) -> list[bytes | ApiError]:
        """Make one request after the other: there is no connection to save on."""
        return await post_each(self, posts)

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Yield the JSON lines of a watch until the server ends it, the first of them empty.

        A watch that goes on from a version and asks for bookmarks gets none, and ends when the
        server ends it by itself: see :data:`FOR_CONNECTIONS`.
        """
        await self._turns.take()
        exchange, buffer = _Stream(), LineBuffer()
        asked = {**params, "watch": "true"}
        if "allowWatchBookmarks" in params and "sendInitialEvents" not in params:
            asked = {name: value for name, value in asked.items() if name not in FOR_CONNECTIONS}
        scope = self._scope("GET", path, asked, None)
        asking = asyncio.ensure_future(
            _to_the_end(self._app(scope, exchange.receive, exchange.send), exchange)
        )
        try:
            await exchange.started.wait()
            self.observer.watching(HOST, exchange.status)
            self.contact.answered(exchange.status)
            if exchange.status < FAILING:
                yield b""
            while (chunk := await exchange.next_chunk()) is not None:
                for line in buffer.feed(chunk):
                    yield line
            await asking
            if exchange.status >= FAILING:
                raise exchange.error()
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    def _scope(
        self, method: str, path: str, params: Mapping[str, str] | None, content_type: str | None
    ) -> Scope:
        headers = self._headers
        if content_type is not None:
            headers = [*headers, (b"content-type", content_type.encode())]
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": path,
            "root_path": "",
            "query_string": urlencode(params).encode() if params else b"",
            "headers": headers,
            "client": None,
            "server": None,
            "state": {},
        }


async def _to_the_end(asking: Awaitable[None], exchange: "_Stream") -> None:
    try:
        await asking
    finally:
        exchange.end()


class _Exchange:
    """One request as ASGI has it, and its answer."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._parts: list[bytes] = []
        self._headers: list[tuple[bytes, bytes]] = []
        self.status = 0

    @property
    def body(self) -> bytes:
        parts = self._parts
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def error(self) -> Exception:
        """Return the error that the answer means."""
        after = next((v.decode() for k, v in self._headers if k == b"retry-after"), None)
        return from_status(self.body, status=self.status, retry_after=after)

    async def receive(self) -> MutableMapping[str, Any]:
        body, self._body = self._body, b""
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._headers = message["headers"]
        elif body := message.get("body", b""):
            self._parts.append(body)


class _Stream(_Exchange):
    """An exchange of which the parts of a good answer are read one at a time, by one reader."""

    def __init__(self) -> None:
        super().__init__(b"")
        self.started = asyncio.Event()
        """Whether the status is known, or there will be none."""
        self._chunks: deque[bytes] = deque()
        self._is_over = False
        self._reader: asyncio.Future[None] | None = None
        """Waits for a chunk."""
        self._writer: asyncio.Future[None] | None = None
        """Waits for room."""

    async def next_chunk(self) -> bytes | None:
        """Return the next part of an answer that streams; None at its end."""
        while not self._chunks:
            if self._is_over:
                return None
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        _wake(self._writer)
        return self._chunks.popleft()

    def end(self) -> None:
        """Note that nothing comes any more."""
        self._is_over = True
        self.started.set()
        _wake(self._reader)

    async def send(self, message: Message) -> None:
        is_start = message["type"] == "http.response.start"
        if is_start or self.status >= FAILING:
            await super().send(message)
            if is_start:
                self.started.set()
        elif body := message.get("body", b""):
            self._chunks.append(body)
            _wake(self._reader)
            if len(self._chunks) > MOST_CHUNKS:
                self._writer = asyncio.get_running_loop().create_future()
                await self._writer


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
