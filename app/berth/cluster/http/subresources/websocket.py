"""WebSockets of the API server (RFC 6455), each with one of the protocols that a client offers."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from starlette.types import Scope

from berth.cluster import errors
from berth.runtime.upgrades import UPGRADE

if TYPE_CHECKING:
    from berth.cluster.http.subresources.websocket_messages import WebSocket

GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What the key of a client is answered with, RFC 6455 section 1.3."""


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
    from berth.cluster.http.subresources.websocket_messages import WebSocket  # here: takes 30 ms

    return WebSocket(upgrade(head), protocol)
