"""Noticing that a client has gone before it was answered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive


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


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
