"""The messages of an open WebSocket. It takes a while to load, and few clients open one."""

from typing import Final

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.utilities import ProtocolError

from berth.runtime.upgrades import Upgraded

LARGEST_MESSAGE: Final = 4 << 20


class WebSocket:
    """The server's side of an open WebSocket, whose messages are bytes."""

    def __init__(self, connection: Upgraded, protocol: str) -> None:
        self.protocol = protocol
        self._wire = connection
        self._connection = Connection(ConnectionType.SERVER)
        self._messages: list[bytes] = []
        self._part = bytearray()

    async def receive(self) -> bytes | None:
        """Return the next message; None at the end."""
        while not self._messages:
            data = await self._wire.read()
            if not data or self._connection.state is not ConnectionState.OPEN:
                return None
            self._connection.receive_data(data)
            try:
                self._take_events()
            except ProtocolError:
                return None
        return self._messages.pop(0)

    def send(self, data: bytes) -> None:
        """Send a message, unless the WebSocket is being closed."""
        if self._connection.state is ConnectionState.OPEN:
            self._wire.write(self._connection.send(BytesMessage(data=data)))

    def close(self) -> None:
        """Close the WebSocket and its connection."""
        if self._connection.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            self._wire.write(self._connection.send(CloseConnection(code=1000)))
        self._wire.close()

    def _take_events(self) -> None:
        for event in self._connection.events():
            match event:
                case BytesMessage() | TextMessage():
                    data = event.data
                    self._part += data.encode() if isinstance(data, str) else data
                    if len(self._part) > LARGEST_MESSAGE:
                        raise ProtocolError("message too large")
                    if event.message_finished:
                        self._messages.append(bytes(self._part))
                        self._part.clear()
                case Ping():
                    self._wire.write(self._connection.send(event.response()))
                case CloseConnection():
                    return
