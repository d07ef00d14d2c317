"""How bodies are read: up to a limit, in time, and to their end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from starlette.requests import Request

from berth.service.server.bodies import BodyError, read_body

END: dict[str, Any] = {"type": "http.disconnect"}


def sent(*pieces: bytes, ends: bool = True, length: str = "") -> Request:
    """Return a request that has *pieces*, and after them nothing, not even its end, or its end."""
    headers = [(b"content-length", length.encode())] if length else []
    return Request(
        {"type": "http", "method": "POST", "headers": headers}, _receiving(iter(pieces), ends=ends)
    )


def _receiving(pieces: Iterator[bytes], *, ends: bool) -> Callable[[], Awaitable[Any]]:
    async def receive() -> Any:
        piece = next(pieces, None)
        if piece is not None:
            return {"type": "http.request", "body": piece, "more_body": True}
        if not ends:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": b"", "more_body": False}

    return receive


async def test_a_body_comes_in_pieces() -> None:
    assert await read_body(sent(b"ab", b"", b"c"), limit=3) == b"abc"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(sent(b"ab", b"cd"), 413, id="more than there may be"),
        pytest.param(sent(ends=False, length="4"), 413, id="as announced"),
        pytest.param(sent(ends=False, length="9" * 5_000), 413, id="as announced, with an effort"),
        pytest.param(sent(b"ab", ends=False), 408, id="never the end"),
    ],
)
async def test_what_is_not_read(request_: Request, status: int) -> None:
    with pytest.raises(BodyError) as refusal:
        await read_body(request_, limit=3, seconds=0)
    assert refusal.value.status == status


async def test_who_hangs_up_has_sent_nothing() -> None:
    async def receive() -> Any:
        return END

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(BodyError, match="the request ends too early"):
        await read_body(request, limit=3)
