"""Contact with the API server, as all who ask it see together.

After an outage the next request finds out that it is over: the renewal of a lease, or one of twenty
watches. The others are in long pauses by then, and are woken.
"""

import asyncio
from typing import Final

from berth.runtime.clock import Clock

QUIET: Final = 5.0
"""Seconds without an answer that make an outage of requests that failed.

While the server answers others, what fails must not be tried again at each of their answers. In a
shorter outage no pause gets much longer.
"""


class Contact:
    """Sees every request, and wakes waiters when the server is back. Shared by all clients."""

    def __init__(self, clock: Clock) -> None:
        self.recoveries = 0
        """How many outages are over."""
        self._clock = clock
        self._heard_at = clock.monotonic()
        self._has_missed = False
        self._recovered = asyncio.Event()

    def heard(self) -> None:
        """The server has answered, if only that it cannot do what was asked."""
        now = self._clock.monotonic()
        if self._has_missed and now - self._heard_at >= QUIET:
            self.recoveries += 1
            self._recovered.set()
            self._recovered = asyncio.Event()
        self._heard_at, self._has_missed = now, False

    def missed(self) -> None:
        """A request was not answered, or by somebody who could not reach the server."""
        self._has_missed = True

    def answered(self, status: int) -> None:
        """Take note of an answer by its HTTP status.

        Gateways answer 5xx for a server that is gone, and it does so itself while it starts. One
        that answers 429 is there, but must not be run at.
        """
        if status >= 500:
            self.missed()
        elif status != 429:
            self.heard()

    async def recovered(self) -> None:
        """Return when the next outage is over."""
        await self._recovered.wait()
