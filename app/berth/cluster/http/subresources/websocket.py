"""WebSockets of the API server (RFC 6455), each with one of the protocols that a client offers."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.types import Scope
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.utilities import ProtocolError

from berth.cluster import errors
from berth.runtime.upgrades import UPGRADE, Upgraded

GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What the key of a client is answered with, RFC 6455 section 1.3."""
LARGEST_MESSAGE: Final = 4 << 20


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request; values of one name together."""
    headers: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1")
        headers[name] = f"{headers[name]},{value.decode()}" if name in headers else value.decode()
    return headers


def wants_upgrade(headers: Mapping[str, str]) -> bool:
    return "upgrade" in headers.get("connection", "").lower()


def open_websocket(scope: Scope, protocols: Sequence[str]) -> "WebSocket":
    """Answer a request to open a WebSocket with the first of *protocols* that it offers.

    Raises 400 and 403 as the API server does.
    """
    headers = headers_of(scope)
    upgrade = scope["state"].get(UPGRADE)
    key = headers.get("sec-websocket-key")
    if upgrade is None or not wants_upgrade(headers) or key is None:
        raise errors.bad_request("Upgrade request required")
    offered = [each.strip() for each in headers.get("sec-websocket-protocol", "").split(",")]
    protocol = next((each for each in protocols if each in offered), "")
    if not protocol:
        raise errors.bad_request(f"unable to negotiate protocol: client offers {offered}")
    accepted = base64.b64encode(hashlib.sha1(key.encode() + GUID).digest())
    head = (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accepted + b"\r\n"
        b"Sec-WebSocket-Protocol: " + protocol.encode() + b"\r\n\r\n"
    )
    return WebSocket(upgrade(head), protocol)


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
