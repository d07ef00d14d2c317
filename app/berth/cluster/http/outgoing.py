"""Bytes being sent that clients have yet to take: bounded for each flow.

A client that reads slowly, or not at all, keeps in memory what it is sent; a thousand of them keep
it a thousand times. So large answers are sent in pieces, each when the one before is taken; and
while the clients of a flow have much to take, nothing more is made for them.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from starlette.types import Message, Send

from berth.cluster.access.flows import flow_of, is_exempt
from berth.cluster.access.users import User
from berth.cluster.fair_queue import QueueFullError
from berth.cluster.shares import Shares
from berth.runtime.clock import Clock

FLOW_BYTES: Final = 32 * 1024 * 1024
"""Bytes that the clients of one flow have yet to take, before nothing more is made for them."""
SLOW_SECONDS: Final = 10.0
"""How long a watch waits for that, before it ends; and a request, before it is refused."""
LOOK_SECONDS: Final = 0.02
"""How often they look."""
PIECE: Final = 64 * 1024
"""Bytes that are written at once."""


class Pace:
    """How fast a long answer may be made: with room for it, and by its share of the event loop."""

    def __init__(self, user: User, outgoing: "Outgoing", shares: Shares, clock: Clock) -> None:
        self._user = user
        self._outgoing = outgoing
        self._shares = shares
        self._clock = clock

    async def turn(self) -> bool:
        """Return True when more may be made, False when its client is too slow."""
        if not await self._outgoing.has_room(self._user):
            return False
        while True:
            try:
                await self._shares.turn(self._user)
            except QueueFullError:
                await self._clock.sleep(LOOK_SECONDS)
            else:
                return True

    def charged(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield *pieces*, and note how long each takes to make."""
        iterator = iter(pieces)
        while True:
            started = self._clock.monotonic()
            piece = next(iterator, None)
            self._shares.took(self._user, self._clock.monotonic() - started)
            if piece is None:
                return
            yield piece


class Outgoing:
    """Bytes on their way, by flow. What several clients are sent of one piece is counted once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sizes: dict[str, int] = {}
        self._holders: dict[tuple[str, int], int] = {}
        """By flow and identity of what is sent: to how many."""

    def size(self, user: User) -> int:
        """Return how many bytes the clients of the flow of *user* have yet to take."""
        return self._sizes.get(flow_of(user), 0)

    def is_full(self, user: User) -> bool:
        """Tell whether nothing more is to be made for *user*; exempt users have no limit."""
        return self.size(user) > FLOW_BYTES and not is_exempt(user)

    async def has_room(self, user: User) -> bool:
        """Return True when something may be made for *user*, False when that takes too long."""
        if not self.is_full(user):
            return True
        until = self._clock.monotonic() + SLOW_SECONDS
        while self.is_full(user):
            if self._clock.monotonic() >= until:
                return False
            await self._clock.sleep(LOOK_SECONDS)
        return True

    async def send(self, message: Message, user: User, send: Send) -> None:
        """Send the body of an ASGI message in pieces."""
        body: bytes = message["body"]
        with self._held(body, user):
            for start in range(0, len(body), PIECE):
                await send({**message, "body": body[start : start + PIECE], "more_body": True})
                await asyncio.sleep(0)  # it is written at the end of the turn
        if not message.get("more_body", False):
            await send({**message, "body": b""})

    @contextmanager
    def _held(self, body: bytes, user: User) -> Iterator[None]:
        flow = flow_of(user)
        key = flow, id(body)  # nothing else has that while it is held
        self._holders[key] = self._holders.get(key, 0) + 1
        if self._holders[key] == 1:
            self._sizes[flow] = self._sizes.get(flow, 0) + len(body)
        try:
            yield
        finally:
            self._holders[key] -= 1
            if not self._holders[key]:
                del self._holders[key]
                self._sizes[flow] -= len(body)
                if not self._sizes[flow]:
                    del self._sizes[flow]
