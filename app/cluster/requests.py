"""HTTP as the endpoints see it: what a request says, and the answer to it.

Decision (2026-11): requests to resources go past Starlette; because its routing, middleware,
Request and Response cost 70 µs each time, more than storing a pod; instead of one way for all
paths. What is asked rarely (discovery, OpenAPI, health) is served by Starlette's routes, and so are
the streams of watches.
"""

from collections.abc import Mapping
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from app.cluster import errors
from app.cluster.access.users import User
from app.cluster.errors import StatusError
from app.cluster.negotiation import JSON

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a body at most, as in the API server."""

Headers = list[tuple[bytes, bytes]]
"""Names in lower case, as ASGI has them."""

NOTHING_ASKED: Mapping[str, str] = {}


class Request:
    """One request to a resource, over the ASGI connection that it came by."""

    __slots__ = ("_length", "_receive", "accept", "content_type", "method", "path", "query", "user")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._length = 0
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.user: User = scope["user"]
        self.query = read_query(scope["query_string"])
        self.accept = self.content_type = ""
        for name, value in scope["headers"]:
            if name == b"accept":
                self.accept = value.decode("latin-1")
            elif name == b"content-type":
                self.content_type = value.decode("latin-1")
            elif name == b"content-length" and value.isdigit():
                self._length = int(value)

    async def body(self) -> bytes:
        """Return the whole body; 413 if it is longer than :data:`BODY_LIMIT`. Call it once."""
        if self._length > BODY_LIMIT:
            raise errors.too_large(BODY_LIMIT)
        content = b""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            content += message.get("body", b"")
            if len(content) > BODY_LIMIT:
                raise errors.too_large(BODY_LIMIT)
            more = message.get("more_body", False)
        return content


def read_query(query: bytes) -> Mapping[str, str]:
    """Return the parameters; of one that is repeated, the last."""
    if not query:
        return NOTHING_ASKED
    return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))


class Answer:
    """A whole answer in JSON; an ASGI application, as Starlette's responses are."""

    __slots__ = ("body", "code", "headers")

    def __init__(self, body: bytes, code: int = 200, headers: Headers | None = None) -> None:
        self.body = body
        self.code = code
        self.headers = headers or []
        """Beside type and length."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        length = str(len(self.body)).encode()
        headers = [(b"content-type", JSON.encode()), (b"content-length", length), *self.headers]
        await send({"type": "http.response.start", "status": self.code, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def refusal(error: StatusError) -> Answer:
    """Return the Status that *error* stands for."""
    headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    return Answer(msgspec.json.encode(error.status()), error.code, headers)
