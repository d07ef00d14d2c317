"""Transports of answers: written once per turn, and closed so that they can be read."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

HIGH_WATER: Final = 64 << 10
"""Bytes of an answer that are handed on before who sends it waits for the client."""

LINGER_BYTES: Final = 16 << 20
"""Discarded at most of what a client still sends after its last answer: of a body five times as
large as the API server reads."""

LINGER_SECONDS: Final = 5.0
"""How long a client may go on sending after its last answer."""

QUIET_SECONDS: Final = 1.0
"""How long it may send nothing meanwhile; Go's servers wait half of that in all."""


class Gathered(Protocol):
    """Hears of what is gathered."""

    def __call__(self, *, is_much: bool) -> None: ...


class GatheringTransport(asyncio.Transport):
    """Writes once per turn of the event loop.

    An answer is two writes, its head and its body, and uvloop makes each a system call at once:
    10 µs, a quarter of what it takes to answer a GET.
    """

    def __init__(
        self, transport: asyncio.Transport, told: Gathered, lingers: Callable[[], bool]
    ) -> None:
        """*told* is called when much is gathered, and when that is written.

        *lingers* is called when the connection is to be closed; True: the caller does it later.
        """
        super().__init__()
        self._transport = transport
        self._told = told
        self._lingers = lingers
        self._size = 0
        self._loop = asyncio.get_running_loop()
        self._gathered: list[bytes] = []
        self.is_closing = transport.is_closing  # type: ignore[method-assign]  # asked for every answer

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def write(self, data: Any) -> None:
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered.append(data)
        before, self._size = self._size, self._size + len(data)
        if before <= HIGH_WATER < self._size:
            self._told(is_much=True)

    def abort(self) -> None:
        self._transport.abort()

    def close(self) -> None:
        """Close the connection after what was written, or linger; again: close it now."""
        self._flush()
        if not self.is_closing() and self._lingers():
            self.is_closing = _always  # type: ignore[method-assign]
        else:
            self._transport.close()

    def close_now(self) -> None:
        """Close the connection after what was written."""
        self._flush()
        self._transport.close()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, []
        size, self._size = self._size, 0
        if gathered and not self.is_closing():  # else the client has gone
            self._transport.write(b"".join(gathered))
        if size > HIGH_WATER:
            self._told(is_much=False)


def _always() -> bool:
    return True


class Lingering:
    """Discards what a client still sends after its last answer, and closes the connection then.

    A connection that is closed while there is something to read is reset, and a client that only
    reads once it has sent everything would never see its answer. Go's servers do the like.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        close: Callable[[], None],
    ) -> None:
        """*close* is called after :data:`LINGER_SECONDS` at most, and is to call :meth:`end`."""
        self._loop = loop
        self._close = close
        self._size = self._size_before = 0
        self._seconds = 0.0
        if transport.can_write_eof():  # not with TLS: the client sees ``Connection: close``
            transport.write_eof()
        self._timer = loop.call_later(QUIET_SECONDS, self._look)

    def discard(self, data: bytes) -> None:
        """Take what has come."""
        self._size += len(data)
        if self._size > LINGER_BYTES:
            self._close()

    def end(self) -> None:
        """Close nothing any more."""
        self._timer.cancel()

    def _look(self) -> None:
        self._seconds += QUIET_SECONDS
        if self._size == self._size_before or self._seconds >= LINGER_SECONDS:
            self._close()
            return
        self._size_before = self._size
        self._timer = self._loop.call_later(QUIET_SECONDS, self._look)
