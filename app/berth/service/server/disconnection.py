"""Noticing that a client has gone before it was answered."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


class ClientGoneError(Exception):
    """Nobody waits for an answer any more."""


@asynccontextmanager
async def disconnection(receive: Receive) -> AsyncIterator[asyncio.Future[None]]:
    """Yield a future that is done once the client of a request has gone.

    kube-scheduler closes the connection when it gives up on a request, at its ``httpTimeout``. The
    body of the request must have been read; no one else may receive until the end of the block.
    """
    listening = asyncio.create_task(_until_gone(receive), name="client's disconnection")
    try:
        yield listening
    finally:
        listening.cancel()
        await asyncio.wait([listening])


async def while_wanted(receive: Receive, answering: Coroutine[Any, Any, T]) -> T:
    """Return what *answering* returns; cancel it if the client goes before that.

    For *receive* the same holds as for :func:`disconnection`. Raises ClientGoneError, and what
    *answering* raises.
    """
    task = asyncio.create_task(answering, name="answering")
    async with disconnection(receive) as gone:
        gone.add_done_callback(lambda _: task.cancel())
        try:
            return await task
        except asyncio.CancelledError:
            if not gone.done():
                raise  # it is this server that gives up
            raise ClientGoneError("the client has gone") from None


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
