"""Bodies of requests: of a known type, up to a limit, and read once."""

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect, Request

JSON: Final = "application/json"
BODY_SECONDS: Final = 20.0
"""How long a client may take to send a body, the largest included."""
LONGEST_SHOWN: Final = 100
"""Characters of a header that get into an answer."""


class BodyError(Exception):
    """A body that is not read; *status* is HTTP's."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def require_json(request: Request) -> None:
    """Raise BodyError, with 415, unless *request* says that its body is JSON.

    Web pages can have a browser post without a content type, or with a few others, to wherever
    they like. For JSON the browser asks first (CORS), and berth does not allow it.
    """
    given = request.headers.getlist("content-type")
    if [content_type.partition(";")[0].strip().lower() for content_type in given] != [JSON]:
        shown = ", ".join(given)[:LONGEST_SHOWN]
        raise BodyError(415, f"Content-Type: {shown!r}: must be {JSON}")


async def read_body(request: Request, *, limit: int, seconds: float = BODY_SECONDS) -> bytes:
    """Return the body as it was sent, of at most *limit* bytes, within *seconds*.

    Raises BodyError.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > len(str(limit)) or int(declared) > limit):
        raise too_large(limit)
    pieces, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                size += len(piece)
                if size > limit:
                    raise too_large(limit)
                pieces.append(piece)
    except TimeoutError as exc:
        raise BodyError(408, f"the body has not come within {seconds:g} s") from exc
    except ClientDisconnect as exc:
        raise BodyError(400, "the request ends too early") from exc
    return b"".join(pieces)


def too_large(limit: int) -> BodyError:
    return BodyError(413, f"body is larger than {limit} bytes")
