"""Bodies of extender calls: up to a limit, compressed or not, without holding up the event loop."""

import asyncio
import zlib
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from berth.service.server.bodies import LONGEST_SHOWN, BodyError, read_body, require_json, too_large

COMPRESS_FROM: Final = 256 * 2**10
"""Smaller answers are sent faster than they are compressed."""
LONGEST_ACCEPTED: Final = 1_000
"""Characters of Accept-Encoding that are looked at."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_FASTEST: Final = 1


async def read_args_body(request: Request, *, limit: int) -> bytes:
    """Return the JSON as it was before compression. Raises BodyError."""
    require_json(request)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise BodyError(
            415, f"Content-Encoding {encoding[:LONGEST_SHOWN]!r} is not supported, only gzip is"
        )
    body = await read_body(request, limit=limit)
    if encoding == "identity":
        return body
    return await asyncio.to_thread(_decompress, body, limit)  # zlib lets go of the interpreter


def _decompress(body: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    try:
        plain = stream.decompress(body, limit + 1)
    except zlib.error as exc:
        raise BodyError(400, f"body is not valid gzip: {exc}") from exc
    if len(plain) > limit:
        raise too_large(limit)
    if not stream.eof:
        raise BodyError(400, "body is not valid gzip: it ends too early")
    return plain


async def json_answer(request: Request, body: bytes) -> Response:
    """Return *body*, compressed if that is worth while and the client takes it."""
    headers = {"vary": "Accept-Encoding"}
    if len(body) >= COMPRESS_FROM and _takes_gzip(
        request.headers.get("accept-encoding", "")[:LONGEST_ACCEPTED]
    ):
        body = await asyncio.to_thread(_compress, body)
        headers["content-encoding"] = "gzip"
    return Response(body, media_type="application/json", headers=headers)


def _takes_gzip(accepted: str) -> bool:
    for each in accepted[:LONGEST_ACCEPTED].lower().split(","):
        coding, _, parameters = each.strip().partition(";")
        if coding.strip() in ("gzip", "*"):
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _compress(body: bytes) -> bytes:
    stream = zlib.compressobj(_FASTEST, zlib.DEFLATED, _GZIP)
    return stream.compress(body) + stream.flush()
