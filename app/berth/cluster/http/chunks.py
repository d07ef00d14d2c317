"""Long answers in chunks, so that neither memory nor the event loop holds one as a whole."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

CHUNK_BYTES: Final = 1024 * 1024
CHUNK_PIECES: Final = 500
"""Pieces per chunk: enough to be cheap, few enough that a slow reader falls behind gently."""


def chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join *pieces*, as they come, to chunks of some size."""
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= CHUNK_BYTES or len(gathered) >= CHUNK_PIECES:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


async def taking_turns(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Yield *pieces*; others on the event loop get a turn after each."""
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)
