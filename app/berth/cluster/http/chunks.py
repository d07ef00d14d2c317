"""Long answers in chunks, so that neither memory nor the event loop holds one as a whole."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from berth.cluster.http.outgoing import Pace
from berth.runtime.clock import Clock

CHUNK_BYTES: Final = 256 * 1024
CHUNK_SECONDS: Final = 0.002
"""How long a chunk may take to make: so long does everybody else wait."""


def chunks(pieces: Iterable[bytes], clock: Clock) -> Iterator[bytes]:
    """Join *pieces*, as they come, to chunks of some size, each made within some time."""
    gathered: list[bytes] = []
    size = 0
    until = clock.monotonic() + CHUNK_SECONDS
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= CHUNK_BYTES or clock.monotonic() >= until:
            yield b"".join(gathered)
            gathered, size = [], 0
            until = clock.monotonic() + CHUNK_SECONDS
    if gathered:
        yield b"".join(gathered)


async def taking_turns(pieces: Iterable[bytes], pace: Pace | None = None) -> AsyncIterator[bytes]:
    """Yield *pieces*, but not the empty ones; others get a turn on the event loop after each.

    With a *pace* they come no faster, and end when the client is too slow.
    """
    made = iter(pieces if pace is None else pace.charged(pieces))
    while pace is None or await pace.turn():
        piece = next(made, None)
        if piece is None:
            return
        if piece:
            yield piece
        await asyncio.sleep(0)
    raise SlowClientError


class SlowClientError(ConnectionError):
    """A client does not take what it has asked for."""
