"""Speaking to one API server: requests and watches in raw bytes."""

import copy
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Final, NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
from yarl import URL

from berth.client.connections import CONNECT_TIMEOUT, Connections, Response, header_lines
from berth.client.contact import Contact
from berth.client.errors import (
    ApiError,
    FencedError,
    TooManyRequestsError,
    UnavailableError,
    from_status,
)
from berth.client.rate_limit import TokenBucket
from berth.client.request_observer import NOBODY, RequestObserver
from berth.clock import Clock

REQUEST_TIMEOUT: Final = 60.0
"""Seconds for a request with its answer; an API server gives up after as many itself."""

WATCH_GRACE: Final = 30.0
"""Seconds a watch may outlive the ``timeoutSeconds`` it asked for. A server ends watches in time;
one that is still open then hangs on a dead connection."""

THROTTLED_RETRIES: Final = 3

OTHER_LEADER: Final = "another replica may lead by now"

_needs_no_quotes: Final = re.compile(r"[A-Za-z0-9/._~-]*").fullmatch
"""Asked before ``quote``, which costs ten times as much and changes hardly any path."""


class Fence(NamedTuple):
    """When writes may leave, and why they do not otherwise."""

    may_write: Callable[[], bool]
    otherwise: str


def check_fences(fences: Iterable[Fence], method: str, what: str) -> None:
    """Raise FencedError if a request, which errors call *what*, may not leave now."""
    if method == "GET":
        return
    for fence in fences:
        if not fence.may_write():
            raise FencedError(f"{what}: not sent, {fence.otherwise}")


Authorization = Callable[[], Awaitable[str]]
"""Returns the value of the Authorization header, refreshed when due; "" for none."""


async def anonymous() -> str:
    """Send no Authorization header: for servers that need none, or a client certificate instead."""
    return ""


class Headers(NamedTuple):
    """The header fields of a request, and the same as they are sent."""

    fields: Mapping[str, str]
    lines: bytes


class LineBuffer:
    """Cuts a byte stream into lines. A line may span any number of chunks; time stays linear."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that *chunk* completes, without their ends."""
        first, *others = chunk.split(b"\n")
        self._begun.append(first)
        if not others:
            return []
        lines = [b"".join(self._begun), *others]
        self._begun = [lines.pop()]
        return [line for line in lines if line]


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn aiohttp's errors into ours, so that no other module imports it."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as exc:
        raise UnavailableError(f"{what}: {exc}", sent=False) from exc
    except aiohttp.ClientPayloadError as exc:
        raise UnavailableError(f"{what}: the answer broke off: {exc}", sent=True) from exc
    except TimeoutError as exc:
        raise UnavailableError(f"{what}: timed out", sent=None) from exc
    except (aiohttp.ClientError, OSError) as exc:
        raise UnavailableError(f"{what}: {exc!r}", sent=None) from exc


async def _ask_guard(
    _session: aiohttp.ClientSession,
    context: SimpleNamespace,
    _params: aiohttp.TraceRequestHeadersSentParams,
) -> None:
    guard: Callable[[], None] | None = context.trace_request_ctx
    if guard is not None:
        guard()


def _guarding() -> aiohttp.TraceConfig:
    """Return what has a session ask the guard of a request, its ``trace_request_ctx``, when the
    connection is there and nothing is written yet. If the guard raises, nothing is.

    Despite the name of the signal; also before each further try, which aiohttp makes by itself
    when a connection that was kept turns out to be closed.
    """
    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(_ask_guard)
    tracing.freeze()
    return tracing


class ApiClient:
    """Speaks to one API server. Made by :func:`berth.client.connect.connect`.

    Owns *session*, and *connections* for its requests; without these, as behind a proxy, requests
    go through the session like watches. Raises :class:`~berth.client.errors.ApiError` and nothing
    of the HTTP library.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        *,
        user_agent: str,
        limiter: TokenBucket,
        clock: Clock,
        authorization: Authorization = anonymous,
        server_hostname: str | None = None,
        proxy: str | None = None,
        connections: Connections | None = None,
        watch_grace: float = WATCH_GRACE,
    ) -> None:
        self.url = url.rstrip("/")
        self.limiter = limiter
        self.observer: RequestObserver = NOBODY
        """Who looks on. To be set before :meth:`fenced` makes another client like this one."""
        self.contact = Contact(clock)
        """Whether the server answers. To be set before :meth:`fenced`, if it is shared."""
        self._host = urlsplit(url).netloc.rpartition("@")[2]
        self._session = session
        self._clock = clock
        self._authorization = authorization
        self._server_hostname = server_hostname
        self._proxy = proxy
        self._connections = connections
        self._watch_grace = watch_grace
        # identity: on a cluster's own network, unpacking costs more than it saves (spec §7.2)
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": user_agent,
        }
        self._made_headers: dict[str | None, Headers] = {}
        """By content type, the latest."""
        self._fences: tuple[Fence, ...] = ()
        if connections is None:
            session.trace_configs.append(_guarding())

    def fenced(self, may_write: Callable[[], bool], *, otherwise: str = OTHER_LEADER) -> Self:
        """Return a client whose writes leave only while *may_write* says so, else FencedError.

        It is asked at the last moment: a request may have waited long before, for the rate limit,
        fresh credentials or a slow loop. The fences that this client has hold there, too. The error
        says *otherwise*. Connections and rate limit are shared; close one of both.
        """
        fenced = copy.copy(self)
        fenced._fences = (*self._fences, Fence(may_write, otherwise))
        return fenced

    def unlimited(self) -> Self:
        """Return a client without a rate limit. Connections are shared; close one of both."""
        unlimited = copy.copy(self)
        unlimited.limiter = TokenBucket(qps=0.0, burst=1, clock=self._clock)
        return unlimited

    def accepting(self, media_type: str) -> Self:
        """Return a client that asks for answers of *media_type*, such as metadata only.

        Connections and rate limit are shared; close one of both.
        """
        accepting = copy.copy(self)
        accepting._headers = {**self._headers, "Accept": media_type}
        accepting._made_headers = {}
        return accepting

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
        """Send one request and return the body of its answer.

        Waits for the rate limiter first. An answer 429 with a Retry-After is obeyed a few times,
        whatever the verb: it says that the server did not begin to work on the request. Nothing
        else is tried again here. *timeout* is in seconds, ``REQUEST_TIMEOUT`` when None.
        """
        retries = THROTTLED_RETRIES
        while True:
            check_fences(
                self._fences, method, f"{method} {path}"
            )  # what will not leave takes no turn
            await self._take_turn(method)
            try:
                return await self._send(
                    method,
                    path,
                    params=params,
                    body=body,
                    content_type=content_type,
                    timeout=REQUEST_TIMEOUT if timeout is None else timeout,
                )
            except TooManyRequestsError as exc:
                if exc.retry_after is None or retries == 0:
                    raise
                delay = exc.retry_after
            retries -= 1
            await self._clock.sleep(delay)

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Yield the JSON lines of a watch until the server ends it.

        *params* are sent as they are plus ``watch=true``. When they carry ``timeoutSeconds``, a
        watch that outlives it by *watch_grace* raises UnavailableError. A last line without an
        end is dropped: it is cut off, and comes again with the next watch. The first line is empty:
        it says that the server has accepted the watch, which may be quiet for long.
        """
        await self._take_turn("GET")
        asked = params.get("timeoutSeconds")
        timeout = aiohttp.ClientTimeout(
            total=int(asked) + self._watch_grace if asked else None, sock_connect=CONNECT_TIMEOUT
        )
        buffer = LineBuffer()
        with self._missing(), translated(f"watch {path}"):
            async with self._session.request(
                "GET",
                self.url + path,
                params={**params, "watch": "true"},
                headers=(await self._headers_with(None)).fields,
                timeout=timeout,
                allow_redirects=False,
                server_hostname=self._server_hostname,
                proxy=self._proxy,
            ) as response:
                self.observer.watching(self._host, response.status)
                self.contact.answered(response.status)
                if response.status != 200:
                    raise error_of(response, await response.read())
                yield b""
                async for chunk in response.content.iter_any():
                    for line in buffer.feed(chunk):
                        yield line

    async def close(self) -> None:
        """Close all connections."""
        if self._connections is not None:
            await self._connections.close()
        await self._session.close()

    async def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        timeout: float,
    ) -> bytes:
        headers = await self._headers_with(None if body is None else content_type)
        target = path if _needs_no_quotes(path) else quote(path)
        if params:
            target += "?" + urlencode(params, safe="!", quote_via=quote)
        started = self._clock.monotonic()
        try:
            answer = await self._exchange(
                f"{method} {path}", method, target, headers=headers, body=body, timeout=timeout
            )
        except UnavailableError:
            seconds = self._clock.monotonic() - started
            self.observer.unanswered(self._host, method, seconds=seconds)
            self.contact.missed()
            raise
        self.contact.answered(answer.status)
        self.observer.answered(
            self._host,
            method,
            answer.status,
            seconds=self._clock.monotonic() - started,
            sent=0 if body is None else len(body),
            received=len(answer.body),
        )
        if answer.status >= 300:
            raise from_status(answer.body, status=answer.status, retry_after=answer.retry_after)
        return answer.body

    async def _exchange(
        self,
        what: str,
        method: str,
        target: str,
        *,
        headers: Headers,
        body: bytes | None,
        timeout: float,
    ) -> Response:
        """Send a request, which errors call *what*, on whatever goes to the server."""
        if self._connections is None:

            def guard() -> None:
                check_fences(self._fences, method, what)

            guard()  # else the connection would be made in vain
            with translated(what):
                return await self._through_session(
                    method, target, headers=headers.fields, body=body, timeout=timeout, guard=guard
                )
        try:
            connection = await self._connections.take()
            try:
                check_fences(self._fences, method, what)
            except FencedError:
                self._connections.give_back(connection)
                raise
            return await connection.exchange(
                method, target, headers=headers.lines, body=body, timeout=timeout
            )
        except UnavailableError as exc:
            raise UnavailableError(f"{what}: {exc.message}", sent=exc.sent) from exc

    async def _through_session(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
        guard: Callable[[], None],
    ) -> Response:
        async with self._session.request(
            method,
            URL(self.url + target, encoded=True),
            data=body,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT),
            allow_redirects=False,
            server_hostname=self._server_hostname,
            proxy=self._proxy,
            trace_request_ctx=guard,
        ) as response:
            retry_after = response.headers.get("Retry-After")
            return Response(response.status, retry_after, await response.read())

    async def _take_turn(self, method: str) -> None:
        """Wait for the rate limiter."""
        self.observer.held_back(self._host, method, seconds=await self.limiter.take())

    @contextmanager
    def _missing(self) -> Iterator[None]:
        """Take note when there is no answer."""
        try:
            yield
        except UnavailableError:
            self.contact.missed()
            raise

    async def _headers_with(self, content_type: str | None) -> Headers:
        """Return the headers of a request; the same as long as the credentials are."""
        authorization = await self._authorization()
        headers = self._made_headers.get(content_type)
        if headers is None or headers.fields.get("Authorization", "") != authorization:
            fields = self._headers.copy()
            if content_type is not None:
                fields["Content-Type"] = content_type
            if authorization:
                fields["Authorization"] = authorization
            headers = self._made_headers[content_type] = Headers(fields, header_lines(fields))
        return headers


def error_of(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    """Return the error that an answer with a failing status means."""
    return from_status(
        body, status=response.status, retry_after=response.headers.get("Retry-After")
    )
