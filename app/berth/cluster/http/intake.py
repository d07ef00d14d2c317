"""Bodies of requests: read before a request takes a slot, within a time, a rate and a size.

A client that never ends its body holds its connection, which makes room for others when there are
too many, and nothing else. The API server reads a body within the 60 seconds that a request may
take; with a slot for each, that is too long.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from berth.cluster.access.flows import flow_of, is_exempt
from berth.cluster.access.users import User
from berth.runtime.clock import Clock

BODY_SECONDS: Final = 20.0
"""How long a client may take to send a body."""
GRACE_SECONDS: Final = 5.0
"""How long it may take in any case; after that, bytes must have come at :data:`LEAST_RATE`."""
LEAST_RATE: Final = 16 * 1024
"""Bytes per second."""

MOST_BYTES: Final = 96 * 1024 * 1024
"""Of all bodies that are being read, or belong to requests that wait or are in progress."""
FLOW_BYTES: Final = 24 * 1024 * 1024
"""Of one flow: eight of the largest."""

Message = Any
Receive = Callable[[], Awaitable[Message]]


class BodyTimeoutError(Exception):
    """A body has not come in time."""


class BodiesFullError(Exception):
    """There is no room for more of a body now."""


@dataclass(slots=True, eq=False)
class Reading:
    """One body, from its first byte until its request is answered."""

    user: User
    started: float
    size: int = 0
    task: asyncio.Task[Any] | None = None
    """Who waits for its client."""
    is_late: bool = False

    @property
    def due(self) -> float:
        """When the client must have ended, or sent more."""
        seconds = GRACE_SECONDS + self.size / LEAST_RATE
        return self.started + min(seconds, BODY_SECONDS)


class Intake:
    """Receives bodies. :meth:`tick` must be called every second."""

    def __init__(self, clock: Clock, *, most: int = MOST_BYTES, of_flow: int = FLOW_BYTES) -> None:
        self._clock = clock
        self._most = most
        self._of_flow = of_flow
        self._size = 0
        self._flows: dict[str, int] = {}
        self._waiting: set[Reading] = set()
        """Those whose client is to send more."""

    @property
    def size(self) -> int:
        """The bytes that are held."""
        return self._size

    def begin(self, user: User) -> Reading:
        """Return what a request of *user* is to give to :meth:`end` when it is answered."""
        return Reading(user, self._clock.monotonic())

    async def receive(self, reading: Reading, receive: Receive) -> Message:
        """Return the next ASGI message. Raises BodyTimeoutError and BodiesFullError."""
        reading.task = asyncio.current_task()
        self._waiting.add(reading)
        try:
            message = await receive()
        except asyncio.CancelledError:
            if reading.is_late and reading.task is not None and not reading.task.uncancel():
                raise BodyTimeoutError from None
            raise
        finally:
            reading.task = None
            self._waiting.discard(reading)
        if message.get("more_body", False) and self._clock.monotonic() >= reading.due:
            raise BodyTimeoutError
        self._hold(reading, len(message.get("body", b"")))
        return message

    def end(self, reading: Reading) -> None:
        """Hold the body no longer."""
        flow = flow_of(reading.user)
        self._size -= reading.size
        left = self._flows.get(flow, 0) - reading.size
        if left > 0:
            self._flows[flow] = left
        else:
            self._flows.pop(flow, None)
        reading.size = 0

    def tick(self) -> None:
        """End the reading of those that are late."""
        now = self._clock.monotonic()
        for each in self._waiting:
            if now >= each.due and each.task is not None and not each.is_late:
                each.is_late = True
                each.task.cancel()

    def _hold(self, reading: Reading, size: int) -> None:
        if not size:
            return
        flow = flow_of(reading.user)
        of_flow = self._flows.get(flow, 0) + size
        if not is_exempt(reading.user):
            fair = self._most // max(len(self._flows), 1)
            if of_flow > self._of_flow or (self._size + size > self._most and of_flow > fair):
                raise BodiesFullError
        self._size += size
        self._flows[flow] = of_flow
        reading.size += size
