"""Keeps the Authorization header fresh while tokens expire and rotate."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from berth.runtime.clock import Clock

log = logging.getLogger(__name__)

REFRESH_INTERVAL: Final = 60.0
"""Seconds between looks at where the token comes from; what client-go uses for token files."""

RELOAD_SECONDS: Final = 30.0
"""How long a reload may take: the request that waits for it goes on with the old token then."""


class Credentials:
    """Returns the header's value when called, and has it reloaded at most once a minute.

    *reload* looks at the source again (a token file, an exec plugin whose token expires) and
    *token* reads what it found, with its scheme (``Bearer ...``). While one request reloads, others
    go on with the old token. A reload that fails is logged and the old token kept: it may still be
    good, and if it is not, the server says so.
    """

    def __init__(
        self,
        reload: Callable[[], Awaitable[object]],
        token: Callable[[], str],
        *,
        clock: Clock,
        reload_seconds: float = RELOAD_SECONDS,
    ) -> None:
        self._reload = reload
        self._token = token
        self._clock = clock
        self._reload_seconds = reload_seconds
        self._header = token().strip()
        self._due = clock.monotonic() + REFRESH_INTERVAL

    async def __call__(self) -> str:
        if self._clock.monotonic() >= self._due:
            self._due = self._clock.monotonic() + REFRESH_INTERVAL
            try:
                async with asyncio.timeout(self._reload_seconds):
                    await self._reload()
            except Exception as exc:  # noqa: BLE001 - plugins fail in any way; logged, tried again
                problem = str(exc) or type(exc).__name__
                log.warning("credentials were not refreshed", extra={"error": problem})
            self._header = self._token().strip()
        return self._header
