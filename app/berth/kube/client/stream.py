"""One answer that is read while it comes, as of a watch, on a connection of its own."""

import asyncio
from collections.abc import AsyncGenerator
from typing import cast

import httptools

from berth.kube.client.errors import UnavailableError
from berth.kube.client.keepalive import keep_alive
from berth.kube.client.transport import READ_BUFFER


class Stream(asyncio.Protocol):
    """Ask once, read ``chunks`` and close. Errors are those of ``Transport``."""

    def __init__(self) -> None:
        self.status = 0
        """0: nothing has been answered yet."""
        self.retry_after: str | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._size = 0
        self._is_held_back = False
        self._has_length = False
        self._is_complete = False
        self._error: UnavailableError | None = None
        self._news: asyncio.Future[None] | None = None
        self._too_late: asyncio.TimerHandle | None = None

    async def ask(self, request: bytes, *, timeout: float | None) -> None:
        """Send *request*, and wait until its answer begins. It may come for *timeout* seconds."""
        loop = asyncio.get_running_loop()
        if timeout is not None:
            self._too_late = loop.call_later(timeout, self._fail, "timed out")
        self._transport.write(request)
        while not self.status:
            if self._error is not None:
                raise self._error
            await self._more()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield what comes, until the answer ends."""
        while True:
            if self._chunks:
                chunk = b"".join(self._chunks)
                self._chunks.clear()
                self._size = 0
                if self._is_held_back:
                    self._is_held_back = False
                    self._transport.resume_reading()
                yield chunk
            elif self._is_complete:
                return
            elif self._error is not None:
                raise self._error
            else:
                await self._more()

    def close(self) -> None:
        """Hang up."""
        if self._too_late is not None:
            self._too_late.cancel()
        self._transport.abort()

    async def _more(self) -> None:
        self._news = asyncio.get_running_loop().create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _fail(self, why: str) -> None:
        if not self._is_complete and self._error is None:
            self._error = UnavailableError(why, sent=True if self.status else None)
            self._transport.abort()
            self._tell()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as exc:
            self._fail(f"the answer is garbled: {exc}")
        if self._size > 2 * READ_BUFFER and not self._is_held_back:
            self._is_held_back = True
            self._transport.pause_reading()
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self.status and not self._has_length:
            self._is_complete = True
            self._tell()
        else:
            why = str(exc or "the server closed the connection")
            self._fail(f"the answer broke off: {why}" if self.status else why)

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        match name.lower():
            case b"retry-after":
                self.retry_after = value.decode("latin-1")
            case b"content-length" | b"transfer-encoding":
                self._has_length = True

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:  # 1xx: the answer is still to come
            self.status = status

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        if self.status:
            self._is_complete = True
