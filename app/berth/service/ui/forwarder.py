"""Asks a scheduler elsewhere what the page asks, as the user that a kubeconfig names.

The browser gets neither the credentials nor cookies of the other side, and the scheduler gets
neither those of the browser: only the headers below pass.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final
from urllib.parse import quote

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from berth.kube.client.connect import Endpoint
from berth.kube.client.port_forward import ServiceTunnel
from berth.runtime.release import version
from berth.service.scheduler_client import may_have_secrets, no_answer, refusal
from berth.service.server.bodies import BodyError, read_body
from berth.service.server.disconnection import ClientGoneError, while_wanted

log = logging.getLogger(__name__)

TO_SCHEDULER: Final = (
    "accept", "accept-encoding", "content-type", "if-none-match", "last-event-id",
)  # fmt: skip
"""Headers of requests that are passed on."""

TO_BROWSER: Final = (
    "allow", "cache-control", "content-disposition", "content-encoding", "content-length",
    "content-type", "etag", "last-modified", "retry-after", "vary",
)  # fmt: skip
"""Headers of answers that are passed on."""

LARGEST_BODY: Final = 32 << 20
"""Bytes of a request; a scheduler takes no more of a what-if question."""

LONGEST_TARGET: Final = 32 << 10
"""Bytes of a path and its query; a scheduler takes no more, of which each may take three here."""

LARGEST_REFUSAL: Final = 64 << 10
"""Bytes of a refusal that are read to tell why."""

CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 60.0
"""How long an answer may take to begin; a simulation takes half of it at most. A stream may then be
silent for as long as it likes."""

IN_QUERY: Final = "!$%&'()*+,-./:;=?@_~"
"""What a query has besides letters and digits; the rest is encoded."""


class Forwarder:
    """An ASGI application that sends requests on to the scheduler at *endpoint*.

    It forwards whatever it is asked: :class:`berth.service.ui.allowed.Page` says what that may be.
    """

    def __init__(self, endpoint: Endpoint, client: httpx.AsyncClient) -> None:
        self._endpoint = endpoint
        self._client = client
        self._base = httpx.URL(endpoint.url)
        self._answering: set[asyncio.Task[None]] = set()
        self._is_ended = False

    def end(self) -> None:
        """End all answers: streams would go on until the server loses its patience with them."""
        self._is_ended = True
        for task in self._answering:
            task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(Request(scope, receive), limit=LARGEST_BODY)
        except BodyError as exc:
            await _refused(exc.status, str(exc))(scope, receive, send)
            return
        async with AsyncExitStack() as cleanup:
            answer = await self._ask(scope, receive, body, cleanup)
            task = asyncio.current_task()
            assert task is not None
            self._answering.add(task)
            try:
                await answer(scope, receive, send)
            except httpx.HTTPError as exc:
                # The server closes the connection of an answer without an end: browsers notice.
                log.warning("an answer broke off", extra={"path": scope["path"], "error": str(exc)})
            except asyncio.CancelledError:
                if not self._is_ended:
                    raise
                task.uncancel()
                await send({"type": "http.response.body"})
            finally:
                self._answering.discard(task)

    async def _ask(
        self, scope: Scope, receive: Receive, body: bytes, cleanup: AsyncExitStack
    ) -> Response:
        """Return what the scheduler answers, read until *cleanup*, or why there is nothing."""
        url = self._endpoint.url
        target = self._target(scope)
        if len(target) > LONGEST_TARGET:
            return _refused(414, f"the address is longer than {LONGEST_TARGET} bytes")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                request = await self._request(scope, target, body)
                found = await while_wanted(receive, self._client.send(request, stream=True))
                cleanup.push_async_callback(found.aclose)
                return await self._answer(found, scope["path"])
        except ClientGoneError as exc:
            return _refused(400, str(exc))
        except TimeoutError:
            return _refused(504, f"{url} has not answered within {ANSWER_SECONDS:g} s")
        except httpx.HTTPError as exc:
            return _refused(502, no_answer(url, exc))

    def _target(self, scope: Scope) -> bytes:
        """Return the path and the query to ask for."""
        target = quote(self._base.path.rstrip("/") + scope["path"])
        if scope["query_string"]:
            target += "?" + quote(scope["query_string"], safe=IN_QUERY)
        return target.encode("ascii")

    async def _request(self, scope: Scope, target: bytes, body: bytes) -> httpx.Request:
        headers = [
            (name, value)
            for name, value in scope["headers"]
            if name.decode("latin-1").lower() in TO_SCHEDULER
        ]
        authorization = await self._endpoint.authorization()
        if authorization and may_have_secrets(self._endpoint.url):
            headers.append((b"Authorization", authorization.encode("latin-1")))
        return self._client.build_request(
            scope["method"],
            self._base.copy_with(raw_path=target),
            headers=headers,
            content=body or None,
        )

    async def _answer(self, found: httpx.Response, path: str) -> Response:
        status = found.status_code
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            content = await _beginning(found)
            why = refusal(self._endpoint.url, path, status=status, content=content)
            # To a browser, 401 would say that it has no session here.
            return _refused(502 if status == httpx.codes.UNAUTHORIZED else status, why)
        return StreamingResponse(found.aiter_raw(), status, headers=_passed(found.headers))


class TunnelTransport(httpx.AsyncBaseTransport):
    """Connections through *tunnel*, which knows better than they do why they end."""

    def __init__(self, tunnel: ServiceTunnel, tls: ssl.SSLContext | bool) -> None:
        self._tunnel = tunnel
        self._transport = httpx.AsyncHTTPTransport(verify=tls, uds=str(tunnel.path))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._transport.handle_async_request(request)
        except httpx.TransportError as exc:
            if not self._tunnel.problem:
                raise
            raise httpx.ConnectError(self._tunnel.problem) from exc

    async def aclose(self) -> None:
        await self._transport.aclose()


@asynccontextmanager
async def forwarder(
    endpoint: Endpoint, *, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[Forwarder]:
    """Yield what forwards to *endpoint*; *transport* is in place of connections to it."""
    async with httpx.AsyncClient(
        verify=endpoint.tls,
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        headers={"Accept-Encoding": "identity", "User-Agent": f"berth/{version()} ui"},
        transport=transport,
    ) as client:
        yield Forwarder(endpoint, client)


def _refused(status: int, why: str) -> JSONResponse:
    return JSONResponse({"detail": why}, status, headers={"Cache-Control": "no-store"})


def _passed(headers: httpx.Headers) -> Mapping[str, str]:
    return {name: headers[name] for name in TO_BROWSER if name in headers}


async def _beginning(found: httpx.Response) -> bytes:
    """Return what an answer begins with: all of it, if it is a refusal as of a scheduler."""
    content = b""
    async for piece in found.aiter_bytes():
        content += piece
        if len(content) > LARGEST_REFUSAL:
            break
    return content
