"""Requests to a server behind a proxy, by aiohttp, which knows how to ask proxies.

Imported only when there is one: it takes a tenth of a second.
"""

import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace

import aiohttp
from yarl import URL

from berth.kube.client.errors import UnavailableError
from berth.kube.client.keepalive import keep_alive
from berth.kube.client.transport import CONNECT_TIMEOUT, READ_BUFFER, Headers, Response


class ProxiedSession:
    """A :class:`~berth.kube.client.transport.Transport` to *url* by way of *proxy*."""

    def __init__(
        self,
        url: str,
        *,
        proxy: str,
        tls: ssl.SSLContext | bool,
        server_hostname: str | None,
    ) -> None:
        """*server_hostname* is the name that the certificate must have, None: that of *url*."""
        self._url = url.rstrip("/")
        self._proxy = proxy
        self._server_hostname = server_hostname
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,  # what may be written at once is up to the lanes
                ssl=tls,
                socket_factory=_socket_with_keepalive,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
            trace_configs=[_guarding()],
        )

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
        guard()  # else the connection would be made in vain
        with translated():
            async with self._session.request(
                method,
                URL(self._url + target, encoded=True),
                data=body,
                headers=headers.fields,
                timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT),
                allow_redirects=False,
                server_hostname=self._server_hostname,
                proxy=self._proxy,
                trace_request_ctx=guard,
            ) as response:
                retry_after = response.headers.get("Retry-After")
                return Response(response.status, retry_after, await response.read())

    async def post_all(
        self,
        posts: Sequence[tuple[str, bytes]],
        *,
        headers: Headers,
        timeout: float,
        guard: Callable[[], None],
    ) -> list[Response | UnavailableError]:
        """Send one request after the other: aiohttp's session knows no other way."""
        answers: list[Response | UnavailableError] = []
        for target, body in posts:
            try:
                answer = await self.exchange(
                    "POST", target, headers=headers, body=body, timeout=timeout, guard=guard
                )
            except UnavailableError as exc:
                answers.append(exc)
            else:
                answers.append(answer)
        return answers

    @asynccontextmanager
    async def stream(
        self, target: str, *, headers: Headers, timeout: float | None
    ) -> AsyncIterator["_Streamed"]:
        with translated():
            async with self._session.request(
                "GET",
                URL(self._url + target, encoded=True),
                headers=headers.fields,
                timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT),
                allow_redirects=False,
                server_hostname=self._server_hostname,
                proxy=self._proxy,
            ) as response:
                yield _Streamed(response)

    async def close(self) -> None:
        await self._session.close()


class _Streamed:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.retry_after = response.headers.get("Retry-After")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        with translated():
            async for chunk in self._response.content.iter_any():
                yield chunk


@contextmanager
def translated() -> Iterator[None]:
    """Turn aiohttp's errors into ours, so that no other module imports it."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as exc:
        raise UnavailableError(str(exc), sent=False) from exc
    except aiohttp.ClientPayloadError as exc:
        raise UnavailableError(f"the answer broke off: {exc}", sent=True) from exc
    except TimeoutError as exc:
        raise UnavailableError("timed out", sent=None) from exc
    except (aiohttp.ClientError, OSError) as exc:
        raise UnavailableError(repr(exc), sent=None) from exc


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
    return tracing


def _socket_with_keepalive(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    keep_alive(made)
    return made
