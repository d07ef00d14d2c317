"""Connections that leave HTTP: after an answer of 101, both sides send what they like."""

import asyncio
from typing import Final

UPGRADE: Final = "upgrade"
"""Where ``scope["state"]`` has what upgrades the connection: a function that is given the head of
the answer, as bytes, and returns an :class:`Upgraded`. Absent where there is no connection."""

MOST_UNREAD: Final = 1 << 20
"""Bytes that are kept before the client is made to wait."""


class Upgraded:
    """What has come on a connection, and the way back. Whoever has it closes it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._unread = bytearray()
        self._has_ended = False
        self._news = asyncio.Event()

    def feed(self, data: bytes) -> None:
        """Take what has come; the server calls this."""
        self._unread += data
        self._news.set()
        if len(self._unread) > MOST_UNREAD:
            self._transport.pause_reading()

    def end(self) -> None:
        """Note that nothing more comes; the server calls this."""
        self._has_ended = True
        self._news.set()

    async def read(self) -> bytes:
        """Return what has come, once there is any; nothing at the end."""
        while not self._unread and not self._has_ended:
            self._news.clear()
            await self._news.wait()
        data = bytes(self._unread)
        self._unread.clear()
        if not self._has_ended:
            self._transport.resume_reading()
        return data

    def write(self, data: bytes) -> None:
        if not self._has_ended:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection after what was written."""
        self._transport.close()
