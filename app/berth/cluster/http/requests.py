"""HTTP as the endpoints see it: what a request says, and the answer to it.

Decision (2026-11): requests to resources go past Starlette; because its routing, middleware,
Request and Response cost 70 µs each time, more than storing a pod; instead of one way for all
paths. What is asked rarely (discovery, OpenAPI, health) is served by Starlette's routes, and so are
the streams of watches.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from berth.cluster import errors, warnings
from berth.cluster.access.users import User
from berth.cluster.errors import StatusError
from berth.cluster.http import negotiation
from berth.cluster.http.flow_schemas import FLOW, NO_FLOW, Flow
from berth.cluster.http.negotiation import JSON
from berth.cluster.options import read_query
from berth.cluster.schemas import builtin
from berth.kube import documents
from berth.runtime.connection_limit import Seat
from berth.runtime.http_server import SEAT

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a body at most, as in the API server."""

LENGTH_DIGITS = 18
"""Of a ``Content-Length``, which may otherwise be longer than Python reads."""

WITH_BODY = frozenset({"DELETE", "PATCH", "POST", "PUT"})

AsJson = Callable[[bytes], Awaitable[bytes]]
RepeatedKeys = Callable[[bytes], Awaitable[list[str]]]

LOOKS_FOR_REPEATED_KEYS: Final = frozenset({"Strict", "Warn"})
"""Values of ``fieldValidation``."""

READ_BY_PEOPLE = ("curl", "Wget", "Mozilla/5.0")
"""User agents that get JSON with line breaks, as from the API server."""

TRUE = ("1", "t", "T", "true", "TRUE", "True")
"""What Go's ``strconv.ParseBool`` takes for true."""

Headers = list[tuple[bytes, bytes]]
"""Names in lower case, as ASGI has them."""


class Request:
    """One request to a resource, over the ASGI connection that it came by."""

    __slots__ = (
        "_as_json",
        "_content",
        "_length",
        "_receive",
        "_repeated_keys",
        "accept",
        "content_type",
        "flow",
        "has_ended",
        "method",
        "path",
        "query",
        "repeated_keys",
        "seat",
        "user",
        "user_agent",
    )

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        as_json: AsJson | None = None,
        repeated_keys: RepeatedKeys | None = None,
    ) -> None:
        """*as_json* returns the JSON of a body that is YAML, which may be long.

        *repeated_keys* returns what is said of keys that its objects have twice.
        """
        self._receive = receive
        self._as_json = as_json or _at_once
        self._repeated_keys = repeated_keys or _repeated_at_once
        self.repeated_keys: list[str] = []
        """What is to be said of keys in a body that was YAML."""
        self.has_ended = scope["method"] not in WITH_BODY
        """Whether the client has sent all of it."""
        self._content: bytes | None = None
        self._length = 0
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.user: User = scope["user"]
        self.flow: Flow = scope.get(FLOW, NO_FLOW)
        self.seat: Seat | None = scope["state"].get(SEAT) if "state" in scope else None
        """The connection that it came by, if it came by one."""
        self.query = read_query(scope["query_string"])
        self.accept = self.content_type = self.user_agent = ""
        for name, value in scope["headers"]:
            if name == b"accept":
                self.accept = value.decode("latin-1")
            elif name == b"content-type":
                self.content_type = value.decode("latin-1")
            elif name == b"user-agent":
                self.user_agent = value.decode("latin-1")
            elif name == b"content-length" and value.isdigit():
                self._length = int(value) if len(value) <= LENGTH_DIGITS else BODY_LIMIT + 1

    @property
    def wants_pretty(self) -> bool:
        """Whether a person reads the answer: by ``?pretty``, else by the program that asks."""
        said = self.query.get("pretty")
        return said in TRUE if said else self.user_agent.startswith(READ_BY_PEOPLE)

    async def body(self) -> bytes:
        """Return the whole body; 413 if it is longer than :data:`BODY_LIMIT`.

        What came as YAML is JSON, and so is ``content_type`` afterwards, but for that of apply
        patches; 400 when it is malformed.
        """
        if self._content is None:
            content = await self._read()
            match negotiation.media_type(self.content_type):
                case negotiation.YAML:
                    content = await self._from_yaml(content)
                    self.content_type = JSON
                case negotiation.APPLY_PATCH if not _is_json(content):
                    content = await self._from_yaml(content)
            self._content = content
        return self._content

    async def _from_yaml(self, content: bytes) -> bytes:
        json = await self._as_json(content)
        if self.query.get("fieldValidation") in LOOKS_FOR_REPEATED_KEYS:
            self.repeated_keys = await self._repeated_keys(content)
        return json

    async def _read(self) -> bytes:
        if self._length > BODY_LIMIT:
            raise errors.too_large(f"limit is {BODY_LIMIT}")
        content = bytearray()
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            content += message.get("body", b"")
            if len(content) > BODY_LIMIT:
                raise errors.too_large(f"limit is {BODY_LIMIT}")
            more = message.get("more_body", False)
        self.has_ended = True
        return bytes(content)


async def _at_once(content: bytes) -> bytes:
    return negotiation.as_json(content, negotiation.YAML)


async def _repeated_at_once(content: bytes) -> list[str]:
    return documents.repeated_keys(content)


def _is_json(content: bytes) -> bool:
    """Tell whether YAML is JSON, as it is from kubectl and client libraries."""
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


class Answer:
    """A whole answer; an ASGI application, as Starlette's responses are."""

    __slots__ = ("body", "code", "headers", "media_type")

    def __init__(
        self,
        body: bytes,
        code: int = 200,
        headers: Headers | None = None,
        *,
        media_type: str = JSON,
    ) -> None:
        self.body = body
        self.code = code
        self.media_type = media_type
        self.headers = headers or []
        """Beside type and length."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        length = str(len(self.body)).encode()
        headers = [
            (b"content-type", self.media_type.encode()),
            (b"content-length", length),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.code, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def too_many_requests() -> Answer:
    """Return the answer when too many requests are in progress: plain text, as the API server's."""
    text = b"Too many requests, please try again later.\n"
    headers = [(b"retry-after", b"1"), (b"x-content-type-options", b"nosniff")]
    return Answer(text, 429, headers, media_type="text/plain; charset=utf-8")


def refusal(error: StatusError, accept: str = "", warned: Sequence[str] = ()) -> Answer:
    """Return the Status that *error* stands for, in protobuf if nothing else is accepted.

    It has the warnings that there were before the request was refused.
    """
    if isinstance(error, errors.NothingThereError):
        return Answer(error.message.encode(), error.code, media_type="text/plain; charset=utf-8")
    try:
        media_type = negotiation.representation(accept).media_type
    except StatusError:
        media_type = JSON
    headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    headers += warnings.headers(warned)
    body = negotiation.encoded(error.status(), builtin.meta("Status"), media_type)
    return Answer(body, error.code, headers, media_type=media_type)
