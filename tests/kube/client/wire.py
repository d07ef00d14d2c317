"""A connection whose other end is in a test's hand."""

import asyncio

from berth.kube.client.connections import Connection, Connections
from berth.runtime.clock import FakeClock

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HANG_UP = b""
"""In a script: the server closes the connection."""


class Wire(asyncio.Transport):
    """The other end of a connection, in a test's hand."""

    def __init__(self, pool: Connections) -> None:
        super().__init__()
        self.sent = b""
        self.is_open = True
        self.connection = Connection(pool)
        self.connection.connection_made(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def abort(self) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        if self.is_open:
            self.is_open = False
            self.connection.connection_lost(None)

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            if piece == HANG_UP:
                self.hang_up()
            else:
                self.connection.data_received(piece)


def pool(url: str = "http://server:8001/base/", *, clock: FakeClock | None = None) -> Connections:
    return Connections(url, tls=True, server_hostname=None, clock=clock or FakeClock())
