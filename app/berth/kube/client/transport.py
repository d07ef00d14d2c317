"""The transport below an :class:`~berth.kube.client.api_client.ApiClient`."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

from berth.kube.client.errors import UnavailableError

CONNECT_TIMEOUT: Final = 10.0
"""Seconds until a server that does not even accept a connection counts as unavailable."""

READ_BUFFER: Final = 1 << 18
"""Bytes of a watch taken in at once; flow control holds the server back at twice as many."""


class Headers(NamedTuple):
    """The header fields of a request, and the same as they are sent."""

    fields: Mapping[str, str]
    lines: bytes


class Response(NamedTuple):
    """An HTTP response, as far as it matters here."""

    status: int
    retry_after: str | None
    """The header of that name."""
    body: bytes


class Streamed(Protocol):
    """An answer that is read while it comes."""

    status: int
    retry_after: str | None

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield what comes, until the answer ends. Raises UnavailableError if it breaks off."""
        ...


class Transport(Protocol):
    """Sends requests to one server. *target* is quoted, timeouts are in seconds."""

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
        """Send a request and return the whole answer.

        *guard* is called when the connection is there and nothing is sent; if it raises, nothing
        is. Raises UnavailableError: ``sent`` is False when the request did not leave, None when
        there was no answer, True when it broke off.
        """
        ...

    async def post_all(
        self,
        posts: Sequence[tuple[str, bytes]],
        *,
        headers: Headers,
        timeout: float,
        guard: Callable[[], None],
    ) -> list[Response | UnavailableError]:
        """Post bodies to targets, in this order; return what came of each.

        They may share a connection, on which requests are sent before those ahead are answered, and
        one that the server hung up on may be sent twice. The *timeout* is for all that share one.
        Raises UnavailableError if there is no connection.
        """
        ...

    def stream(
        self, target: str, *, headers: Headers, timeout: float | None
    ) -> AbstractAsyncContextManager[Streamed]:
        """Get *target*; the answer may come for *timeout*. Raises UnavailableError."""
        ...

    async def close(self) -> None:
        """Close all connections; what is under way fails."""
        ...
