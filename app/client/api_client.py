"""One connection pool to one API server: requests and watches in raw bytes."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import aiohttp

from app.client.errors import ApiError, TooManyRequestsError, UnavailableError, from_status
from app.client.rate_limit import TokenBucket
from app.clock import Clock

REQUEST_TIMEOUT: Final = 60.0
"""Seconds for a request with its answer; an API server gives up after as many itself."""

CONNECT_TIMEOUT: Final = 10.0
"""Seconds until a server that does not even accept a connection counts as unavailable."""

WATCH_GRACE: Final = 30.0
"""Seconds a watch may outlive the ``timeoutSeconds`` it asked for. A server ends watches in time;
one that is still open then hangs on a dead connection."""

THROTTLED_RETRIES: Final = 3

Authorization = Callable[[], Awaitable[str]]
"""Returns the value of the Authorization header, refreshed when due; "" for none."""


async def anonymous() -> str:
    """Be nobody: for servers that ask no questions, and when a client certificate answers them."""
    return ""


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
    """Turn aiohttp's errors into ours, so that nobody else imports it."""
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


class ApiClient:
    """Speaks to one API server. Made by :func:`app.client.connect.connect`.

    Owns *session*. Raises :class:`~app.client.errors.ApiError` and nothing of the HTTP library.
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
        watch_grace: float = WATCH_GRACE,
    ) -> None:
        self.url = url.rstrip("/")
        self.limiter = limiter
        self._session = session
        self._clock = clock
        self._authorization = authorization
        self._server_hostname = server_hostname
        self._proxy = proxy
        self._watch_grace = watch_grace
        # identity: on a cluster's own network, unpacking costs more than it saves (spec §7.2)
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": user_agent,
        }

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
            await self.limiter.take()
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
        end is dropped: it is cut off, and comes again with the next watch.
        """
        await self.limiter.take()
        asked = params.get("timeoutSeconds")
        timeout = aiohttp.ClientTimeout(
            total=int(asked) + self._watch_grace if asked else None, sock_connect=CONNECT_TIMEOUT
        )
        buffer = LineBuffer()
        with translated(f"watch {path}"):
            async with self._session.request(
                "GET",
                self.url + path,
                params={**params, "watch": "true"},
                headers=await self._headers_with(None),
                timeout=timeout,
                allow_redirects=False,
                server_hostname=self._server_hostname,
                proxy=self._proxy,
            ) as response:
                if response.status != 200:
                    raise error_of(response, await response.read())
                async for chunk in response.content.iter_any():
                    for line in buffer.feed(chunk):
                        yield line

    async def close(self) -> None:
        """Close all connections."""
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
        with translated(f"{method} {path}"):
            async with self._session.request(
                method,
                self.url + path,
                params=params,
                data=body,
                headers=await self._headers_with(None if body is None else content_type),
                timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT),
                allow_redirects=False,
                server_hostname=self._server_hostname,
                proxy=self._proxy,
            ) as response:
                answer = await response.read()
                if response.status >= 300:
                    raise error_of(response, answer)
                return answer

    async def _headers_with(self, content_type: str | None) -> dict[str, str]:
        headers = self._headers.copy()
        if content_type is not None:
            headers["Content-Type"] = content_type
        authorization = await self._authorization()
        if authorization:
            headers["Authorization"] = authorization
        return headers


def error_of(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    """Return the error that an answer with a failing status means."""
    return from_status(
        body, status=response.status, retry_after=response.headers.get("Retry-After")
    )
